"""Moves of publishers at the heads: what a client may do out of turn, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Client, Fleet, Mediator, Publishing, resume, tree

from plimsoll.core.head import publisher_moves
from plimsoll.core.protocol import messages as msg

SESSION = "1.5"


class Moving:
    """A scripted client with publisher p at head a, and links to both heads; a mediator of both."""

    def __init__(self) -> None:
        self.fleet: Fleet = tree([("a", "b")])
        self.client: Client = self.fleet.client("c", "a", "b")
        self.publishing = Publishing(self.client, "a")
        self.mediator: Mediator = self.fleet.mediator("a", "b")
        self.fleet.run(0.5)
        self.publishing.publish(3)
        self.fleet.run(0.2)

    def command(
        self, *names: str, step: Any = "move", session: str = SESSION, mediator: int = 1
    ) -> msg.PublisherOutcome:
        plan = msg.PublisherPlan("b", "mem://b", "", list(names), 1.0)
        command = msg.PublisherCommand(mediator, self.fleet.head("a").epoch, session, step, plan)
        self.mediator.say_control("a", command)
        self.fleet.run(0.1)
        return self.outcome(session)

    def outcome(self, session: str = SESSION) -> msg.PublisherOutcome:
        return [
            each for each in self.mediator.heard["a"]
            if isinstance(each, msg.PublisherOutcome) and each.session == session
        ][-1]  # fmt: skip

    def tell(self, broker: str, *records: Any) -> None:
        self.client.tell(broker, *records)
        self.fleet.run(0.1)

    def stand_by(self, handle: int = 9, session: str = SESSION) -> None:
        self.tell("b", msg.OpenStandby(handle, "p", 1, session, "a"))


@pytest.fixture
def moving() -> Moving:
    return Moving()


def test_a_move_record_by_record(moving: Moving):
    assert moving.command("p").publishers == [("p", "asked")]
    assert moving.client.of("a", msg.PublisherMove) == [msg.PublisherMove(1, SESSION, "b", "mem://b", "")]
    moving.stand_by()
    assert moving.client.of("b", msg.PublisherStandby) == [msg.PublisherStandby(9)]
    moving.tell("a", msg.PublisherGo(1, SESSION))
    assert moving.client.of("a", msg.PublisherLeft) == [msg.PublisherLeft(1, SESSION, 3)]
    assert [each.handle for each in moving.client.of("b", msg.Opened)] == [9]
    opened = moving.client.of("b", msg.Opened)[0]
    assert (opened.handle, opened.head, opened.last_seq) == (9, "b", 3)
    assert opened.through > 3
    assert moving.outcome().publishers == [("p", "moved")]
    assert moving.outcome().state == "done"


def test_a_publication_behind_go_is_refused_and_the_other_head_takes_it(moving: Moving):
    moving.command("p")
    moving.stand_by()
    moving.tell("a", msg.PublisherGo(1, SESSION))
    moving.publishing.publish(1)
    moving.fleet.run(0.1)
    assert [each.code for each in moving.client.of("a", msg.Refused)] == ["not-open"]
    moving.publishing.head, moving.publishing.handle, moving.publishing.seq = "b", 9, 3
    moving.publishing.publish(2)
    moving.fleet.run(0.1)
    assert moving.publishing.accepted == 5


def test_go_without_a_move_or_after_stay_changes_nothing(moving: Moving):
    moving.tell("a", msg.PublisherGo(1, SESSION), msg.PublisherGo(77, SESSION))
    moving.command("p")
    moving.fleet.run(1.5)
    assert moving.client.of("a", msg.PublisherStay) == [msg.PublisherStay(1, SESSION)]
    assert moving.outcome().publishers == [("p", "stayed: had not opened there in time")]
    moving.tell("a", msg.PublisherGo(1, SESSION))
    assert moving.client.of("a", msg.PublisherLeft) == []
    moving.publishing.publish(1)
    moving.fleet.run(0.1)
    assert moving.publishing.accepted == 4


def test_a_publisher_that_has_left_is_sent_its_last_number_and_may_return(moving: Moving):
    moving.command("p")
    moving.tell("a", msg.PublisherGo(1, SESSION))
    moving.tell("a", msg.Open(2, "p", 1))
    assert moving.client.of("a", msg.PublisherLeft)[-1] == msg.PublisherLeft(2, SESSION, 3)
    moving.tell("a", msg.OpenReturning(3, "p", 1, SESSION))
    (opened,) = (each for each in moving.client.of("a", msg.Opened) if each.handle == 3)
    assert opened.last_seq == 3
    assert moving.outcome().publishers == [("p", "returned")]


def test_a_marker_that_comes_before_the_publisher_is_kept_for_it(moving: Moving):
    moving.command("p")
    moving.tell("a", msg.PublisherGo(1, SESSION))
    assert moving.outcome().publishers == [("p", "cut")]
    moving.stand_by()
    (opened,) = moving.client.of("b", msg.Opened)
    assert (opened.handle, opened.last_seq) == (9, 3)
    assert moving.outcome().publishers == [("p", "moved")]


def test_a_standby_of_another_move_does_not_take_the_marker(moving: Moving):
    moving.command("p")
    moving.stand_by(session="1.6")
    moving.tell("a", msg.PublisherGo(1, SESSION))
    assert moving.client.of("b", msg.Opened) == []


def test_a_standby_ends_with_close_with_its_link_or_in_time(moving: Moving):
    arrivals = moving.fleet.head("b").publisher_arrivals
    moving.stand_by()
    assert set(arrivals.standbys) == {"p"}
    moving.tell("b", msg.Close(9))
    assert not arrivals.standbys
    moving.stand_by(10)
    moving.fleet.run(70.0)
    assert [each.code for each in moving.client.of("b", msg.Refused)] == ["orphaned"]
    moving.stand_by(11)
    moving.fleet.crash("c")
    moving.fleet.run(5.0)
    assert not arrivals.standbys


def test_an_identity_has_no_more_on_standby_than_it_leaves():
    fleet = tree([("a", "b")], max_publishers=4)
    ann = fleet.client("ann", "b")
    fleet.run(0.3)
    fleet.identity = "eve"
    eve = fleet.client("eve", "b")
    fleet.run(0.3)
    for client, most in ((ann, 2), (eve, 1)):
        client.tell("b", *(msg.OpenStandby(n, f"{client.info.name}{n}", 1, SESSION, "a") for n in range(1, most + 2)))
        client.tell("b", msg.OpenStandby(9, f"{client.info.name}1", 1, SESSION, "a"))
        fleet.run(0.3)
        assert [each.handle for each in client.of("b", msg.PublisherStandby)] == [*range(1, most + 1), 9]
        ((code, text),) = {(each.code, each.text) for each in client.of("b", msg.Refused)}
        assert (code, text.startswith(f"this head has {most} publishers of this identity, and ")) == ("full", True)
    ann.tell("b", msg.Close(9))
    fleet.run(0.3)
    eve.tell("b", msg.OpenStandby(3, "eve3", 1, SESSION, "a"))
    fleet.run(0.3)
    assert eve.of("b", msg.PublisherStandby)[-1].handle == 3


def test_a_command_is_obeyed_once_and_by_the_newest_mediator_only(moving: Moving):
    moving.command("p")
    moving.command("p")
    assert len(moving.client.of("a", msg.PublisherMove)) == 1
    assert moving.command("p", session="1.6").publishers == [("p", f"stayed: is in move {SESSION}")]
    assert moving.command("p", step="abort").publishers == [("p", "stayed: aborted by the mediator")]
    moving.command("p", session="2.1", mediator=2)
    refused = moving.command("p", session="1.7")
    assert (refused.state, refused.reason.partition(":")[0]) == ("failed", "mediator-epoch")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (msg.PublisherPlan("a", "", "", ["p"], 1.0), "head"),
        (msg.PublisherPlan("b", "", "", [str(n) for n in range(publisher_moves.PUBLISHERS_AT_MOST + 1)], 1.0), "size"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(moving: Moving, plan: msg.PublisherPlan, why: str):
    moves = moving.fleet.head("a").publisher_moves
    outcome = moves.move("1.9", plan)
    assert (outcome.state, outcome.reason.partition(":")[0]) == ("failed", why)
    assert not moves.sessions


def test_publishers_are_listed_page_by_page(moving: Moving, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.head.publisher_commands.PUBLISHERS_PER_PAGE", 2)
    for handle, name in enumerate(("q", "r"), 20):
        moving.tell("a", msg.Open(handle, name, 1))
    for number, after in enumerate(("", "q"), 1):
        moving.mediator.say_control("a", msg.ListPublishers(number, after))
    moving.fleet.run(0.1)
    first, second = (each for each in moving.mediator.heard["a"] if isinstance(each, msg.PublisherListPage))
    assert ([each.publisher for each in first.publishers], first.more) == (["p", "q"], True)
    assert ([each.publisher for each in second.publishers], second.more) == (["r"], False)
    assert first.publishers[0].publications == 3


def test_go_of_a_publisher_that_is_decided_cuts_nothing_while_others_are_under_way(moving: Moving):
    other = Publishing(moving.client, "a", "q", 5)
    moving.fleet.run(0.2)
    moving.command("p", "q")
    moving.tell("a", msg.Close(1), msg.Open(2, "p", 1))
    assert dict(moving.outcome().publishers)["p"] == "stayed: its link was lost"
    moving.tell("a", msg.PublisherGo(2, SESSION))
    assert moving.client.of("a", msg.PublisherLeft) == []
    other.publish(1)
    moving.fleet.run(0.1)
    assert other.accepted == 1


def test_behind_its_cut_a_publisher_does_not_stay(moving: Moving):
    moving.command("p")
    moving.tell("a", msg.PublisherGo(1, SESSION))
    moving.fleet.run(1.5)
    assert moving.outcome().publishers == [("p", "cut")]
    assert moving.client.of("a", msg.PublisherStay) == []


def test_a_standby_ends_with_the_way_to_the_head_that_decides(moving: Moving):
    moving.stand_by()
    moving.fleet.crash("a")
    moving.fleet.run(20.0)
    assert [each.code for each in moving.client.of("b", msg.Refused)] == ["orphaned"]


def test_a_number_above_the_next_is_not_taken(moving: Moving):
    moving.publishing.seq += 4
    moving.publishing.publish(1)
    moving.fleet.run(0.1)
    assert [each.code for each in moving.client.of("a", msg.Refused)] == ["out-of-order"]
    assert moving.publishing.accepted == 3


def test_go_waits_for_confirmations_of_edges(moving: Moving):
    reader = moving.fleet.client("reader", "a1")
    reader.tell("a1", resume(1, "s"))
    moving.fleet.run(0.5)
    moving.fleet.freeze("a1")
    moving.publishing.publish(1, confirm=True)
    moving.fleet.run(0.1)
    moving.command("p")
    moving.tell("a", msg.PublisherGo(1, SESSION))
    assert moving.client.of("a", msg.PublisherLeft) == []
    moving.fleet.thaw("a1")
    moving.fleet.run(0.3)
    assert moving.client.of("a", msg.PublisherLeft) == [msg.PublisherLeft(1, SESSION, 4)]
