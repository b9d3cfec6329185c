"""Commands without plans and policies: said until they are answered, gone on with by the next life."""

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


class Desk:
    """A driver, what it has said, and the states that it has told."""

    def __init__(self, path: Path | None = None, epoch: int = 1) -> None:
        self.said: list[msg.Command] = []
        self.states: list[str] = []
        self.driver = HandoverDriver(epoch, HandoverLedger(path), self._tell, lambda one: self.states.append(one.state))

    def _tell(self, head: str, command: msg.Command) -> None:
        assert head == "head"
        self.said.append(command)

    def begin(self, now: float = 0.0, **more: Any) -> DrivenHandover:
        return self.driver.begin("head", 7, PLAN, now, **more)

    def hear(self, state: Any, members: Sequence[str], now: float, **more: Any) -> None:
        pairs = list(zip(PLAN.members, members, strict=False))
        given = {"session": "1.1", "mediator": 1, "head_epoch": 7, "reason": "", **more}
        self.driver.on_outcome("head", msg.Outcome(state=state, members=pairs, **given), now)

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.said]


def test_a_command_is_said_again_until_it_is_answered_to_the_end() -> None:
    desk = Desk()
    one = desk.begin()
    desk.driver.tick(REPEAT_SECONDS)
    desk.hear("ready", ["attached", "attached"], 0.5)
    desk.driver.tick(0.5 + REPEAT_SECONDS)
    desk.hear("done", ["moved", "moved"], 1.0)
    desk.driver.tick(9.0)
    assert desk.steps == ["prepare", "prepare", "cut", "cut"]
    assert (one.state, one.seconds, one.members) == ("done", 1.0, [("a", "moved"), ("b", "moved")])
    assert desk.states == ["ready", "done"]


def test_the_cut_waits_for_the_others_but_not_for_ever() -> None:
    desk = Desk()
    desk.begin(waits=1.0)
    desk.hear("ready", ["attached", "preparing"], 0.1)
    desk.driver.tick(1.0)
    assert "cut" not in desk.steps
    desk.driver.tick(1.4)
    assert desk.steps[-1] == "cut"


def test_one_that_is_to_stop_when_ready_is_not_cut() -> None:
    desk = Desk()
    one = desk.begin(until="ready")
    desk.hear("ready", ["attached", "attached"], 0.1)
    desk.driver.tick(5.0)
    desk.driver.request_step(one.session, "abort", 5.1)
    assert desk.steps[-2:] == ["prepare", "abort"]


def test_a_state_that_is_behind_is_not_gone_back_to() -> None:
    desk = Desk()
    one = desk.begin()
    desk.hear("cut", ["cut", "cut"], 0.1)
    desk.hear("ready", ["attached", "attached"], 0.2)
    assert one.state == "cut"


@pytest.mark.parametrize("more", [{"head_epoch": 8}, {"state": "failed", "reason": "head-epoch: 8"}])
def test_a_head_that_has_started_anew_has_lost_the_session(more: dict[str, Any]) -> None:
    desk = Desk()
    one = desk.begin()
    desk.hear(more.pop("state", "unknown"), [], 1.0, **more)
    assert one.state == "failed"


@pytest.mark.parametrize("reason", ["starting", "mediator-epoch: 2"])
def test_what_says_nothing_of_the_session_does_not_end_it(reason: str) -> None:
    desk = Desk()
    one = desk.begin()
    desk.hear("failed", [], 1.0, reason=reason)
    assert not one.is_final


def test_unknown_ends_what_was_known_and_not_what_is_still_on_its_way() -> None:
    desk = Desk()
    one = desk.begin()
    desk.hear("unknown", [], 0.1)
    assert not one.is_final
    desk.hear("cut", ["cut", "cut"], 0.2)
    desk.hear("unknown", [], 0.3)
    assert one.state == "failed"


def test_the_next_life_asks_before_it_commands(tmp_path: Path) -> None:
    first = Desk(tmp_path / "book")
    first.begin()
    next_ = Desk(tmp_path / "book", epoch=2)
    next_.driver.tick(0.0)
    assert [(one.mediator, one.session, one.step) for one in next_.said] == [(2, "1.1", "ask")]
    next_.hear("ready", ["attached", "attached"], 0.2, mediator=2)
    assert next_.steps[-1] == "cut"


def test_a_listing_is_read_page_by_page_and_asked_for_again() -> None:
    asked: list[msg.ListSubscribers] = []
    listings = SoakListings(lambda head, one: asked.append(one))
    listings.request("head", "e1", 0.0)
    listings.tick(REPEAT_SECONDS * 2)
    assert [one.after for one in asked] == ["", ""]
    listings.on_page(
        "head", msg.SubscriberPage(asked[0].id, "e1", 7, ["x"], False), 0.7
    )  # of a question that was given up
    assert "e1" not in listings.complete
    listings.on_page("head", msg.SubscriberPage(asked[1].id, "e1", 7, ["a", "b"], True), 0.7)
    assert asked[-1].after == "b"
    listings.on_page("head", msg.SubscriberPage(asked[-1].id, "e1", 7, ["c"], False), 0.8)
    assert listings.complete == {"e1": ["a", "b", "c"]}
