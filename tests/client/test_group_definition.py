"""Groups as an application defines them."""

from __future__ import annotations

from plimsoll.client.group_definition import group_definition


def test_without_a_number_of_slices_a_member_defines_nothing():
    assert group_definition(None, filter="[class,=,'READING']") is None


def test_a_definition_has_what_the_application_said():
    found = group_definition(8, filter="[class,=,'READING']", function="Range", by="high", low=1, high=5)
    assert found is not None
    assert (found.count, found.function, found.by, found.low, found.high) == (8, "Range", "high", 1.0, 5.0)
    assert isinstance(found.low, float)
