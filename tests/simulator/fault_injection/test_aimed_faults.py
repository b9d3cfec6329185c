"""An aimed fault strikes where and when its record is sent, once, and leaves alone who must live."""

from __future__ import annotations

import random
from dataclasses import replace

from plimsoll.core.protocol import messages as msg
from plimsoll.simulator.fault_injection.aimed_faults import (
    MESSAGE_TAGS,
    AimedFault,
    AimedFaultInjector,
    draw_aimed_faults,
)
from plimsoll.simulator.mediators.command_mediator import CommandBackend
from plimsoll.simulator.mediators.handover_plan import HandoverMix, draw_handovers
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.brokers import FleetShape

MANY = HandoverMix(600, across=0.5, aim=0.5)


def drawn(moving: HandoverMix = MANY) -> list[AimedFault]:
    plan = draw_handovers(moving, FleetShape(3, 2), random.Random(1), 1.0, 2.0)
    return draw_aimed_faults(plan, moving, random.Random(2))


def test_about_as_many_as_asked_and_of_all_kinds():
    some = drawn()
    assert 200 < len(some) < 400
    assert {aim.point for aim in some} == set(MESSAGE_TAGS)
    assert {aim.victim for aim in some} >= {"source", "target", "head", "mediator", "link"}


def test_who_is_not_mortal_stands_still():
    killed = {aim.victim for aim in drawn() if aim.fault == "crash"}
    assert killed == {"subscriber", "mediator", "link"}
    killed = {aim.victim for aim in drawn(replace(MANY, crashable=("source",))) if aim.fault == "crash"}
    assert killed == {"source", "mediator", "link"}


def test_records_that_name_a_session_have_points():
    assert MESSAGE_TAGS["Cut"] == 78
    assert "Held" not in MESSAGE_TAGS, "it does not name its session"
    assert len(set(MESSAGE_TAGS.values())) == len(MESSAGE_TAGS)


class Struck:
    """A run with one hand-over, and one aim at it."""

    def __init__(self, point: str, victim: str, fault: str, nth: int = 0) -> None:
        scenario = SCENARIOS["sessions-across"]
        moving = replace(scenario.handovers, handovers=1, aim=0.0, abort=0.0, across=1.0, non_members=0.0)
        quiet = replace(
            scenario, handovers=moving, fault_rates=replace(scenario.fault_rates, reconnect=0.0), control=None
        )
        self.lines: list[str] = []
        for seed in range(20):
            self.run = SimulationRun(quiet, seed, self.lines.append)
            self.commands = self.run.mediators.office
            assert isinstance(self.commands, CommandBackend)
            move = self.commands.moves[0]
            self.aim = AimedFault(move, point, nth, victim, fault, 0.0, 5)
            AimedFaultInjector([self.aim], self.commands.store, self.run.mediators, self.run.faults)
            self.run.go()
            if self.aim.is_spent:
                break

    def said(self, word: str) -> list[str]:
        return [line for line in self.lines if "! " in line and word in line]


def test_a_command_is_met():
    struck = Struck("Command", "head", "pause")
    assert struck.aim.is_spent
    assert len(struck.said(f"{struck.aim.move.head} stands still")) == 2, "its begin and its end"
    assert struck.run.faults.happened["aimed pause"] == 1


def test_what_travels_through_the_tree_is_met():
    struck = Struck("Prepare", "target", "reconnect")
    assert struck.aim.is_spent
    assert any(struck.aim.move.target in line for line in struck.lines if "is lost" in line)


def test_a_record_of_another_kind_is_not():
    assert not Struck("Revoke", "head", "pause").aim.is_spent, "nothing is revoked across clusters"
    assert isinstance(msg.Revoke, type)
