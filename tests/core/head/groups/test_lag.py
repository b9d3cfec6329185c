"""The lag of slices: what the log has of each behind its last acknowledgement, held or not."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, cast

import msgspec
from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.head.groups.lag import DROPPED_AT_LEAST, READ_ENTRIES, SliceIndex
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import stamp_attribute

STAMP = stamp_attribute(GROUP)


def lags(play: GroupPlay) -> list[int]:
    head = play.fleet.head()
    return head.group_lags.of(GROUP, [each.token for each in head.groups.by_name[GROUP].slices])


def counted(play: GroupPlay) -> list[int]:
    """The same, by reading all of the log."""
    head = play.fleet.head()
    found = [0] * play.definition.count
    for position, entry in head.log.after(0):
        number = msg.to_edge.decode(entry.record).body.attributes[STAMP]
        token = head.groups.by_name[GROUP].slices[number].token
        found[number] += token is not None and position > token[2]
    return found


def test_what_a_consumer_has_not_acknowledged_is_its_lag_whether_or_not_it_was_sent() -> None:
    play = GroupPlay(count=4)
    consumer = play.join("a", work=0.1)
    play.run(1.0)
    for n in range(40):
        play.publish(n)
    play.run(2.05)
    assert lags(play) == counted(play)
    assert 40 - 21 <= sum(lags(play)) <= 40
    consumer.work = 0.0
    play.run(3.0)
    assert lags(play) == [0, 0, 0, 0]


def test_slices_that_no_consumer_has_lag_too_and_one_that_was_never_had_does_not() -> None:
    play = GroupPlay(count=4)
    play.join("a")
    play.run(1.0)
    play.leave("a")
    play.run(1.0)
    for n in range(10):
        play.publish(n)
    play.run(1.0)
    assert lags(play) == [3, 3, 2, 2]
    assert play.fleet.head().groups.by_group()[GROUP]["without_consumer"] == 4
    play.join("b")
    play.run(3.0)
    assert lags(play) == [0, 0, 0, 0]
    assert play.fleet.head().group_lags.of(GROUP, [None] * 4) == [0, 0, 0, 0]


def test_slices_of_one_that_was_killed_lag_from_its_last_acknowledgement() -> None:
    play = GroupPlay(count=2)
    play.join("a", work=0.02)
    play.run(1.0)
    play.run(2.0, rate=50)
    play.crash("a")
    play.run(1.0, rate=50)
    assert lags(play) == counted(play)
    before = sum(lags(play))
    play.run(1.0, rate=50)
    assert sum(lags(play)) > before + 25


def publication(position: int, number: int, **attributes: wire.Scalar) -> bytes:
    body = msg.Body({"class": "R", STAMP: number, **attributes}, b"")
    return wire.encode(msg.Pub(position, "h", 1, position, "p", 1, position, 0, 0, msgspec.Raw(wire.encode(body))))


def test_a_log_that_was_there_before_is_read_in_parts_and_what_comes_meanwhile_behind_it() -> None:
    play = GroupPlay(count=3)
    stamps, log, draw = stamper(GROUP, play.definition), Log(1 << 24), random.Random(4)
    numbers = [draw.randrange(4) for _ in range(3 * READ_ENTRIES)]  # one of four is no number of a slice
    for position, number in enumerate(numbers[:-10], start=1):
        log.append_publication(publication(position, number), ("h", 1), position)
    index, rounds = SliceIndex(stamps, 3, 0), 0
    while index.read_to < log.last:
        index.read(log)
        rounds += 1
        if rounds == 1:
            log.append(LogEntry(b"", ((("h", 1), 1),), True))
    for number in numbers[-10:]:
        at = log.append_publication(publication(log.last + 1, number), ("h", 1), log.last + 1)
        index.note(at, number)
    assert rounds == 3
    assert [index.behind(n, 0, log.first) for n in range(3)] == [numbers.count(n) for n in range(3)]
    assert [index.behind(n, log.last - 10, log.first) for n in range(3)] == [numbers[-10:].count(n) for n in range(3)]


def test_a_filter_is_looked_at_once_for_all_groups_and_not_if_the_head_knows_the_slices() -> None:
    play = GroupPlay(count=3)
    lags, stamps = play.fleet.head().group_lags, stamper(GROUP, play.definition)
    looks = []

    class Asked:
        def matches(self, attributes: dict[str, wire.Scalar]) -> bool:
            looks.append(attributes)
            return attributes["class"] == "R"

    asked = Asked()
    for group in ("a", "b"):
        asking = dataclasses.replace(stamps, group=group, filter=cast(Any, asked))
        lags.begin(group, asking, 3, from_start=False)
    at = lags.host.log.last
    both = {"slice.a": 1, "slice.b": 2}
    lags.note({"class": "R", **both}, at + 1, {})
    assert len(looks) == 1
    lags.note({"class": "R", **both}, at + 2, both)
    lags.note({"class": "R"}, at + 3, {})
    assert len(looks) == 1
    lags.note({"class": "X", **both}, at + 4, {})
    lags.note({"class": "R", **both}, at + 6, both)  # not the next: it is read from the log later
    assert [lags.by_group[name].behind(number, at, 1) for name, number in (("a", 1), ("b", 2))] == [2, 2]
    assert lags.by_group["a"].read_to == at + 4


def test_what_the_log_has_no_more_is_no_lag_and_is_let_go() -> None:
    index = SliceIndex(stamper(GROUP, GroupPlay(count=1).definition), 1, 0)
    for position in range(1, 301):
        index.note(position, 0)
    index.note(301, None)  # not of the stream
    assert index.behind(0, 0, 1) == 300
    assert index.behind(0, 0, 201) == 100
    assert index.behind(0, 250, 201) == 50
    assert index.behind(0, 100, 201) == 100
    assert len(index._positions[0]) == 100 > DROPPED_AT_LEAST
