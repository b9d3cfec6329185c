"""An aimed fault strikes once, when its message is sent, and kills only victims that may be killed."""

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


def drawn(mix: HandoverMix = MANY) -> list[AimedFault]:
    plan = draw_handovers(mix, FleetShape(3, 2), random.Random(1), 1.0, 2.0)
    return draw_aimed_faults(plan, mix, random.Random(2))


def test_faults_have_the_requested_rate_and_are_of_all_kinds():
    some = drawn()
    assert 200 < len(some) < 400
    assert {aim.point for aim in some} == set(MESSAGE_TAGS)
    assert {aim.victim for aim in some} >= {"source", "target", "head", "mediator", "link"}


def test_a_victim_that_must_not_be_killed_is_paused():
    killed = {aim.victim for aim in drawn() if aim.fault == "crash"}
    assert killed == {"subscriber", "mediator", "link"}
    killed = {aim.victim for aim in drawn(replace(MANY, crashable=("source",))) if aim.fault == "crash"}
    assert killed == {"source", "mediator", "link"}


def test_every_message_that_names_a_handover_is_a_point():
    assert MESSAGE_TAGS["Cut"] == 78
    assert "Held" not in MESSAGE_TAGS, "it does not name its session"
    assert len(set(MESSAGE_TAGS.values())) == len(MESSAGE_TAGS)


class StruckRun:
    """A run with one hand-over and one fault that is aimed at it."""

    def __init__(self, point: str, victim: str, fault: str, nth: int = 0) -> None:
        scenario = SCENARIOS["sessions-across"]
        mix = replace(scenario.handovers, handovers=1, aim=0.0, abort=0.0, across=1.0, non_members=0.0)
        quiet = replace(scenario, handovers=mix, fault_rates=replace(scenario.fault_rates, reconnect=0.0), control=None)
        self.lines: list[str] = []
        for seed in range(20):
            self.run = SimulationRun(quiet, seed, self.lines.append)
            self.commands = self.run.mediators.backend
            assert isinstance(self.commands, CommandBackend)
            move = self.commands.moves[0]
            self.aim = AimedFault(move, point, nth, victim, fault, 0.0, 5)
            AimedFaultInjector([self.aim], self.commands.store, self.run.mediators, self.run.faults)
            self.run.go()
            if self.aim.is_spent:
                break

    def traced_faults(self, text: str) -> list[str]:
        return [line for line in self.lines if "! " in line and text in line]


def test_a_fault_strikes_at_a_command():
    struck = StruckRun("Command", "head", "pause")
    assert struck.aim.is_spent
    assert len(struck.traced_faults(f"{struck.aim.move.head} is paused")) == 2, "its start and its end"
    assert struck.run.faults.happened["aimed pause"] == 1


def test_a_fault_strikes_at_a_message_that_is_routed_through_the_tree():
    struck = StruckRun("Prepare", "target", "reconnect")
    assert struck.aim.is_spent
    assert any(struck.aim.move.target in line for line in struck.lines if "is lost" in line)


def test_a_fault_does_not_strike_if_its_message_is_never_sent():
    assert not StruckRun("Revoke", "head", "pause").aim.is_spent, "nothing is revoked across clusters"
    assert isinstance(msg.Revoke, type)
