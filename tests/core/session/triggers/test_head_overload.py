"""Policy DelaySensitive with `publishers: Move`: when a session begins for an overloaded head, and how it ends."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from tests.core.session.kinds.test_publisher_session import ScriptedHead, World

from plimsoll.core.policies.delay_sensitive.head_fleet import RECORD_BYTES
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.session import Session
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

BODY = 1000.0 - RECORD_BYTES
"""A publisher of one publication a second brings a link 1,000 bytes a second."""

UPLINK = 10_000.0


class OverloadWorld(World):
    """Heads whose reports follow from where publishers are. `toward`: the head behind which all subscribers are.

    `rates`: what each publishes. A publisher that has come back to `a` is reported there again.
    """

    def __init__(self, rates: dict[str, float], *, uplinks: dict[str, float] | None = None, **policy: Any) -> None:
        self.published, self.toward = rates, "b"
        self.uplinks = {"a": UPLINK, "b": 10 * UPLINK, "c": 10 * UPLINK, **(uplinks or {})}
        self.reports = 0
        self.is_reporting = True
        super().__init__(*rates)
        content: dict[str, Any] = {"topicAttribute": "topic", **policy}
        spec = {"type": "DelaySensitive", "delaySensitive": content, "detection": {"stabilizeFor": "5s"}}
        self.policies = {"east": parse_block(PolicySpec, spec)}

    def observe(self) -> None:
        self.reports += 1
        for name, head in self.heads.items():
            head.loads = [self._row(name, each) for each in sorted(head.publishers)]
            head.load = self._report(head) if self.is_reporting else {}
        super().observe()

    def _row(self, head: str, publisher: str) -> PublisherTopicLoad:
        rate = self.published[publisher]
        topic = int(publisher[1:])
        if head == self.toward:
            return PublisherTopicLoad(publisher, topic, rate, BODY * rate, rate, 0.0, BODY * rate)
        way = self.toward if head == "a" else "a"
        return PublisherTopicLoad(publisher, topic, rate, BODY * rate, 0.0, rate, 0.0, BODY * rate, way)

    def _report(self, head: ScriptedHead) -> dict[str, Any]:
        takes = self.heads.values() if head.name == self.toward else [head]
        out = 1000.0 * sum(self.published[name] for one in takes for name in one.publishers)
        return {
            "broker": head.name, "epoch": head.epoch, "seq": self.reports // 5, "interval_seconds": 0.2,
            "output_bytes_per_second": out, "output_utilization": out / self.uplinks[head.name],
            "bandwidth_bytes_per_second": self.uplinks[head.name], "publishers_open": len(head.publishers),
        }  # fmt: skip

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.requests.values() if one.spec.trigger is not None]

    def only(self) -> Session:
        [name] = self.names
        return self.until_over(name)


OVERLOADED = {"p1": 5.0, "p2": 4.0, "p3": 1.0}


def test_publishers_leave_an_overloaded_head_by_themselves():
    world = OverloadWorld(OVERLOADED)
    world.run(4.0)
    session = world.only()
    assert (session.phase, session.reason, session.triggered) == ("Succeeded", "Moved", True)
    assert session.plan is not None
    assert session.plan.stop == "Relieved: a is no longer overloaded"
    assert [(one.what, one.reason) for one in session.plan.moves] == [
        ("topic 00000001 (Pr, 1 publishers)",
         "topic 00000001 (Pr, 1 publishers) relieves a: uplink at 1.000, above 0.95")
    ]  # fmt: skip
    assert world.heads["b"].publishers == {"p1"}
    trigger = world.requests[session.name].spec.trigger
    assert trigger is not None
    assert trigger.reason == "DelaySensitive: a: uplink at 1.000, above 0.95"
    world.run(60.0)
    assert world.names == [session.name], "the load is constant, and nothing moves back"


def test_what_was_predicted_is_measured():
    world = OverloadWorld(OVERLOADED)
    world.run(4.0)
    session = world.only()
    assert session.plan is not None
    told = {one.edge: one for one in session.plan.forecasts}
    changes = {name: (one.utilization_before, one.utilization_after) for name, one in told.items()}
    assert changes == {"a": (1.0, 0.5), "b": (0.1, 0.1)}, "b has the publications already, and sends them as before"
    assert told["a"].utilization_measured == pytest.approx(0.5)
    assert (told["a"].subscribers_before, told["a"].subscribers_after, told["a"].subscribers_measured) == (3, 2, 2)
    assert told["b"].subscribers_measured == 1


@pytest.mark.parametrize("policy", [{"publishers": "Stay"}, {"thresholds": {"headUplink": {"lower": "900m"}}}])
def test_no_session_where_publishers_stay_or_a_threshold_lacks(policy: dict[str, Any]):
    world = OverloadWorld(OVERLOADED, **policy)
    world.run(20.0)
    assert not world.names


def test_one_report_is_not_enough_and_by_the_letter_it_is():
    rules: tuple[Literal["Plimsoll", "Text"], ...] = ("Plimsoll", "Text")
    counts = []
    for each in rules:
        world = OverloadWorld(OVERLOADED, rules=each)
        world.run(0.4)
        world.published = dict.fromkeys(OVERLOADED, 0.1)
        world.run(10.0)
        counts.append(len(world.names))
    assert counts == [0, 1]


def test_a_head_that_has_restarted_is_looked_at_anew():
    world = OverloadWorld(OVERLOADED)
    world.run(0.4)
    world.source.restart()
    world.run(1.0)
    assert not world.names
    world.run(3.0)
    assert world.names


def test_where_no_head_is_low_it_ends_with_that_reason_and_asks_again_later_and_later():
    world = OverloadWorld(OVERLOADED, uplinks={"b": 1.0, "c": 1.0})
    world.heads["b"].publishers, world.heads["c"].publishers = {"p8"}, {"p9"}
    world.published = {**OVERLOADED, "p8": 1.0, "p9": 1.0}
    world.run(90.0)
    sessions = [world.session(name) for name in world.names]
    assert 3 <= len(sessions) <= 8, "the pauses double"
    assert {(one.phase, one.reason) for one in sessions if one.is_over} == {("Succeeded", "NothingToMove")}
    assert sessions[0].message == "NoBetter: a stays overloaded: uplink at 1.000, above 0.95"
    assert sessions[0].plan is not None
    assert {one.kind for one in sessions[0].plan.stays} == {"NoCandidate"}


def test_clients_that_do_not_move_are_left_alone_and_others_go():
    world = OverloadWorld(OVERLOADED)
    world.source.stays = {"p1"}
    world.run(4.0)
    first = world.until_over(world.names[0])
    assert (first.reason, first.counts()["stayed"]) == ("NobodyMoved", 1)
    world.run(40.0)
    assert world.source.publishers == {"p1", "p3"}
    last = world.requests[world.names[-1]].spec
    assert last.exclusions.subscribers == ("p1",)


def test_heads_are_relieved_one_after_another():
    world = OverloadWorld({**OVERLOADED, "p4": 5.0, "p5": 5.0}, uplinks={"b": 1e6, "c": 4_000.0})
    world.source.publishers, world.heads["c"].publishers = {"p1", "p2", "p3"}, {"p4", "p5"}
    world.policies["north"] = world.policies["east"]
    world.source.is_slow = True
    world.run(8.0)
    assert len(world.names) == 1


def test_not_while_publishers_of_the_head_move_already():
    world = OverloadWorld(OVERLOADED)
    world.source.is_slow = True
    world.ask("user", select={"names": ["p2"]}, target={"name": "north"})
    world.run(10.0)
    assert not world.names


def test_a_head_that_does_not_report_has_no_load():
    world = OverloadWorld(OVERLOADED)
    world.is_reporting = False
    world.run(10.0)
    assert not world.names
    world.ask("user")
    session = world.until_over("user")
    assert (session.phase, session.reason) == ("Rejected", "NoSample")
    assert session.message == "the load of a did not come in time"


def test_a_user_may_ask_for_the_same_plan():
    world = OverloadWorld(OVERLOADED)
    world.ask("user", mode="DryRun")
    session = world.until_over("user")
    assert session.plan is not None
    assert [pair.members for pair in session.plan.pairs] == [["p1"]]
    assert session.plan.policy == "DelaySensitive"


def test_a_head_that_takes_publishers_of_another_session_is_no_target():
    world = OverloadWorld({**OVERLOADED, "p4": 1.0}, uplinks={"c": 1e6})
    world.source.publishers, world.heads["c"].publishers = set(OVERLOADED), {"p4"}
    world.heads["c"].is_slow = True
    world.ask("other", source={"name": "north"}, target={"name": "west"}, select={"names": ["p4"]})
    world.ask("user", mode="DryRun")
    world.run(0.6)
    assert world.session("other").batch is not None
    session = world.until_over("user")
    assert session.plan is not None
    assert "b" not in {pair.target for pair in session.plan.pairs}


def test_a_head_that_dies_in_the_middle_of_its_session_is_relieved_by_the_next_one():
    world = OverloadWorld(OVERLOADED)
    world.source.is_slow = True
    world.run(4.0)
    [name] = world.names
    assert world.session(name).batch is not None
    world.source.restart()
    world.source.is_slow = False
    session = world.until_over(name)
    assert (session.phase, session.reason) == ("RolledBack", "NobodyMoved")
    assert session.message == "a does not know it; 1 unknown"
    world.run(10.0)
    assert world.until_over(world.names[-1]).reason == "Moved"
    assert world.heads["b"].publishers == {"p2"}, "p1 is left alone for a while: what became of it was not known"


def test_a_mediator_that_restarts_goes_on_with_the_session():
    world = OverloadWorld(OVERLOADED)
    world.source.is_slow = True
    world.run(4.0)
    [name] = world.names
    world.new_mediator()
    world.source.is_slow = False
    world.source.outcomes.clear()
    session = world.until_over(name)
    assert session.is_over
    world.run(20.0)
    assert [world.session(each).reason for each in world.names] == ["NobodyMoved", "Moved"]
    assert world.heads["b"].publishers == {"p2"}
