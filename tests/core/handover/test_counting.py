"""The target asks the head what was due, and those who have come what they were given."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.handover.script import S, Stage, attach, lose_link

from plimsoll.core import records as r
from plimsoll.core.handover import counting

SINCE, MARKS = ("h", 100, 3), [("h", 100, 2)]


def go(attachment: int = 11, **fields: Any) -> r.Go:
    return r.Go(S, [r.GoItem(attachment, fields.get("since", SINCE), fields.get("marks", MARKS))])


def checks(stage: Stage) -> list[r.CheckItem]:
    return [check for done in stage.head.of("b", r.Done) for check in done.checks]


def live(**limits: Any) -> Stage:
    """`x` has come, and counts."""
    stage = Stage(**limits)
    stage.hold("x")
    stage.ask("b", go())
    assert stage.state("b") == "live"
    return stage


def due(*items: r.DueItem, judge: str = "h") -> r.DueList:
    return r.DueList(S, judge, list(items) or [r.DueItem("x", (1, 3), [("h", 100, 5, 2)])])


# -- DONE


def test_done_has_what_is_asked_for_those_who_count():
    stage = Stage()
    stage.hold("x", "y", texts=(STOCK, "[n,>,7]"))
    stage.ask("b", go(11), r.Go(S, [r.GoItem(12)]))
    [done] = stage.head.of("b", r.Done)
    texts = [str(each) for each in (STOCK, "[n,>,7]")]
    assert done == r.Done(S, ["x", "y"], "b", [r.CheckItem("x", (1, 3), SINCE, MARKS, texts)])


def test_of_those_who_do_not_count_done_says_nothing_more():
    stage = Stage()
    stage.hold("x")
    stage.ask("b", r.Go(S, [r.GoItem(11)]))
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"])]


def test_a_go_that_comes_before_installed_is_asked_for_when_it_has_moved():
    stage = Stage()
    stage.cutting("x")
    stage.ask("b", go())
    assert checks(stage) == []
    stage.installed("x")
    assert [check.subscriber for check in checks(stage)] == ["x"]


@pytest.mark.parametrize(
    ("where", "what"),
    [(counting, "SUBSCRIPTIONS_AT_MOST"), (counting, "CHARACTERS_AT_MOST"), (r, "COUNTED_MARKS_AT_MOST")],
    ids=["many", "long", "origins"],
)
def test_what_takes_too_much_room_is_not_asked(where: Any, what: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(where, what, 1)
    stage = Stage()
    stage.hold("x", texts=(STOCK, "[n,>,7]"))
    stage.ask("b", go(marks=[("h", 100, 2), ("k", 3, 4)]))
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"])]


def test_many_are_told_of_in_parts_each_with_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.handover.receiving.CHECKS_AT_ONCE", 2)
    names = [f"x{n}" for n in range(5)]
    stage = Stage()
    stage.hold(*names)
    stage.ask("b", *[go(11 + n) for n in range(5)])
    found = [(done.members, [check.subscriber for check in done.checks]) for done in stage.head.of("b", r.Done)]
    assert found == [(names[:2], names[:2]), (names[2:4], names[2:4]), (names[4:], names[4:])]


def replayed(stage: Stage, session: str | None = S, **fields: Any) -> None:
    stage.prepare("x", replay=True)
    asked = resume(11, "x", n=4, token=("h", 100, 0), **fields)
    stage.ask("b", r.Resume(*[*[getattr(asked, name) for name in asked.__struct_fields__[:-1]], session]))


def test_by_replay_it_is_asked_for_once_it_has_resumed():
    stage = Stage()
    stage.head.answers = False
    replayed(stage)
    assert stage.head.of("b", r.Done) == []
    stage.head.resumed(stage.head.links_of["b"], stage.head.of("b", r.ResumeUp)[-1])
    stage.run()
    [done] = stage.head.of("b", r.Done)
    assert (done.members, done.edge) == ([], "b")
    assert done.checks == [r.CheckItem("x", (1, 4), ("h", 100, 0), [], [STOCK])]


@pytest.mark.parametrize("session", [None, "7.2"])
def test_who_resumes_for_another_reason_is_not_asked_for(session: str | None):
    stage = Stage()
    replayed(stage, session)
    assert stage.head.of("b", r.Done) == []


# -- COUNT


def test_it_is_asked_behind_all_that_the_question_is_about():
    stage = live()
    stage.head.publish("b")
    stage.tell("b", due())
    said = [type(record).__name__ for record in stage.client.heard["b"][-2:]]
    assert said == ["Deliver", "Count"]
    assert stage.said("b", r.Count) == [r.Count(S, [r.AskItem(11, [("h", 100, 5, 2)])])]


def test_who_is_behind_is_asked_when_it_is_not():
    stage = live()
    stage.ask("b", r.Pause(11))
    stage.publish("b")
    stage.tell("b", due())
    stage.run(1.0)
    assert stage.said("b", r.Count) == []
    stage.ask("b", r.Continue(11))
    stage.run(1.0)
    assert len(stage.said("b", r.Count)) == 1


@pytest.mark.parametrize("item", [r.DueItem("x", (1, 5), []), r.DueItem("y", (1, 3), [])], ids=["epoch", "stranger"])
def test_who_is_here_no_more_is_not_asked(item: r.DueItem):
    stage = live()
    stage.tell("b", due(item))
    assert stage.said("b", r.Count) == []


# -- COUNTED


def test_what_was_counted_goes_to_the_head_that_asked():
    stage = live()
    stage.tell("b", due(judge="k"))
    stage.ask("b", r.Counted(S, [r.ToldItem(11, 1, 2, 3, 4)]))
    assert stage.head.of("b", r.Counts) == [r.Counts(S, "k", [r.CountItem("x", 1, 2, 3, 4)])]


@pytest.mark.parametrize(("session", "attachment"), [("7.2", 11), (S, 12)], ids=["session", "attachment"])
def test_what_nobody_asked_for_is_passed_over(session: str, attachment: int):
    stage = live()
    stage.ask("b", r.Counted(S, [r.ToldItem(11, 0, 0, 0, 0)]))
    stage.tell("b", due())
    stage.ask("b", r.Counted(session, [r.ToldItem(attachment, 0, 0, 0, 0)]))
    assert stage.head.of("b", r.Counts) == []


def test_one_answer_counts():
    stage = live()
    stage.tell("b", due())
    stage.ask("b", r.Counted(S, [r.ToldItem(11, 0, 0, 0, 0)]), r.Counted(S, [r.ToldItem(11, 9, 0, 0, 0)]))
    assert [count.members[0].lost for count in stage.head.of("b", r.Counts)] == [0]


def test_who_leaves_takes_its_question_along():
    stage = live()
    stage.tell("b", due())
    lose_link(stage)
    stage.run(1.0)
    assert not stage.edge("b").receiving.counting._asked
    stage = live()
    stage.ask("b", r.Pause(11))
    stage.publish("b")
    stage.tell("b", due())
    lose_link(stage)
    stage.run(1.0)
    assert not stage.edge("b").receiving.counting._due


def test_a_head_that_starts_anew_has_asked_nothing():
    stage = live()
    stage.tell("b", due())
    stage.new_head(101)
    stage.ask("b", r.Counted(S, [r.ToldItem(11, 0, 0, 0, 0)]))
    assert stage.head.of("b", r.Counts) == []


def test_an_attach_without_a_place_is_not_asked_for():
    stage = Stage()
    stage.ask("b", attach(11, "x"), go())
    assert stage.head.of("b", r.Done) == []
