"""What an edge does with what comes from its head's log: each member takes its rest, in order, once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.head.handover.script import S, Stage, members

from plimsoll.core.protocol import messages as msg


def stage_of(*subscribers: tuple[str, int, str], published: int = 10, **limits: Any) -> Stage:
    """Subscribers at `a`, attachments 1, 2 ..., that have all up to a position; the head waits with its log."""
    stage = Stage(**limits)
    stage.publish(count=published)
    stage.head.fetches = False
    items = [
        resume(number, x, text, n=2, token=("h", stage.head.epoch, position))
        for number, (x, position, text) in enumerate(subscribers, 1)
    ]
    stage.ask("a", *items)
    return stage


def cursor(stage: Stage) -> int:
    return stage.head.of("a", msg.Fetch)[-1].cursor


def replay(stage: Stage, *positions: int, number: int | None = None) -> None:
    """The head sends these of its log."""
    tag = b"\x93\x38\xce" + (cursor(stage) if number is None else number).to_bytes(4, "big")
    for position, record in stage.head.log:
        if position in positions:
            stage.head.put(stage.head.links_of["a"], tag + record)
    stage.run()


def gap(stage: Stage, low: int, high: int) -> msg.Gap:
    epoch = stage.head.epoch
    return msg.Gap("h", epoch, low, epoch, high, [("h", epoch, high)], "log")


def delivered(stage: Stage, attachment: int) -> list[Any]:
    """Positions and gaps."""
    return [
        (item.low, item.high) if isinstance(item, msg.Gap) else item.position
        for item in stage.client.items("a", attachment)
    ]


def test_each_takes_what_lies_above_its_own_position():
    stage = stage_of(("x", 3, STOCK), ("y", 6, STOCK))
    assert [fetch.after for fetch in stage.head.of("a", msg.Fetch)] == [3]
    replay(stage, *range(4, 11))
    assert delivered(stage, 1) == [4, 5, 6, 7, 8, 9, 10]
    assert delivered(stage, 2) == [7, 8, 9, 10]
    assert stage.edge("a").meter.deliveries == 11


def test_nothing_is_taken_twice():
    stage = stage_of(("x", 3, STOCK))
    replay(stage, 4, 5, 6)
    replay(stage, 5, 6, 7)
    assert delivered(stage, 1) == [4, 5, 6, 7]


def test_each_takes_what_its_own_list_wants():
    stage = stage_of(("x", 3, "[n,>,8]"), ("y", 3, "[n,<,6]"))
    replay(stage, *range(4, 11))
    assert (delivered(stage, 1), delivered(stage, 2)) == ([9, 10], [4, 5])


def test_several_subscriptions_take_a_publication_once():
    stage = Stage()
    stage.publish(count=5)
    stage.head.fetches = False
    stage.ask("a", resume(1, "x", STOCK, "[n,>,0]", n=2, token=("h", stage.head.epoch, 3)))
    replay(stage, 4, 5)
    assert delivered(stage, 1) == [4, 5]


def test_a_slice_without_members_sends_nothing():
    stage = stage_of(("x", 3, STOCK))
    before = cursor(stage) - 1
    replay(stage, 4, 5, number=before)
    stage.tell("a", msg.Replay(before, gap(stage, 4, 5)), msg.Fetched(before, 10, True))
    assert delivered(stage, 1) == []
    assert stage.state("a") == "catchup"


def test_who_is_not_a_member_takes_nothing():
    stage = stage_of(("x", 3, STOCK), ("y", 10, STOCK))
    assert stage.state("a", "y") == "live"
    replay(stage, 9, 10)
    stage.tell("a", msg.Replay(cursor(stage), gap(stage, 1, 8)))
    assert delivered(stage, 2) == []


@pytest.mark.parametrize(
    ("low", "high", "told"), [(1, 3, []), (1, 5, [(4, 5)]), (4, 5, [(4, 5)]), (6, 7, [(6, 7)]), (3, 4, [(4, 4)])]
)
def test_a_gap_is_told_above_ones_own_position(low: int, high: int, told: list[Any]):
    stage = stage_of(("x", 3, STOCK))
    stage.tell("a", msg.Replay(cursor(stage), gap(stage, low, high)))
    assert delivered(stage, 1) == told
    for one in stage.client.gaps("a", 1):
        assert one.last == [("h", stage.head.epoch, high)], "origins are told of as far as the gap goes"
    replay(stage, 4, 5, 6, 7, 8)
    after = max(3, high)
    assert delivered(stage, 1)[len(told) :] == list(range(after + 1, 9)), "what lies in a gap does not come as well"


def test_behind_the_last_slice_they_are_live_where_the_stream_is():
    stage = stage_of(("x", 3, STOCK))
    replay(stage, *range(4, 11))
    stage.tell("a", msg.Fetched(cursor(stage), 10, True))
    assert stage.state("a") == "live"
    stage.publish("a", count=2)
    assert delivered(stage, 1) == list(range(4, 13))
    assert stage.edge("a").position == 12


def test_between_slices_they_stay_in_the_log():
    stage = stage_of(("x", 3, STOCK))
    replay(stage, 4, 5)
    first = cursor(stage)
    stage.tell("a", msg.Fetched(first, 5, False))
    assert stage.state("a") == "catchup"
    stage.run()
    assert (cursor(stage), stage.head.of("a", msg.Fetch)[-1].after) == (first + 1, 5)


def test_the_position_is_the_streams_and_never_goes_back():
    stage = stage_of(("x", 3, STOCK))
    edge = stage.edge("a")
    assert edge.position == 10
    stage.tell("a", msg.Fetched(cursor(stage), 12, False))
    assert edge.position == 10, "the log is ahead of the stream, and more of it is to come"
    stage.tell("a", msg.Fetched(cursor(stage), 7, True))
    assert edge.position == 10


def cut(stage: Stage) -> None:
    """`x` goes to another edge; its cut is where the stream is."""
    stage.tell(
        "a", msg.StartMove(S, members("x"), "b", "mem://b", ""), msg.Cut(S, members("x"), stage.head.token(), False)
    )


def test_no_member_takes_entries_beyond_its_cut():
    stage = stage_of(("x", 3, STOCK), ("y", 3, STOCK))
    cut(stage)
    stage.publish("a", count=3)
    replay(stage, *range(4, 14))
    assert (delivered(stage, 1), delivered(stage, 2)) == (list(range(4, 11)), list(range(4, 14)))
    assert stage.said("a", msg.End) == []
    stage.tell("a", msg.Fetched(cursor(stage), 13, True))
    assert [end.attachments for end in stage.said("a", msg.End)] == [[1]]
    assert (stage.state("a", "x"), stage.state("a", "y")) == ("ending", "live")


def test_a_gap_that_reaches_beyond_the_cut_ends_there_and_says_nothing_of_origins():
    stage = stage_of(("x", 3, STOCK), ("y", 3, STOCK))
    cut(stage)
    stage.publish("a", count=3)
    stage.tell("a", msg.Replay(cursor(stage), gap(stage, 4, 13)))
    assert (delivered(stage, 1), delivered(stage, 2)) == ([(4, 10)], [(4, 13)])
    assert stage.client.gaps("a", 1)[0].last == []
    assert stage.client.gaps("a", 2)[0].last == [("h", stage.head.epoch, 13)]


def test_who_has_no_room_for_more_leaves_the_slice():
    stage = stage_of(("x", 3, STOCK), ("y", 3, STOCK), queue_bytes=700)
    stage.ask("a", msg.Pause(1))
    stage.publish(count=40)
    for position in range(4, 51):
        replay(stage, position)
    assert stage.state("a", "x") == "blocked"
    assert stage.record("a", "x").queue_bytes <= 700 + 200, "no more than one beyond its bound"
    assert delivered(stage, 2) == list(range(4, 51))
