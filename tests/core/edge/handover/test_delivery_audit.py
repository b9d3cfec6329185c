"""The target asks the head what was due, and the moved subscribers what they received."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.fleet import STOCK, resume
from tests.core.head.handover.script import S, Stage, attach, lose_link

from plimsoll.core.edge.handover import delivery_audit
from plimsoll.core.protocol import messages as msg

SINCE, MARKS = ("h", 100, 3), [("h", 100, 2)]


def go(attachment: int = 11, **fields: Any) -> msg.Go:
    return msg.Go(S, [msg.GoItem(attachment, fields.get("since", SINCE), fields.get("marks", MARKS))])


def checks(stage: Stage) -> list[msg.AuditRequestItem]:
    return [check for done in stage.head.of("b", msg.Done) for check in done.checks]


def live(**limits: Any) -> Stage:
    """`x` has moved here, and counts its deliveries."""
    stage = Stage(**limits)
    stage.hold("x")
    stage.ask("b", go())
    assert stage.state("b") == "live"
    return stage


def due(*items: msg.ExpectedItem, judge: str = "h") -> msg.ExpectedDeliveries:
    return msg.ExpectedDeliveries(S, judge, list(items) or [msg.ExpectedItem("x", (1, 3), [("h", 100, 5, 2)])])


# -- DONE


def test_done_has_what_is_asked_for_those_who_count():
    stage = Stage()
    stage.hold("x", "y", texts=(STOCK, "[n,>,7]"))
    stage.ask("b", go(11), msg.Go(S, [msg.GoItem(12)]))
    [done] = stage.head.of("b", msg.Done)
    texts = [str(each) for each in (STOCK, "[n,>,7]")]
    assert done == msg.Done(S, ["x", "y"], "b", [msg.AuditRequestItem("x", (1, 3), SINCE, MARKS, texts)])


def test_of_those_who_do_not_count_done_says_nothing_more():
    stage = Stage()
    stage.hold("x")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"])]


def test_a_go_that_comes_before_installed_is_asked_for_when_it_has_moved():
    stage = Stage()
    stage.cutting("x")
    stage.ask("b", go())
    assert checks(stage) == []
    stage.installed("x")
    assert [check.subscriber for check in checks(stage)] == ["x"]


@pytest.mark.parametrize(
    ("where", "what"),
    [(delivery_audit, "SUBSCRIPTIONS_AT_MOST"), (delivery_audit, "CHARACTERS_AT_MOST"), (msg, "COUNTED_MARKS_AT_MOST")],
    ids=["many", "long", "origins"],
)
def test_what_takes_too_much_room_is_not_asked(where: Any, what: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(where, what, 1)
    stage = Stage()
    stage.hold("x", texts=(STOCK, "[n,>,7]"))
    stage.ask("b", go(marks=[("h", 100, 2), ("k", 3, 4)]))
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"])]


def test_many_are_told_of_in_parts_each_with_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.edge.handover.arrivals.CHECKS_AT_ONCE", 2)
    names = [f"x{n}" for n in range(5)]
    stage = Stage()
    stage.hold(*names)
    stage.ask("b", *[go(11 + n) for n in range(5)])
    found = [(done.members, [check.subscriber for check in done.checks]) for done in stage.head.of("b", msg.Done)]
    assert found == [(names[:2], names[:2]), (names[2:4], names[2:4]), (names[4:], names[4:])]


def replayed(stage: Stage, session: str | None = S, **fields: Any) -> None:
    stage.prepare("x", replay=True)
    asked = resume(11, "x", n=4, token=("h", 100, 0), **fields)
    stage.ask("b", replace(asked, session=session))


def test_by_replay_it_is_asked_for_once_it_has_resumed():
    stage = Stage()
    stage.head.answers = False
    replayed(stage)
    assert stage.head.of("b", msg.Done) == []
    stage.head.resumed(stage.head.links_of["b"], stage.head.of("b", msg.ResumeUp)[-1])
    stage.run()
    [done] = stage.head.of("b", msg.Done)
    assert (done.members, done.edge) == ([], "b")
    assert done.checks == [msg.AuditRequestItem("x", (1, 4), ("h", 100, 0), [], [STOCK])]


@pytest.mark.parametrize("session", [None, "7.2"])
def test_who_resumes_for_another_reason_is_not_asked_for(session: str | None):
    stage = Stage()
    replayed(stage, session)
    assert stage.head.of("b", msg.Done) == []


# -- AUDIT_QUERY


def test_it_is_asked_behind_all_that_the_question_is_about():
    stage = live()
    stage.head.publish("b")
    stage.tell("b", due())
    said = [type(record).__name__ for record in stage.client.heard["b"][-2:]]
    assert said == ["Deliver", "AuditQuery"]
    assert stage.said("b", msg.AuditQuery) == [msg.AuditQuery(S, [msg.AuditQueryItem(11, [("h", 100, 5, 2)])])]


def test_who_is_behind_is_asked_when_it_is_not():
    stage = live()
    stage.ask("b", msg.Pause(11))
    stage.publish("b")
    stage.tell("b", due())
    stage.run(1.0)
    assert stage.said("b", msg.AuditQuery) == []
    stage.ask("b", msg.Continue(11))
    stage.run(1.0)
    assert len(stage.said("b", msg.AuditQuery)) == 1


@pytest.mark.parametrize(
    "item", [msg.ExpectedItem("x", (1, 5), []), msg.ExpectedItem("y", (1, 3), [])], ids=["epoch", "stranger"]
)
def test_who_is_here_no_more_is_not_asked(item: msg.ExpectedItem):
    stage = live()
    stage.tell("b", due(item))
    assert stage.said("b", msg.AuditQuery) == []


# -- AUDIT_REPLY


def test_what_was_counted_goes_to_the_head_that_asked():
    stage = live()
    stage.tell("b", due(judge="k"))
    stage.ask("b", msg.AuditReply(S, [msg.AuditReplyItem(11, 1, 2, 3, 4)]))
    assert stage.head.of("b", msg.AuditSummary) == [
        msg.AuditSummary(S, "k", [msg.AuditSummaryItem("x", 1, 2, 3, 4, 0, 2)])
    ]


@pytest.mark.parametrize(("session", "attachment"), [("7.2", 11), (S, 12)], ids=["session", "attachment"])
def test_an_unrequested_answer_is_ignored(session: str, attachment: int):
    stage = live()
    stage.ask("b", msg.AuditReply(S, [msg.AuditReplyItem(11, 0, 0, 0, 0)]))
    stage.tell("b", due())
    stage.ask("b", msg.AuditReply(session, [msg.AuditReplyItem(attachment, 0, 0, 0, 0)]))
    assert stage.head.of("b", msg.AuditSummary) == []


def test_one_answer_counts():
    stage = live()
    stage.tell("b", due())
    stage.ask(
        "b",
        msg.AuditReply(S, [msg.AuditReplyItem(11, 0, 0, 0, 0)]),
        msg.AuditReply(S, [msg.AuditReplyItem(11, 9, 0, 0, 0)]),
    )
    assert [count.members[0].lost for count in stage.head.of("b", msg.AuditSummary)] == [0]


def test_who_leaves_takes_its_question_along():
    stage = live()
    stage.tell("b", due())
    lose_link(stage)
    stage.run(1.0)
    assert not stage.edge("b").handover_target.delivery_audit._asked
    stage = live()
    stage.ask("b", msg.Pause(11))
    stage.publish("b")
    stage.tell("b", due())
    lose_link(stage)
    stage.run(1.0)
    assert not stage.edge("b").handover_target.delivery_audit._expected


def test_questions_that_are_never_answered_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delivery_audit, "REMEMBERED_AT_MOST", 2)
    stage = live()
    relay = stage.edge("b").handover_target.delivery_audit
    for number in range(4):
        stage.tell("b", msg.ExpectedDeliveries(f"3.{number}", "k", [msg.ExpectedItem("x", (1, 3), [])]))
    assert [session for _, session in relay._asked] == ["3.2", "3.3"]
    stage.ask("b", msg.Pause(11))
    stage.publish("b")
    for number in range(4, 8):
        stage.tell("b", msg.ExpectedDeliveries(f"3.{number}", "k", [msg.ExpectedItem("x", (1, 3), [])]))
    assert [session for _, session in relay._expected] == ["3.6", "3.7"]


def test_a_restarted_head_has_asked_nothing():
    stage = live()
    stage.tell("b", due())
    stage.new_head(101)
    stage.ask("b", msg.AuditReply(S, [msg.AuditReplyItem(11, 0, 0, 0, 0)]))
    assert stage.head.of("b", msg.AuditSummary) == []


def test_an_attach_without_a_place_is_not_asked_for():
    stage = Stage()
    stage.ask("b", attach(11, "x"), go())
    assert stage.head.of("b", msg.Done) == []
