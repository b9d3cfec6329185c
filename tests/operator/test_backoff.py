"""Pauses grow, differ, and are counted for each key by itself."""

import random

import pytest

from plimsoll.operator.backoff import LONGEST_PAUSE_SECONDS, Backoff


def test_pauses_grow_to_a_limit_and_differ():
    retries = Backoff(random.Random(7))
    found = [retries.failed("x", 0.0, 1.0) for _ in range(12)]
    for number, pause in enumerate(found):
        whole = min(2.0**number, LONGEST_PAUSE_SECONDS)
        assert whole / 2 <= pause <= whole, (number, found)
    assert len(set(found)) == len(found)


def test_each_is_due_by_itself():
    retries = Backoff(random.Random(7))
    after = retries.failed("x", 10.0, 1.0)
    assert retries.is_due("y", 10.0)
    assert not retries.is_due("x", 10.0)
    assert retries.next(10.0) == pytest.approx(after)
    assert retries.is_due("x", 10.0 + after)
    assert retries.next(10.0 + 2 * after) == 0.0


def test_something_else_is_tried_at_once_and_from_the_first_pause():
    retries = Backoff(random.Random(7))
    for _ in range(5):
        retries.failed("x", 0.0, 1.0, wanted="a")
    assert not retries.is_due("x", 1.0, "a")
    assert retries.is_due("x", 1.0, "b")
    assert retries.failed("x", 1.0, 1.0, wanted="b") <= 1.0


def test_what_went_well_or_is_not_to_be_done_is_forgotten():
    retries = Backoff(random.Random(7))
    for _ in range(5):
        retries.failed("x", 0.0, 1.0)
        retries.failed("y", 0.0, 1.0)
    retries.succeeded("x")
    assert retries.failed("x", 0.0, 1.0) <= 1.0
    retries.keep(["x"])
    assert retries.is_due("y", 0.0)
    assert retries.failed("y", 0.0, 1.0) <= 1.0
