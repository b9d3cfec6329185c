"""Stamps at the head: added, corrected, taken away; a publication that has the right ones is not touched."""

from __future__ import annotations

import msgspec

from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def stamps(**fields: object) -> GroupStamps:
    found = GroupStamps()
    for group in ("g", "other"):
        definition = msg.GroupDefinition("[class,=,'R']" if group == "g" else "[class,=,'X']", 10, "Modulo", "n")
        found.by_group[group] = stamper(group, msgspec.structs.replace(definition, **fields))
    return found


def stamped(table: GroupStamps, **attributes: object) -> tuple[bool, msg.Body]:
    body = msg.Body({"class": "R", **attributes}, b"payload")  # type: ignore[dict-item]  # scalars
    request = msg.Publish(1, 1, 0, 0, msgspec.Raw(wire.encode(body)))
    after, seen = table.stamped("p", request, body)
    assert msg.decode(msg.body, after.body) == seen
    return after is request, seen


def test_a_stamp_is_added_and_the_rest_stays() -> None:
    table = stamps()
    assert stamped(table, n=21) == (False, msg.Body({"class": "R", "n": 21, "slice.g": 1}, b"payload"))


def test_a_right_stamp_is_not_touched_and_a_wrong_one_is_corrected() -> None:
    table = stamps()
    assert stamped(table, n=21, **{"slice.g": 1})[0]
    assert stamped(table, n=21, **{"slice.g": 2})[1].attributes["slice.g"] == 1
    assert table.corrected["g"] == 1
    assert stamped(table, n=21, **{"slice.g": True})[1].attributes["slice.g"] is not True
    assert table.corrected["g"] == 2


def test_without_a_slice_there_is_no_stamp_and_it_is_counted() -> None:
    table = stamps()
    assert "slice.g" not in stamped(table, n="x", **{"slice.g": 2})[1].attributes
    assert table.unassigned["g"] == 1


def test_what_no_group_asks_for_passes_as_it_is() -> None:
    assert stamped(stamps(), **{"class": "Y", "n": 1}) == (True, msg.Body({"class": "Y", "n": 1}, b"payload"))
