"""Ring: what it keeps, what it forgets, and the rates it tells, against counting by hand."""

from __future__ import annotations

import random

import pytest

from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.ring import MARKS, Ring

WINDOW = 600.0


def noted(ring: Ring, publisher: str, rate: float, begin: float, end: float, seed: int = 1) -> None:
    """Poisson arrivals of one publisher; the attributes name it."""
    seeded, now = random.Random(seed), begin
    while (now := now + seeded.expovariate(rate)) < end:
        ring.note(publisher, {"from": publisher}, 100, now)


def test_a_steady_publisher_is_counted_over_the_window():
    ring = Ring(width=64, window_seconds=WINDOW)
    for second in range(1, 1001):
        ring.note("p", {"n": second}, 100, float(second))
    (stretch,) = ring.stretches(1000.0)
    assert stretch.rate == pytest.approx(1.0, rel=0.01)
    assert [attributes["n"] for attributes, _, _ in stretch.samples] == list(range(937, 1001))
    assert stretch.recent == 64


def test_a_row_takes_its_share_of_its_publishers_rate():
    ring = Ring(width=10, window_seconds=WINDOW)
    for second in range(1, 1001):
        ring.note("p", {"high": second % 10}, 100, float(second))
        if second % 4 == 0:
            ring.note("q", {"high": 100}, 200, float(second))
    rows = [Row("above 6", 0, ("a",)), Row("all", 0, ("b",))]
    profile = ring.profile(
        rows,
        lambda attributes: ["all", "above 6"] if float(attributes["high"]) > 6 else ["all"],
        lambda attributes: float(attributes["high"]) < 5,
        1000.0,
    )
    assert profile.rate(profile.rows[0]) == pytest.approx(0.3 + 0.25, rel=0.01)
    assert profile.rate(profile.rows[1]) == pytest.approx(1.25, rel=0.01)
    assert profile.extra_rate(profile.rows[1]) == pytest.approx(0.5 + 0.25, rel=0.01)
    assert profile.output_bytes_per_second(profile.rows[0]) == pytest.approx(0.3 * 100 + 0.25 * 200, rel=0.01)


def test_a_rate_is_counted_since_it_changed():
    ring = Ring(width=64, window_seconds=WINDOW)
    noted(ring, "p", 1.0, 0.0, 1000.0)
    before = ring.stretches(1000.0)[0].rate
    noted(ring, "p", 3.0, 1000.0, 1060.0, seed=2)
    after = ring.stretches(1060.0)[0].rate
    assert before == pytest.approx(1.0, rel=0.1)
    assert after == pytest.approx(3.0, rel=0.2)


def test_who_is_silent_is_forgotten():
    ring = Ring(width=4, window_seconds=WINDOW)
    ring.note("gone", {}, 100, 1.0)
    for second in range(2, int(WINDOW * (1 + 2 / MARKS)) + 2):
        ring.note("here", {}, 100, float(second))
    assert len(ring.stretches(WINDOW * 1.1)) == 1
    assert len(ring) == 4
