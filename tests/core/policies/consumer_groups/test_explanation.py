"""Why slices move, in words."""

from __future__ import annotations

from plimsoll.core.policies.consumer_groups.explanation import imbalance_text, numbers_text
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad, SliceMove, SlicePlan


def test_an_imbalance_names_the_consumer_that_gives_most():
    slow = ConsumerLoad("slow", tuple(SliceLoad(n, 20.0, 0.01) for n in range(4)), cpu=0.8)
    plan = SlicePlan(((SliceMove("slow", "fast", 0), SliceMove("slow", "fast", 1)),))
    text = imbalance_text([ConsumerLoad("fast"), slow], plan)
    assert text == "slow works 0.80 s a second (processor 80%), the average is 0.40 s; 2 slices would move"


def test_without_a_move_the_reason_of_the_plan_stands():
    assert imbalance_text([], SlicePlan(reason="there is no consumer that stays")) == "there is no consumer that stays"


def test_long_lists_of_numbers_are_shortened():
    assert numbers_text([3]) == "slice 3"
    assert numbers_text(range(12)) == "slices 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
