"""What applications were given: lost, repeated, reordered and overlapping items are found."""

from __future__ import annotations

from plimsoll.core.verify.slice_laws import GivenItem, judge_slices

PUBLISHED = {"p": (1, 2, 3)}


def given(item: int, at: float, consumer: str = "a", *, until: float | None = -1.0, again: bool = False) -> GivenItem:
    return GivenItem(0, "p", item, consumer, at, at + 0.5 if until == -1.0 else until, again)


def test_once_and_in_order() -> None:
    verdict = judge_slices([given(1, 1), given(2, 2), given(3, 3, "b")], PUBLISHED)
    assert verdict.holds
    assert verdict.processed_once == 3


def test_what_a_dead_consumer_had_in_hand_comes_again_and_is_marked() -> None:
    verdict = judge_slices([given(1, 1, until=None), given(1, 5, "b", again=True), given(2, 6), given(3, 7)], PUBLISHED)
    assert verdict.holds
    assert (verdict.redelivered, verdict.processed_once) == (1, 3)


def test_each_fault_is_counted() -> None:
    assert judge_slices([given(1, 1), given(2, 2)], PUBLISHED).lost == 1
    assert judge_slices([given(1, 1), given(1, 2), given(2, 3), given(3, 4)], PUBLISHED).repeated == 1
    assert judge_slices([given(2, 1), given(1, 2), given(3, 3)], PUBLISHED).reordered == 1
    assert judge_slices([given(1, 1), given(2, 1.2, "b"), given(3, 3)], PUBLISHED).overlapping == 1
    never_finished = judge_slices([given(1, 1), given(2, 2), given(3, 3, until=None)], PUBLISHED)
    assert (never_finished.lost, never_finished.holds) == (1, False)
