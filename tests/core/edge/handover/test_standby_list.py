"""Lists of attachments on standby: in parts, all or none, and gone however the attachment ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.head.handover.script import S, Stage, at, attach, is_empty, lose_link, members

from plimsoll.core.edge import list_change, subscription_table
from plimsoll.core.edge.handover import standby_list
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport import client_intake

COUNT = 40
TEXTS = tuple(f"[n,=,{i}]" for i in range(COUNT))


@contextmanager
def small_parts() -> Iterator[None]:
    """A part takes three subscriptions, and a round of the edge one part."""
    with (
        mock.patch.object(standby_list, "PART_UNITS", 200),
        mock.patch.object(list_change, "PART_UNITS", 200),
        mock.patch.object(client_intake, "ROUND_UNITS", 1),
    ):
        yield


@pytest.fixture(autouse=True)
def _in_small_parts() -> Iterator[None]:
    with small_parts():
        yield


def begun(stage: Stage) -> None:
    """`x` attaches with a long list, of which some parts are taken and others are not."""
    stage.prepare("x")
    stage.client.tell("b", attach(11, "x", *TEXTS))
    for _ in range(6):
        stage.fleet.round()
    assert 0 < len(stage.edge("b").index) < COUNT
    assert stage.edge("b").client_intake.waiting


def test_a_long_list_is_taken_and_announced_in_parts():
    stage = Stage()
    begun(stage)
    assert (stage.said("b", msg.Held), stage.head.of("b", msg.TargetAttached)) == ([], [])
    stage.run(2.0)
    covers = stage.head.of("b", msg.Cover)
    assert [cover.seq for cover in covers] == list(range(2, 2 + len(covers)))
    assert [len(cover.adds) for cover in covers] == [3] * 13 + [1]
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, 1)])]
    assert stage.head.of("b", msg.TargetAttached) == [msg.TargetAttached(S, ["x"])]
    stage.tell("b", msg.Install(S, ["x"]))
    (asked,) = stage.head.of("b", msg.CutRequest)
    assert (asked.cover.seq, asked.cover.adds, asked.cover.removes) == (covers[-1].seq + 1, [], [])
    assert stage.said("b", msg.Suback) == []
    stage.tell("b", msg.CoverAck(asked.cover.seq, []))
    assert stage.said("b", msg.Suback) == [msg.Suback(11, 1, [])]


def test_an_announcement_too_large_for_a_record_comes_in_parts_of_one_update():
    stage = Stage()
    stage.prepare("x")
    with mock.patch.object(standby_list, "PART_UNITS", 10**6):
        stage.ask("b", attach(11, "x", *[f"[class,=,'{i:03}{'y' * 1000}']" for i in range(60)]))
        stage.run()
    first, last = stage.head.of("b", msg.Cover)
    assert (first.more, last.more) == (True, False)
    assert first.seq == last.seq == 2


ENDS = {
    "abort": lambda stage: stage.tell("b", msg.Abort(S, members("x"))),
    "orphan": lambda stage: stage.tell("b", msg.Orphan(S, ["x"])),
    "force detach": lambda stage: stage.tell("b", msg.ForceDetach(S, members("x"))),
    "release": lambda stage: stage.tell("b", msg.Release("x", (1, 4))),
    "detach": lambda stage: stage.ask("b", msg.Detach([11], False)),
    "link": lose_link,
    "slot": lambda stage: stage.run(10.0),
    "leave": lambda stage: stage.edge("b").leave(stage.fleet.now),
    "head": lambda stage: stage.new_head(200),
    "resume": lambda stage: stage.ask("b", resume(12, "x", "[n,=,1000]", n=4), msg.Detach([12], True)),
    "number": lambda stage: stage.ask("b", resume(11, "w"), msg.Detach([11], True)),
}
IN_TURN = ("detach", "resume", "number", "slot")
"""Ends behind the list: those that its own link asks for, and that of the time, which is longer here."""


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_it_nothing_of_the_list_stays(end: str, is_whole: bool):
    stage = Stage()
    begun(stage)
    if is_whole:
        stage.run(1.0)
        assert len(stage.edge("b").index) == COUNT
    ENDS[end](stage)
    stage.run(3.0)
    if not is_whole and end not in IN_TURN:
        assert (stage.said("b", msg.Held), stage.head.of("b", msg.TargetAttached)) == ([], [])
    stage.tell("b", msg.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))
    covers = [*stage.head.of("b", msg.Cover), *(up.cover for up in stage.head.of("b", msg.ResumeUp))]
    announced = {item.id for cover in covers for item in cover.adds}
    assert announced or end == "head"
    assert announced <= {number for cover in covers for number in cover.removes}


def test_an_end_takes_the_list_back_in_bounded_steps():
    stage = Stage()
    stage.prepare("x", "y")
    texts = [f"[n,=,{i}]" for i in range(400)]
    with mock.patch.object(client_intake, "ROUND_UNITS", 10**6):
        stage.ask("b", attach(11, "x", *texts), attach(12, "y", *[text.replace("n", "m") for text in texts]))
        stage.run(0.5)
    assert len(stage.edge("b").index) == 800
    before = len(stage.head.of("b", msg.Cover))
    stage.tell("b", msg.Abort(S, members("x", "y")))
    stage.run(0.5)
    assert is_empty(stage.edge("b"))
    steps = [len(cover.removes) for cover in stage.head.of("b", msg.Cover)[before:]]
    assert sum(steps) == 800
    assert max(steps) <= 64


@pytest.mark.parametrize("is_cut_first", [False, True], ids=["held", "cut"])
def test_what_is_withdrawn_before_held_is_not_delivered_though_it_leaves_the_index_later(is_cut_first: bool):
    stage = Stage()
    stage.prepare("x")
    stage.ask("b", attach(11, "x", *TEXTS))
    stage.run(2.0)
    with mock.patch.object(subscription_table, "REMOVED_CONSTRAINTS", 0):
        stage.ask("b", msg.Subs(11, 2, [], list(range(1, COUNT + 1))))
        assert stage.said("b", msg.Held)[-1] == msg.Held([msg.HeldItem(11, 2)])
        assert len(stage.edge("b").index) == COUNT
        stage.tell("b", msg.Install(S, ["x"]))
        stage.installed("x")
        if is_cut_first:
            stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
        stage.publish("b", count=COUNT)
        stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
        stage.publish("b", count=COUNT)
        assert stage.numbers("b", 11) == []
    stage.run(1.0)
    assert len(stage.edge("b").index) == 0


def test_held_covers_a_long_change_that_came_before_a_short_one():
    stage = Stage()
    stage.prepare("x")
    stage.ask("b", attach(11, "x", "[n,<,0]"))
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(TEXTS, 2)]
    stage.client.tell("b", msg.Subs(11, 2, items, []), msg.Subs(11, 3, [], [1]))
    for _ in range(6):
        stage.fleet.round()
    assert 0 < len(stage.edge("b").index) < COUNT
    assert [held.members[0].version for held in stage.said("b", msg.Held)] == [1]
    stage.run(2.0)
    assert [held.members[0].version for held in stage.said("b", msg.Held)] == [1, 2, 3]
    stage.tell("b", msg.Install(S, ["x"]))
    stage.installed("x")
    stage.publish("b", count=COUNT - 1)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.numbers("b", 11) == list(range(1, COUNT))


@pytest.mark.parametrize("at_item", [0, 20, 39])
def test_all_of_a_list_is_taken_or_none(at_item: int):
    stage = Stage()
    stage.prepare("x")
    texts = [*TEXTS[:at_item], "[n,>", *TEXTS[at_item + 1 :]]
    stage.ask("b", attach(11, "x", *texts))
    stage.run(2.0)
    assert stage.shuts("b") == [(11, "session")]
    assert (stage.said("b", msg.Held), stage.head.of("b", msg.TargetAttached)) == ([], [])
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == [["x"]]
    assert is_empty(stage.edge("b"))


def test_install_does_not_take_a_list_that_is_not_whole():
    stage = Stage()
    with small_parts():
        begun(stage)
        stage.head.tell("b", msg.Install(S, ["x"]))
        stage.fleet.round()
        stage.fleet.round()
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == [["x"]]
    assert stage.head.of("b", msg.CutRequest) == []
    assert stage.state("b") == "dark"
    stage.tell("b", msg.Abort(S, members("x")))
    stage.run(2.0)
    assert is_empty(stage.edge("b"))


def test_a_change_goes_on_behind_install_and_is_answered_by_suback():
    stage = at("dark")
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(TEXTS, 10)]
    stage.client.tell("b", msg.Subs(11, 2, [*items, msg.SubscriptionItem(99, "[n,>")], [1]))
    for _ in range(6):
        stage.fleet.round()
    assert 1 < len(stage.edge("b").index) < COUNT
    stage.head.tell("b", msg.Install(S, ["x"]))
    stage.run(2.0)
    assert stage.state("b") == "cutting"
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, 1)])]
    assert [(refused.version, refused.id) for refused in stage.said("b", msg.SubRefused)] == [(2, 99)]
    assert stage.said("b", msg.Suback)[-1] == msg.Suback(11, 2, [])
    assert sorted(str(s) for s, _ in stage.record("b").subscriptions.values()) == sorted(TEXTS)
    assert len(stage.edge("b").index) == COUNT
    stage.installed("x")
    stage.publish("b", count=5)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.numbers("b", 11) == [1, 2, 3, 4, 5]


def test_a_change_whose_attachment_ends_behind_install_ends_too():
    stage = at("dark")
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(TEXTS, 10)]
    stage.client.tell("b", msg.Subs(11, 2, items, [1]))
    for _ in range(6):
        stage.fleet.round()
    stage.head.tell("b", msg.Install(S, ["x"]))
    stage.head.tell("b", msg.Abort(S, members("x")))
    stage.run(2.0)
    assert is_empty(stage.edge("b"))


def test_a_list_that_is_changed_on_standby_is_matched_by_what_it_has_become():
    stage = at("dark")
    stage.ask("b", msg.Subs(11, 2, [msg.SubscriptionItem(2, "[n,>,4]")], [1]))
    stage.run()
    assert stage.said("b", msg.Held)[-1] == msg.Held([msg.HeldItem(11, 2)])
    stage.tell("b", msg.Install(S, ["x"]))
    stage.installed("x")
    stage.publish("b", count=6)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.numbers("b", 11) == [5, 6]


def test_what_is_broad_on_standby_uncovers_what_it_covered_when_it_ends():
    stage = Stage()
    stage.ask("b", resume(1, "w", "[class,=,'STOCK'],[n,>,3]"))
    stage.dark("x", texts=(STOCK,))
    assert [str(s) for _, s in stage.edge("b").subscription_table.cover.items()] == [STOCK]
    stage.tell("b", msg.Abort(S, members("x")))
    stage.run(0.2)
    assert [str(s) for _, s in stage.edge("b").subscription_table.cover.items()] == ["[class,=,'STOCK'],[n,>,3]"]
    last = stage.head.of("b", msg.Cover)[-1]
    assert len(last.adds) == len(last.removes) == 1
