"""What an edge detects in its load, and which messages it sends about it, in a cluster with unequal load."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Client, Fleet, Mediator, Publishing, resume

from plimsoll.core.protocol import messages as msg


class Unequal:
    """All subscribers are at e1; `publish` sends ten publications a second."""

    def __init__(self, fleet: Fleet, subscribers: int = 40) -> None:
        self.fleet = fleet
        self.mediator: Mediator = fleet.mediator("h")
        self.client: Client = fleet.client("c", "h", "e1", "e2")
        self.client.tell("e1", *(resume(i, f"s{i}") for i in range(1, subscribers + 1)))
        self.publishing = Publishing(self.client, "h")
        self.number = 0
        fleet.run(0.5)

    def publish(self, seconds: float) -> None:
        for _ in range(round(10 * seconds)):
            self.publishing.publish()
            self.fleet.run(0.1)

    def say(self, state: Any, edge: str = "e1", session: str = "b", seconds: float = 5.0, tried: Any = ()) -> None:
        self.number += 1
        word = msg.Reservation(5, self.number, edge, session, state, seconds, [msg.ActionItem(*each) for each in tried])
        self.mediator.say_control("h", word)
        self.fleet.run(0.05)

    def triggers(self) -> list[msg.Trigger]:
        return [said for said in self.mediator.heard["h"] if isinstance(said, msg.Trigger)]

    def forget(self) -> None:
        self.mediator.heard.clear()

    def reported(self, edge: str = "e1") -> dict[str, Any]:
        return self.fleet.edge(edge).reporter.last


@pytest.fixture
def unequal(balanced: Any) -> Unequal:
    world = Unequal(balanced(2, report_seconds=2.0))
    world.publish(3.0)
    return world


def test_the_edge_with_the_load_triggers_and_names_its_targets(unequal: Unequal):
    found = unequal.triggers()
    assert {trigger.edge for trigger in found} == {"e1"}
    assert found[-1].actions[0].target == "e2"
    assert found[-1].actions[0].difference > 0.1
    assert not found[-1].actions[0].overloaded
    assert found[-1].seq <= unequal.reported()["seq"]
    assert [trigger.seq for trigger in found] == sorted({trigger.seq for trigger in found})


def test_in_a_session_it_says_nothing_and_reports_that(unequal: Unequal):
    unequal.say("BUSY")
    unequal.forget()
    unequal.publish(2.0)
    assert unequal.reported()["state"] == "BUSY"
    assert not unequal.triggers()


def test_when_the_mediator_falls_silent_it_is_free_by_itself(unequal: Unequal):
    unequal.say("BUSY", seconds=1.0)
    unequal.publish(0.5)
    assert unequal.reported()["state"] == "BUSY"
    unequal.forget()
    unequal.publish(2.0)
    assert unequal.reported()["state"] == "OK"
    assert unequal.triggers()


def test_after_a_move_load_is_given_time_to_settle(unequal: Unequal):
    unequal.say("BUSY")
    unequal.say("STABILIZING")
    unequal.forget()
    unequal.publish(2.0)  # of 3 s, on this clock
    assert unequal.reported()["state"] == "STABILIZING"
    assert not unequal.triggers()
    unequal.publish(3.0)
    assert unequal.reported()["state"] == "OK"
    assert unequal.triggers()


def test_what_came_to_nothing_is_not_asked_for_again_with_the_same_load(balanced: Any):
    unequal = Unequal(balanced(2, seconds_each=0.0002, report_seconds=2.0))
    unequal.publish(3.0)
    actions = unequal.triggers()[-1].actions
    unequal.say("BUSY")
    unequal.say("OK", tried=[(each.target, each.metric, each.difference) for each in actions])
    unequal.forget()
    unequal.publish(3.0)
    assert unequal.reported()["state"] == "OK"
    assert not unequal.triggers()


@pytest.mark.parametrize("is_tried", [True, False])
def test_when_something_came_to_nothing_the_edge_looks_at_once_what_else_it_wants(unequal: Unequal, is_tried: bool):
    wanted = [(each.target, each.metric) for each in unequal.triggers()[-1].actions]
    other = next(metric for metric in ("match", "output", "input") if ("e2", metric) not in wanted)
    unequal.publish(2.0)
    unequal.say("BUSY")
    unequal.forget()
    unequal.say("OK", tried=[("e2", other, 0.3)] if is_tried else [])
    assert [[(each.target, each.metric) for each in said.actions] for said in unequal.triggers()] == (
        [wanted] if is_tried else []
    )


def test_an_answer_has_the_load_of_the_last_interval(unequal: Unequal):
    unequal.say("ASK", "e2")
    unequal.say("BUSY", "e1")
    answers = {said.edge: said for said in unequal.mediator.heard["h"] if isinstance(said, msg.ReservationReply)}
    assert (answers["e2"].state, answers["e1"].state) == ("OK", "BUSY")
    assert answers["e1"].report["input_utilization"] == pytest.approx(0.4, rel=0.3)
    assert answers["e1"].report["bandwidth_bytes_per_second"] == 1e6
    assert "counters" not in answers["e1"].report


def test_an_edge_that_wants_relief_says_that_it_is_overloaded(balanced: Any):
    world = Unequal(balanced(2, seconds_each=0.003, report_seconds=2.0))
    world.publish(3.0)
    last = world.triggers()[-1]
    assert "input" in last.actions[0].overloaded
    assert world.reported()["state"] == "N/A"
    world.say("ASK")
    assert [said.state for said in world.mediator.heard["h"] if isinstance(said, msg.ReservationReply)] == ["N/A"]


def test_edges_that_carry_the_same_are_balanced_and_ask_for_nothing(balanced: Any):
    fleet = balanced(2, report_seconds=2.0)
    world = Unequal(fleet, subscribers=20)
    world.client.tell("e2", *(resume(i, f"t{i}") for i in range(101, 121)))
    world.publish(1.5)
    world.forget()
    world.publish(2.5)
    assert not world.triggers()
    assert world.reported("e1")["balanced_set"] == ["e2"]
    assert world.reported("e2")["balanced_set"] == ["e1"]


def test_loads_that_cannot_be_are_counted_and_no_load(unequal: Unequal):
    edge = unequal.fleet.edge("e1")
    assert edge.balancing_agent is not None
    before = dict(edge.balancing_agent.load_monitor.others)
    edge.balancing_agent.load_monitor.on_loads(
        msg.PeerLoads([{"broker": "e9", "input_utilization": -1.0}, {"broker": 5}, {"state": "OK"}])
    )
    assert edge.counters["loads_refused"] == 1
    assert edge.balancing_agent.load_monitor.others == before
