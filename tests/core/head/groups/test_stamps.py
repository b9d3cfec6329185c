"""Stamps at the head: added, corrected, taken away; a publication that has the right ones is not touched."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import msgspec
import pytest
from tests.core.group_play import GroupPlay

from plimsoll.core.client import Delivery
from plimsoll.core.client.errors import PublicationError
from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import STAMPS_SHIFT, flags_with_stamps, split_stamps


def stamps(**fields: object) -> GroupStamps:
    found = GroupStamps()
    for group in ("g", "other"):
        definition = msg.GroupDefinition("[class,=,'R']" if group == "g" else "[class,=,'X']", 10, "Modulo", "n")
        found.add(stamper(group, msgspec.structs.replace(definition, **fields)))
    return found


def stamped(table: GroupStamps, /, given: int = 0, **attributes: Any) -> tuple[bool, msg.Body, int]:
    """Whether a publication is passed on as it has come, as what, and with how many stamps. It came with `given`."""
    body = msg.Body({"class": "R", **attributes}, b"payload")
    request = msg.Publish(1, 1, flags_with_stamps(1, given), 0, msgspec.Raw(wire.encode(body)))
    after, attributes_after, _ = table.stamped("p", request, table.received(request, body))
    seen = msg.decode(msg.body, after.body)
    assert seen.attributes == attributes_after
    assert after.flags & 0xFFFF == 1
    return after is request, seen, after.flags >> STAMPS_SHIFT


def test_a_stamp_is_added_and_the_rest_stays() -> None:
    table = stamps()
    assert stamped(table, n=21) == (False, msg.Body({"class": "R", "n": 21, "slice.g": 1}, b"payload"), 1)


def test_a_right_stamp_is_not_touched_and_a_wrong_one_is_corrected() -> None:
    table = stamps()
    assert stamped(table, n=21, **{"slice.g": 1})[::2] == (True, 0), "it is the publisher's own"
    assert stamped(table, 1, n=21, **{"slice.g": 1})[::2] == (True, 1)
    assert stamped(table, 1, n=21, **{"slice.g": 2})[1:] == stamped(table, n=21)[1:]
    assert table.corrected.pop("g") == 1
    assert stamped(table, n=21, **{"slice.g": 2})[1].attributes["slice.g"] == 1
    assert table.corrected["g"] == 1
    assert stamped(table, n=21, **{"slice.g": True})[1].attributes["slice.g"] is not True
    assert table.corrected["g"] == 2


def test_without_a_slice_there_is_no_stamp_and_it_is_counted() -> None:
    table = stamps()
    assert "slice.g" not in stamped(table, n="x", **{"slice.g": 2})[1].attributes
    assert table.unassigned["g"] == 1


def test_what_no_group_asks_for_passes_as_it_is() -> None:
    other: dict[str, Any] = {"class": "Y", "n": 1}
    assert stamped(stamps(), **other) == (True, msg.Body({"class": "Y", "n": 1}, b"payload"), 0)


def test_stamps_stand_behind_what_is_written_which_stays_what_it_is() -> None:
    table = stamps()
    _, body, count = stamped(table, n=21, **{"slice.mine": 7, "a": 1})
    own, given = split_stamps(body.attributes, flags_with_stamps(0, count))
    assert (own, given) == ({"class": "R", "n": 21, "slice.mine": 7, "a": 1}, {"slice.g": 1})


def test_a_stamp_of_no_group_of_this_head_is_taken_off_and_counts_as_written() -> None:
    table = stamps()
    assert stamped(table, 2, n=21, **{"slice.g": 1, "slice.gone": 3})[1:] == stamped(table, n=21)[1:]
    body = msg.Body({"class": "R", "n": 21, "slice.g": 1}, b"")
    sizes = []
    gone = msg.Body({"class": "R", "n": 21, "slice.x": 1}, b"")
    for came, flags in ((body, flags_with_stamps(0, 1)), (body, 0), (gone, flags_with_stamps(0, 1))):
        request = msg.Publish(1, 1, flags, 0, msgspec.Raw(wire.encode(came)))
        found = table.received(request, came)
        sizes.append((found.size, found.written_bytes))
    without, whole = (len(wire.encode(each)) for each in (msg.Body({"class": "R", "n": 21}, b""), body))
    assert sizes == [(without, without), (whole, whole), (whole, without)], "against a quota, not against its size"


@pytest.mark.parametrize("name", ["slice." + "x" * 64, "n2", "slice.g2"])
def test_what_is_no_stamp_is_not_free_whatever_the_flags_say(name: str) -> None:
    value = 10_000 if name == "slice.g2" else 1
    table = stamps()
    _, body, count = stamped(table, 9, n="x", **{name: value})
    assert (body.attributes[name], count) == (value, 0)


class Counting:
    """A filter that counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def matches(self, attributes: object) -> bool:
        self.looks += 1
        return True


def test_groups_that_ask_for_the_same_are_looked_at_once() -> None:
    table, asked, definition = GroupStamps(), Counting(), msg.GroupDefinition("", 10, "Modulo", "n")
    for number in range(50):
        table.add(dataclasses.replace(stamper(f"g{number}", definition), filter=cast(Any, asked)))
    assert stamped(table, n=21)[2] == 50
    assert asked.looks == 1


def test_many_groups_leave_the_window_of_small_publications_what_it_is() -> None:
    play = GroupPlay()
    head = play.fleet.head()
    for number in range(20):
        head.groups.define(f"g{number}", msg.GroupDefinition("", 10, "Modulo", "n"))
    play.run(1.5)
    for number in range(300):
        play.publisher.publish({"n": number}, sent_us=0)
        play.run(0.01)
    play.run(1.0)
    counts = play.publisher.statistics()
    assert counts["accepted"] == counts["published"] >= 300
    share = head.publishers.by_name[play.publisher.name].client.share
    assert share.mean_bytes > 0
    assert share.granted > 1


LONG = "a" * 59
MOST = msg.GroupDefinition("[class,exists]", 1, "Modulo", "sensor")


@pytest.mark.parametrize("stamps_by", ["client", "head"])
def test_groups_of_others_change_nothing_for_a_publisher_and_a_subscriber(stamps_by: str) -> None:
    play = GroupPlay()
    watcher = play._client("watcher")
    subscriber = watcher.subscriber("s")
    subscriber.subscribe("[class,exists]")
    head = play.fleet.head()
    if stamps_by == "head":
        play.publisher.publish({"class": "R"}, sent_us=0)
        play.run(0.2)
    for number in range(250):
        head.groups.define(f"{LONG}{number:04}", MOST)
    if stamps_by == "client":
        play.run(0.5)
    largest: dict[str, wire.Scalar] = {"class": "R", "sensor": 3, "text": "x" * 16_359, "slice.own": 9}
    with pytest.raises(PublicationError, match="16385 characters"):
        play.publisher.publish({**largest, "t": ""}, sent_us=0)
    credit = play.publisher.statistics()["refused"]
    play.publisher.publish(largest, b"x" * 239_500, sent_us=0)
    play.publisher.publish({"class": "R", "sensor": 3, "text": "y"}, sent_us=0)
    play.run(1.0)
    assert play.publisher.statistics()["refused"] == credit
    found = [
        each
        for owner, events in watcher.take_events()
        if owner is subscriber
        for each in events
        if isinstance(each, Delivery)
    ]
    assert [each.attributes for each in found][-2:] == [largest, {"class": "R", "sensor": 3, "text": "y"}]
