"""Names of slices, their stamps, and whose they are."""

from __future__ import annotations

import pytest

from plimsoll.core.predicates import parse
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import (
    is_group_name,
    owner_identity,
    slice_name,
    slice_of_name,
    slice_subscription,
    stamp_attribute,
    stamps_bytes,
    stamps_bytes_at_most,
    stream_subscription,
)


def test_a_slice_is_found_again_in_its_name() -> None:
    assert slice_of_name(slice_name("readings", 17)) == ("readings", 17)
    assert slice_of_name(slice_name("a.b-c", 0)) == ("a.b-c", 0)


@pytest.mark.parametrize(
    "name", ["readings", "readings@17", "readings@@", "readings@@x", "readings@@01", "R@@1", "@@1"]
)
def test_other_names_are_no_slices(name: str) -> None:
    assert slice_of_name(name) is None


def test_names_of_groups() -> None:
    assert is_group_name("readings.v2")
    for name in ("", "Readings", "-a", "a-", "a_b", "a" * 64, "a@@1"):
        assert not is_group_name(name)


def test_a_slice_asks_for_the_filter_and_its_stamp() -> None:
    text = slice_subscription("readings", "[class,=,'READING']", 3)
    found = parse(text)
    assert found.matches({"class": "READING", "slice.readings": 3})
    assert not found.matches({"class": "READING", "slice.readings": 4})
    assert not found.matches({"class": "READING"})
    assert parse(slice_subscription("g", "", 0)).matches({stamp_attribute("g"): 0})


def test_all_slices_together_ask_for_the_filter_and_any_stamp() -> None:
    found = parse(stream_subscription("readings", "[class,=,'READING']"))
    assert found.matches({"class": "READING", "slice.readings": 4})
    assert not found.matches({"class": "READING", "slice.other": 4})
    assert parse(stream_subscription("g", "")).matches({stamp_attribute("g"): 0})


@pytest.mark.parametrize("written", [0, 14, 15, 16, 65_535])
def test_stamps_take_as_many_bytes_as_they_are_written_in(written: int) -> None:
    attributes: dict[str, wire.Scalar] = {str(number): 0 for number in range(written)}
    stamps = {
        stamp_attribute("g" * length): number
        for length, number in [(1, 0), (25, 127), (26, 128), (30, 255), (31, 256), (63, 9_999)]
    }
    for count in range(len(stamps) + 1):
        some = dict(list(stamps.items())[:count])
        without, stamped = msg.Body(attributes, b""), msg.Body({**attributes, **some}, b"")
        more = len(wire.encode(stamped)) - len(wire.encode(without))
        assert stamps_bytes(some, written + count) == more <= stamps_bytes_at_most(some)


def test_a_slice_belongs_to_its_group() -> None:
    assert owner_identity("readings@@3", "worker-1") == owner_identity("readings@@4", "worker-2") == "group:readings"
    assert owner_identity("desk-7", "worker-1") == "worker-1"
