"""Every fault of a plan of slices is found."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.consumer_groups.model import SliceMove
from plimsoll.core.verify.slice_plan_checker import slice_plan_faults

OWNERS = {0: "a", 1: "a", 2: "b"}


def test_a_right_plan_has_none() -> None:
    sessions = ((SliceMove("a", "b", 0),), (SliceMove("", "b", 3),))
    assert slice_plan_faults(sessions, OWNERS, {"a", "b"}, 4) == []


@pytest.mark.parametrize(
    ("sessions", "fault"),
    [
        (((SliceMove("a", "b", 0), SliceMove("b", "a", 2)),), "2 pairs"),
        (((SliceMove("a", "b", 4),),), "none of 4"),
        (((SliceMove("a", "b", 0),), (SliceMove("b", "a", 0),)), "twice"),
        (((SliceMove("b", "a", 0),),), "is not b's"),
        (((SliceMove("a", "c", 0),),), "takes none"),
        (((SliceMove("a", "a", 0),),), "to itself"),
    ],
)
def test_each_fault_is_found(sessions: tuple[tuple[SliceMove, ...], ...], fault: str) -> None:
    assert any(fault in each for each in slice_plan_faults(sessions, OWNERS, {"a", "b"}, 4))
