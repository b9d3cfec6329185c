"""Whom an edge asks to count what comes of publishers that move, and what it tells the head that judges."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK
from tests.core.head.handover.script import Stage

from plimsoll.core.edge.handover import delivery_audit, publisher_audit
from plimsoll.core.protocol import messages as msg

MOVE = "3.18"
PUBLISHERS = [msg.AuditedPublisher("p", 1, 7)]
SINCE, MARKS = ("h", 100, 3), [("h", 100, 2)]


def start(session: str = MOVE, **attributes: Any) -> msg.PublisherAuditStart:
    return msg.PublisherAuditStart(session, "k", "m", PUBLISHERS, [{"class": "STOCK", **attributes}])


def counts(*attachments: int, session: str = MOVE, **fields: Any) -> msg.CountsFrom:
    marks = fields.get("marks", MARKS)
    return msg.CountsFrom(session, [msg.GoItem(number, SINCE, marks) for number in attachments])


def requests(stage: Stage) -> list[msg.PublisherAuditRequest]:
    return stage.head.of("a", msg.PublisherAuditRequest)


@pytest.fixture
def stage() -> Stage:
    """Subscribers `x` and `y` are served by `a`, as attachments 1 and 2."""
    found = Stage()
    found.attach("x", "y")
    assert found.state("a") == "live"
    return found


def test_those_that_an_example_matches_are_asked_and_the_judge_is_told_how_many(stage: Stage):
    stage.tell("a", start())
    [asked] = stage.said("a", msg.CountPublishers)
    assert (asked.session, sorted(asked.attachments), asked.heads) == (MOVE, [1, 2], ["k", "m"])
    assert asked.publishers == PUBLISHERS
    assert requests(stage) == [msg.PublisherAuditRequest(MOVE, "k", "h", "a", 2, [])]


def test_subscribers_that_no_example_matches_or_that_are_paused_or_gone_are_not_asked(stage: Stage):
    other = msg.PublisherAuditStart(MOVE, "k", "m", PUBLISHERS, [{"class": "BOND"}])
    stage.tell("a", other)
    stage.ask("a", msg.Pause(1), msg.Detach([2], False))
    stage.tell("a", start("3.19"))
    assert stage.said("a", msg.CountPublishers) == []
    assert requests(stage) == []


def test_an_edge_asks_a_few_and_others_in_another_session(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(publisher_audit, "ASKED_AT_MOST", 2)
    stage = Stage()
    stage.attach(*[f"s{number}" for number in range(8)])
    for session in range(10):
        stage.tell("a", start(f"4.{session}"))
    asked = [tuple(sorted(each.attachments)) for each in stage.said("a", msg.CountPublishers)]
    assert {len(each) for each in asked} == {2}
    assert len(set(asked)) > 3
    assert [each.asked for each in requests(stage)] == [2] * 10


def test_one_session_asks_once(stage: Stage):
    stage.tell("a", start(), start())
    assert len(stage.said("a", msg.CountPublishers)) == 1


def test_for_those_that_count_the_judge_gets_where_they_began_and_their_list(stage: Stage):
    stage.tell("a", start())
    stage.ask("a", counts(1))
    check = msg.AuditRequestItem("x", (1, 2), SINCE, MARKS, [STOCK])
    assert requests(stage)[1:] == [msg.PublisherAuditRequest(MOVE, "k", "h", "a", 0, [check])]
    stage.ask("a", counts(1, 2))
    assert [each.subscriber for each in requests(stage)[2].checks] == ["y"], "one answer counts"


@pytest.mark.parametrize(
    "said",
    [counts(1, session="9.9"), counts(7), msg.CountsFrom(MOVE, [msg.GoItem(1)])],
    ids=["session", "who", "since"],
)
def test_who_was_not_asked_is_not_believed(stage: Stage, said: msg.CountsFrom):
    stage.tell("a", start())
    stage.ask("a", said)
    assert len(requests(stage)) == 1


def test_a_list_that_is_too_long_is_not_sent(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delivery_audit, "SUBSCRIPTIONS_AT_MOST", 0)
    stage.tell("a", start())
    stage.ask("a", counts(1))
    assert len(requests(stage)) == 1


def test_an_answer_says_what_was_due_of_the_judge_and_of_the_other_head(stage: Stage):
    stage.tell("a", start())
    stage.ask("a", counts(1))
    due = [("k", 9, 8, 4), ("m", 5, 30, 11)]
    stage.tell("a", msg.ExpectedDeliveries(MOVE, "k", [msg.ExpectedItem("x", (1, 2), due)]))
    stage.tell("a", msg.ExpectedDeliveries("3.19", "m", [msg.ExpectedItem("x", (1, 2), [])]))
    stage.ask("a", msg.AuditReply(MOVE, [msg.AuditReplyItem(1, 1, 2, 3, 4)]))
    stage.ask("a", msg.AuditReply("3.19", [msg.AuditReplyItem(1, 0, 0, 0, 0)]))
    assert stage.head.of("a", msg.AuditSummary) == [
        msg.AuditSummary(MOVE, "k", [msg.AuditSummaryItem("x", 1, 2, 3, 4, 4, 11)]),
        msg.AuditSummary("3.19", "m", [msg.AuditSummaryItem("x", 0, 0, 0, 0)]),
    ]


def test_moves_are_remembered_up_to_a_bound_and_not_beyond_a_restart_of_the_head(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publisher_audit, "REMEMBERED_MOVES", 2)
    stage.tell("a", *[start(f"3.{number}") for number in range(5)])
    relay = stage.edge("a").handover_target.publisher_audit
    assert list(relay.asked) == ["3.3", "3.4"]
    stage.new_head(101)
    assert not relay.asked
