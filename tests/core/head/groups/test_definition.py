"""Definitions of groups: each fault is said, with what to write instead."""

from __future__ import annotations

import pytest

from plimsoll.core.head.groups.definition import definition_fault
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.protocol.messages import GroupDefinition


def definition(**fields: object) -> GroupDefinition:
    return GroupDefinition(**{"filter": "[a,=,1]", "count": 4, "function": "Hash", "by": "k", **fields})  # type: ignore[arg-type]  # by keyword


def test_a_right_one_has_no_fault() -> None:
    assert definition_fault("g", definition()) == ""
    assert definition_fault("g", definition(filter="", function="Publisher", by="")) == ""
    assert stamper("g", definition()).asks_for({"a": 1})
    assert stamper("g", definition(filter="")).asks_for({})


@pytest.mark.parametrize(
    ("group", "fields", "said"),
    [
        ("G", {}, "lower case"),
        ("g", {"count": 0}, "1 to 10000"),
        ("g", {"count": 10_001}, "1 to 10000"),
        ("g", {"function": "Modulus"}, "Modulo"),
        ("g", {"by": ""}, "`by`"),
        ("g", {"function": "Range"}, "`low` is below `high`"),
        ("g", {"unassigned": "Keep"}, "Drop or Hash"),
        ("g", {"balancing": "Best"}, "Pairing"),
        ("g", {"filter": "[a,="}, "cannot be read"),
    ],
)
def test_each_fault(group: str, fields: dict[str, object], said: str) -> None:
    assert said in definition_fault(group, definition(**fields))
