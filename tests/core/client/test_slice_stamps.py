"""Stamps that a publisher's client gives, and what becomes of an application's own function that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.client.errors import PublicationError
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def told(*definitions: msg.GroupDefinition) -> SliceStamps:
    stamps = SliceStamps()
    named = [msg.GroupFunction(f"g{number}", each) for number, each in enumerate(definitions)]
    stamps.told("h", msg.GroupFunctions(named))
    return stamps


def by_latitude(attributes: Mapping[str, Any]) -> int | None:
    """DPSLB 2014, 3.2: an application's function of a position."""
    latitude = attributes.get("latitude")
    return None if latitude is None else int(latitude <= 0)


OWN = msg.GroupDefinition("", 2, "Application", "by-latitude")


@pytest.mark.parametrize(("sensor", "number"), [(21, 1), (1, 1), (52, 2), (19, 9)])
def test_figure_13_at_the_publisher(sensor: int, number: int):
    stamps = told(msg.GroupDefinition("", 10, "Modulo", "sensor"))
    assert stamps.of("h", {"sensor": sensor}, "p", 1) == {"slice.g0": number}
    assert stamps.of("other", {"sensor": sensor}, "p", 1) == {}


@pytest.mark.parametrize("function", ["Modulo", "Hash", "Publisher", "Random", "Range"])
def test_the_client_and_the_head_give_the_same_stamp(function: str):
    play = GroupPlay(count=4, function=function, low=0.0, high=8.0)
    play.join("a")
    play.run(1.0)
    for sensor in range(20):
        play.publish(sensor % 8)
    play.check()
    stamps = play.fleet.head().groups.stamps
    assert (stamps.confirmed[GROUP], stamps.corrected[GROUP], stamps.unassigned[GROUP]) == (20, 0, 0)
    assert play.publishing.stamps.counts["stamped"] == 20


def test_an_application_has_its_own_function():
    play = GroupPlay(count=2, function="Application", by="by-latitude")
    play.publishing.stamps.register("by-latitude", by_latitude)
    consumer = play.join("a")
    play.run(1.0)
    consumer.is_paused = True
    play.publish(0, latitude=48.2)
    play.publish(0, latitude=-22.9)
    play.publish(0)
    play.run(0.5)
    taken = [(each.owned.slice, each.item.token[2]) for each in consumer.member.items.take(9)]
    assert [number for number, _ in taken] == [0, 1]
    assert play.publishing.stamps.counts["without_slice"] == 1
    assert play.fleet.head().groups.stamps.unassigned[GROUP] == 1


def test_a_function_that_is_not_registered_is_named_and_the_publication_has_no_slice():
    stamps = told(OWN)
    assert stamps.of("h", {"latitude": 1.0}, "p", 1) == {}
    assert stamps.counts["unregistered"] == 1
    assert "'by-latitude', which is not registered here" in stamps.last_error


def failing(attributes: Mapping[str, Any]) -> int:
    raise KeyError("where")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (failing, "has failed: KeyError"),
        (lambda _: 2, "returned 2; group 'g0' has slices 0 to 1"),
        (lambda _: True, "returned True"),
    ],
)
def test_a_function_that_fails_raises_at_the_publisher(function: Any, text: str):
    stamps = told(OWN)
    stamps.register("by-latitude", function)
    with pytest.raises(PublicationError, match=text):
        stamps.of("h", {"latitude": 1.0}, "p", 1)


def test_a_publication_whose_function_fails_is_not_sent_and_uses_no_number():
    play = GroupPlay(count=2, function="Application", by="by-latitude")
    play.publishing.stamps.register("by-latitude", failing)
    play.join("a")
    play.run(1.0)
    with pytest.raises(PublicationError):
        play.publish(0)
    assert (play.publisher.buffer.number, len(play.publisher.buffer)) == (0, 0)


def test_a_stamp_that_the_application_sets_stays_and_a_second_function_of_a_name_is_refused():
    stamps = told(OWN)
    stamps.register("by-latitude", by_latitude)
    stamps.register("by-latitude", by_latitude)
    assert stamps.of("h", {"slice.g0": 1}, "p", 1) == {}
    with pytest.raises(ValueError, match="register each once"):
        stamps.register("by-latitude", failing)


def test_what_cannot_be_read_is_left_to_the_head():
    stamps = told(msg.GroupDefinition("[", 2, "Hash", "a"), msg.GroupDefinition("", 2, "Later", "a"))
    assert stamps.of("h", {"a": 1}, "p", 1) == {}
    assert stamps.counts["definitions_unknown"] == 2


def test_stamps_count_against_no_limit_of_the_publisher():
    """Nor those of a group that has ended when they arrive: its publisher had not heard of that."""
    play = GroupPlay(count=4, function="Hash")
    play.join("a")
    play.run(1.0)
    head, most = play.fleet.head(), play.publishing.limits.max_publication_bytes
    limits = msgspec.structs.replace(head.config.limits, max_publication_bytes=most)
    head.config = msgspec.structs.replace(head.config, limits=limits)
    size = len(wire.encode(msg.Body({"class": "R", "sensor": 1, "n": 1}, b"")))
    # The payload has a header of five bytes in place of two, and the whole is as large as may be.
    payload = bytes(most - size - 3)
    play.publisher.publish({"class": "R", "sensor": 1, "n": 1}, payload, sent_us=0)
    assert play.publisher.buffer.size_bytes == most
    assert play.publishing.stamps.counts["stamped"] == 1
    head.groups._end(head.groups.by_name[GROUP])
    play.run(1.0)
    assert head.counters["publications_refused"] == 0
    assert (len(play.publisher.buffer), play.publisher.buffer.size_bytes) == (0, 0)
    assert len(head.log) == 1


def test_a_hostile_stamp_is_corrected_and_under_a_function_of_the_application_hurts_its_own_items_alone():
    play = GroupPlay(count=4, function="Modulo")
    play.join("a")
    play.run(1.0)
    play.publishing.stamps._by_head.clear()  # a client of its own making
    for _ in range(5):
        play.publish(1, **{f"slice.{GROUP}": 3})
    play.check()
    assert {each.slice for each in play.given} == {1}
    own = GroupPlay(count=4, function="Application")
    own.join("a")
    own.run(1.0)
    for stamp in (0, 4, -1, "1", True):
        own.publish(0, **{f"slice.{GROUP}": stamp})
    own.run(1.0)
    assert [each.item for each in own.given] == [1]
    stamps = own.fleet.head().groups.stamps
    assert (stamps.unassigned[GROUP], stamps.corrected[GROUP]) == (4, 4)
