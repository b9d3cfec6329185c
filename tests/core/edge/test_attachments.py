"""Attachments of an edge, from their opening to their end: one per subscriber, and nothing left over."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.head.handover.script import Stage, is_empty

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Link


def table(stage: Stage) -> AttachmentTable:
    return stage.edge("a").attachments


def link(stage: Stage) -> Link:
    """The client's, at `a`."""
    return next(iter(table(stage).by_link))


def covers(stage: Stage) -> list[msg.Cover]:
    """All cover updates that the head has received from `a`, including those inside other records."""
    found = []
    for record in stage.head.heard["a"]:
        if isinstance(record, msg.Cover):
            found.append(record)
        elif isinstance(record, msg.ResumeUp | msg.EdgeReport):
            found.append(record.cover)
    return found


def opened(stage: Stage, name: str, number: int, *texts: str) -> tuple[EdgeAttachment, list[Any]]:
    """An attachment with a list that has been taken, and not installed."""
    asked = resume(number, name, *texts, n=2)
    made = table(stage).open(link(stage), asked)
    subscriptions = table(stage).subscription_table
    taken = [subscriptions.take(made, item) for item in asked.subscriptions]
    subscriptions.confirm(made)
    return made, taken


def test_an_attachment_is_what_a_client_means_by_its_number():
    stage = Stage()
    stage.attach("x")
    stage.another("d")
    first, second = table(stage).by_link
    assert table(stage).attached(first, 1) is stage.record("a")
    assert table(stage).attached(first, 2) is None
    assert table(stage).attached(second, 1) is None, "a number is its link's"
    assert table(stage).attached(stage.edge("a").head, 1) is None, "no attachment belongs to the head's link"


def test_a_record_is_opened_with_nothing_taken():
    stage = Stage()
    asked = resume(4, "x", n=5, queue_bytes=77, slow="drop-oldest")
    made = table(stage).open(link(stage), asked)
    assert (made.subscriber, made.id, made.epoch, made.version, made.state) == (
        "x",
        4,
        (1, 5),
        1,
        AttachmentState.RESUMING,
    )
    assert (made.policy, made.queue_limit_bytes) == ("drop-oldest", 77)
    assert (made.is_covered, made.is_installed, made.subscriptions) == (False, False, {})
    assert table(stage).by_subscriber == {"x": made}
    assert table(stage).attached(link(stage), 4) is made


def test_a_number_that_is_used_again_ends_its_older_use():
    stage = Stage()
    stage.attach("x")
    table(stage).vacate(link(stage), 9)
    assert stage.shuts("a") == []
    table(stage).open(link(stage), resume(1, "y", n=2))
    stage.run()
    assert stage.shuts("a") == [(1, "replaced")]
    assert stage.state("a", "x") == "closed"


def test_many_are_installed_in_one_update_and_promised_by_it():
    stage = Stage()
    stage.head.answers = False
    before = len(covers(stage))
    (x, of_x), (y, of_y) = opened(stage, "x", 1, STOCK), opened(stage, "y", 2, "[n,>,1]", "[n,>,2]")
    last = table(stage).install({x: of_x, y: of_y})
    stage.run()
    assert covers(stage)[before:] == [], "the last part is for the caller to say, with what goes along"
    assert [item.text for item in last.adds] == [STOCK, "[n,>,1]"], "what another covers is not announced"
    assert x.is_covered
    assert y.is_installed
    for one in (x, y):
        one.state = AttachmentState.LIVE
    edge = stage.edge("a")
    assert [suback for _, suback in edge.attachments.pending_subacks.acknowledged(last.seq - 1, [])] == []
    assert [suback for _, suback in edge.attachments.pending_subacks.acknowledged(last.seq, [])] == [
        msg.Suback(1, 1, []), msg.Suback(2, 1, []),
    ]  # fmt: skip


def test_an_update_too_large_for_one_record_is_said_but_for_its_last_part():
    stage = Stage()
    stage.head.answers = False
    before = len(covers(stage))
    texts = [f"[n,=,{n}],[symbol,=,'{'x' * 1000}']" for n in range(400)]
    made, taken = opened(stage, "x", 1, *texts)
    last = table(stage).install({made: taken})
    stage.run()
    first = covers(stage)[before:]
    assert first
    assert all(part.more for part in first)
    assert not last.more
    assert sum(len(part.adds) for part in [*first, last]) == 400
    assert {part.seq for part in first} == {last.seq}


def test_closing_keeps_the_place_and_nothing_else():
    stage = Stage()
    stage.attach("x", "y")
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    x, edge = stage.record("a"), stage.edge("a")
    assert len(x.queue) == 3
    before = len(covers(stage))
    stage.ask("a", msg.Detach([1], False))
    assert (stage.state("a"), len(x.queue), x.is_covered) == ("closed", 0, True)
    assert edge.subscription_table.holders.keys() == {2}
    port = table(stage).by_link[link(stage)]
    assert list(port.by_id) == [2]
    assert x not in port.queued
    assert covers(stage)[before:] == []
    table(stage).close(x)
    assert x.closed_at < stage.fleet.now, "it was closed when it was closed first"
    stage.publish("a", count=2)
    assert (stage.numbers("a", 1), stage.numbers("a", 2)) == ([], [1, 2, 3, 4, 5])
    assert len(x.queue) == 0


def test_who_is_closed_is_served_neither_from_the_log_nor_from_the_stream():
    stage = Stage()
    stage.publish(count=3)
    stage.head.fetches = False
    stage.ask("a", resume(1, "x", n=2, token=("h", stage.head.epoch, 1)), resume(2, "y", n=2))
    assert len(stage.edge("a").cursor) == 1
    stage.ask("a", msg.Detach([1], False), msg.Detach([2], False))
    assert len(stage.edge("a").cursor) == 0
    stage.head.fetch()
    stage.run()
    assert stage.state("a") == "closed"
    assert stage.record("a", "y").out is stage.edge("a").queues.void


def test_who_is_closed_is_promised_nothing():
    stage = Stage()
    stage.head.answers = False
    made, taken = opened(stage, "x", 1, STOCK)
    last = table(stage).install({made: taken})
    made.state = AttachmentState.LIVE
    list(table(stage).pending_subacks.acknowledged(last.seq, ["k"]))
    table(stage).close(made)
    assert list(table(stage).pending_subacks.acknowledged(last.seq, [])) == []
    assert len(table(stage).pending_subacks) == 0


def test_who_has_no_place_of_its_own_goes_with_its_closing():
    stage = Stage()
    stage.attach("x")
    stage.record("a").keeps_place = False
    stage.ask("a", msg.Detach([1], False))
    assert is_empty(stage.edge("a"))
    assert covers(stage)[-1].removes == [1]


def test_a_close_leaves_a_newer_use_of_its_number_alone():
    stage = Stage()
    stage.attach("x")
    old = stage.record("a")
    stage.ask("a", resume(1, "y", n=2))
    assert old.state is AttachmentState.CLOSED
    old.state = AttachmentState.LIVE  # as if it had never been announced
    table(stage).close(old)
    found = table(stage).attached(link(stage), 1)
    assert found is not None
    assert found.subscriber == "y"


def test_shutting_is_told_once_and_nothing_follows_it():
    stage = Stage()
    stage.attach("x")
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    one = stage.record("a")
    for _ in range(2):
        table(stage).close_and_notify(one, "parted", "why")
    stage.ask("a", msg.Continue(1))
    stage.publish("a")
    assert stage.shuts("a") == [(1, "parted")]
    assert stage.numbers("a", 1) == []


def test_what_is_dropped_is_withdrawn_in_one_step():
    stage = Stage()
    for number, name in enumerate("xyz", 1):
        stage.ask("a", resume(number, name, f"[n,=,{number}]", n=2))
    x, y = stage.record("a", "x"), stage.record("a", "y")
    before = len(covers(stage))
    for one in (x, y):
        table(stage).close(one)
    table(stage).drop([x, y])
    table(stage).drop([x])
    stage.run()
    assert [sorted(cover.removes) for cover in covers(stage)[before:]] == [[1, 2]]
    assert list(table(stage).by_subscriber) == ["z"]


def test_a_newer_record_of_the_same_subscriber_is_not_dropped_for_the_older():
    stage = Stage()
    stage.attach("x")
    old = stage.record("a")
    stage.ask("a", resume(5, "x", n=4))
    table(stage).drop([old])
    stage.run()
    assert stage.state("a") == "live"
    stage.publish("a")
    assert stage.numbers("a", 5) == [1]


@pytest.mark.parametrize("removes", [[], [2]])
def test_a_withdrawal_that_changes_nothing_is_not_said(removes: list[int]):
    stage = Stage()
    stage.attach("x")
    stage.ask("a", resume(2, "y", "[class,=,'STOCK'],[n,>,5]", n=2))
    before = len(covers(stage))
    table(stage).withdraw(removes)
    stage.run()
    assert covers(stage)[before:] == [], "the head knows of what covers it only"


def test_an_eviction_leaves_nothing():
    stage = Stage()
    stage.attach("x", "y")
    table(stage).evict(list(table(stage).by_subscriber.values()), "released", "elsewhere")
    stage.run()
    assert stage.shuts("a") == [(1, "released"), (2, "released")]
    assert is_empty(stage.edge("a"))
