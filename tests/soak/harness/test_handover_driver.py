"""The driver repeats its commands until they are answered, and its next life continues them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.soak.harness.handover_driver import (
    REPEAT_SECONDS,
    DrivenHandover,
    HandoverDriver,
    HandoverLedger,
    SoakListings,
)

PLAN = msg.HandoverPlan("e1", "e2", "head", ["a", "b"], False, 5.0, 10.0)


class DriverRig:
    """A driver, the commands that it has sent, and the states that it has reported."""

    def __init__(self, path: Path | None = None, epoch: int = 1) -> None:
        self.sent: list[msg.Command] = []
        self.states: list[str] = []
        self.driver = HandoverDriver(epoch, HandoverLedger(path), self._send, lambda one: self.states.append(one.state))

    def _send(self, head: str, command: msg.Command) -> None:
        assert head == "head"
        self.sent.append(command)

    def begin(self, now: float = 0.0, **more: Any) -> DrivenHandover:
        return self.driver.begin("head", 7, PLAN, now, **more)

    def receive(self, state: Any, members: Sequence[str], now: float, **more: Any) -> None:
        pairs = list(zip(PLAN.members, members, strict=False))
        given = {"session": "1.1", "mediator": 1, "head_epoch": 7, "reason": "", **more}
        self.driver.on_outcome("head", msg.Outcome(state=state, members=pairs, **given), now)

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.sent]


def test_a_command_is_repeated_until_the_final_outcome() -> None:
    rig = DriverRig()
    one = rig.begin()
    rig.driver.tick(REPEAT_SECONDS)
    rig.receive("ready", ["attached", "attached"], 0.5)
    rig.driver.tick(0.5 + REPEAT_SECONDS)
    rig.receive("done", ["moved", "moved"], 1.0)
    rig.driver.tick(9.0)
    assert rig.steps == ["prepare", "prepare", "cut", "cut"]
    assert (one.state, one.seconds, one.members) == ("done", 1.0, [("a", "moved"), ("b", "moved")])
    assert rig.states == ["ready", "done"]


def test_the_cut_waits_for_the_other_members_for_a_limited_time() -> None:
    rig = DriverRig()
    rig.begin(waits=1.0)
    rig.receive("ready", ["attached", "preparing"], 0.1)
    rig.driver.tick(1.0)
    assert "cut" not in rig.steps
    rig.driver.tick(1.4)
    assert rig.steps[-1] == "cut"


def test_a_handover_until_ready_is_not_cut() -> None:
    rig = DriverRig()
    one = rig.begin(until="ready")
    rig.receive("ready", ["attached", "attached"], 0.1)
    rig.driver.tick(5.0)
    rig.driver.request_step(one.session, "abort", 5.1)
    assert rig.steps[-2:] == ["prepare", "abort"]


def test_an_outdated_state_is_ignored() -> None:
    rig = DriverRig()
    one = rig.begin()
    rig.receive("cut", ["cut", "cut"], 0.1)
    rig.receive("ready", ["attached", "attached"], 0.2)
    assert one.state == "cut"


@pytest.mark.parametrize("more", [{"head_epoch": 8}, {"state": "failed", "reason": "head-epoch: 8"}])
def test_a_restarted_head_has_lost_the_session(more: dict[str, Any]) -> None:
    rig = DriverRig()
    one = rig.begin()
    rig.receive(more.pop("state", "unknown"), [], 1.0, **more)
    assert one.state == "failed"


@pytest.mark.parametrize("reason", ["starting", "mediator-epoch: 2"])
def test_an_error_that_leaves_the_session_undecided_does_not_end_it(reason: str) -> None:
    rig = DriverRig()
    one = rig.begin()
    rig.receive("failed", [], 1.0, reason=reason)
    assert not one.is_final


def test_unknown_ends_only_a_session_that_the_head_has_reported() -> None:
    rig = DriverRig()
    one = rig.begin()
    rig.receive("unknown", [], 0.1)
    assert not one.is_final
    rig.receive("cut", ["cut", "cut"], 0.2)
    rig.receive("unknown", [], 0.3)
    assert one.state == "failed"


def test_the_next_life_asks_before_it_commands(tmp_path: Path) -> None:
    first = DriverRig(tmp_path / "ledger")
    first.begin()
    next_ = DriverRig(tmp_path / "ledger", epoch=2)
    next_.driver.tick(0.0)
    assert [(one.mediator, one.session, one.step) for one in next_.sent] == [(2, "1.1", "ask")]
    next_.receive("ready", ["attached", "attached"], 0.2, mediator=2)
    assert next_.steps[-1] == "cut"


def test_a_listing_is_requested_page_by_page_and_repeated() -> None:
    asked: list[msg.ListSubscribers] = []
    listings = SoakListings(lambda head, one: asked.append(one))
    listings.request("head", "e1", 0.0)
    listings.tick(REPEAT_SECONDS * 2)
    assert [one.after for one in asked] == ["", ""]
    listings.on_page(
        "head", msg.SubscriberPage(asked[0].id, "e1", 7, ["x"], False), 0.7
    )  # the answer to a request that was replaced
    assert "e1" not in listings.complete
    listings.on_page("head", msg.SubscriberPage(asked[1].id, "e1", 7, ["a", "b"], True), 0.7)
    assert asked[-1].after == "b"
    listings.on_page("head", msg.SubscriberPage(asked[-1].id, "e1", 7, ["c"], False), 0.8)
    assert listings.complete == {"e1": ["a", "b", "c"]}
