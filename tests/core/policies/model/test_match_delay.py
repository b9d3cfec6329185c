"""Models of the matching delay: eq. 4, and a line through what was measured, against lines that are known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.match_delay import (
    FittedMatchDelay,
    LinearMatchDelay,
    MatchDelayFitter,
    MatchLoadChange,
)


def test_eq_4():
    """PADRES 2006, eq. 4: of 2000 subscriptions at 0.1 s, 500 go, so three quarters of the time are left."""
    linear = LinearMatchDelay(subscriptions=2000, delay_seconds=0.1)
    assert linear.after(MatchLoadChange(subscriptions=-500)) == pytest.approx(0.075)
    assert linear.after(MatchLoadChange(subscriptions=1000)) == pytest.approx(0.15)
    assert linear.after(MatchLoadChange(subscriptions=0, matches=40.0)) == pytest.approx(0.1)
    assert linear.after(MatchLoadChange(subscriptions=-3000)) == 0.0


def test_without_subscriptions_nothing_is_known():
    assert LinearMatchDelay(0, 0.01).after(MatchLoadChange(subscriptions=10)) == 0.01


@given(st.integers(1, 10**6), st.floats(1e-7, 10.0), st.lists(st.integers(-1000, 1000), max_size=5))
def test_eq_4_in_steps_is_eq_4_at_once(count: int, delay: float, changes: list[int]):
    """What goes and comes back changes nothing, and the order of changes does not matter."""
    at, now = count, LinearMatchDelay(count, delay)
    for change in changes:
        if at + change <= 0:
            return
        now = LinearMatchDelay(at + change, now.after(MatchLoadChange(change)))
        at += change
    assert now.delay_seconds == pytest.approx(LinearMatchDelay(count, delay).after(MatchLoadChange(at - count)))


def observed(base: float, slope: float, seed: int, count: int = 2000, noise: float = 0.2) -> MatchDelayFitter:
    fit, seeded = MatchDelayFitter(), random.Random(seed)
    for _ in range(count):
        matches = seeded.randint(20, 180)
        fit.note(matches, (base + slope * matches) * seeded.uniform(1 - noise, 1 + noise))
    return fit


@given(st.floats(1e-6, 1e-4), st.floats(1e-8, 1e-6), st.integers(0, 2**32))
def test_the_line_is_found(base: float, slope: float, seed: int):
    model = observed(base, slope, seed).model()
    for matches in (20.0, 50.0, 180.0):
        assert model.after(MatchLoadChange(matches=matches - model.matches)) == pytest.approx(
            base + slope * matches,
            rel=0.08,  # each measurement is off by up to 20 %
        )


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(1e-6, 1e-3), st.integers(1, 50)), max_size=30))
def test_no_model_is_negative_or_falls_with_matches(notes: list[tuple[float, float, int]]):
    fit = MatchDelayFitter(half_life=100.0)
    for matches, seconds, publications in notes:
        fit.note(matches * publications, seconds * publications, publications)
    model = fit.model()
    assert model.base_seconds >= -1e-12
    assert model.seconds_per_match >= 0.0
    assert model.after(MatchLoadChange(matches=-1e9)) <= model.delay_seconds + 1e-12


def test_where_matches_do_not_vary_the_line_goes_through_the_origin():
    fit = MatchDelayFitter()
    for _ in range(100):
        fit.note(50.0, 1e-4)
    assert fit.model().after(MatchLoadChange(matches=-25.0)) == pytest.approx(5e-5)


def test_what_does_not_depend_on_matches_is_all_base():
    model = observed(base=1e-4, slope=0.0, seed=3).model()
    assert model.after(MatchLoadChange(matches=-model.matches)) == pytest.approx(1e-4, rel=0.05)


def test_several_publications_at_once_count_as_one_by_one():
    single, together = MatchDelayFitter(half_life=1e9), MatchDelayFitter(half_life=1e9)
    for matches in (10.0, 20.0, 30.0, 40.0):
        for _ in range(5):
            single.note(matches, 1e-5 + matches * 1e-7)
        together.note(5 * matches, 5 * (1e-5 + matches * 1e-7), 5)
    one, many = single.model(), together.model()
    assert (many.base_seconds, many.seconds_per_match) == pytest.approx((one.base_seconds, one.seconds_per_match))
    assert many.matches == pytest.approx(one.matches)


def test_the_past_is_forgotten():
    fit, seeded = MatchDelayFitter(half_life=200.0), random.Random(5)
    for base in (1e-4, 3e-4):
        for _ in range(4000):
            matches = seeded.randint(0, 100)
            fit.note(matches, base + 1e-6 * matches)
    model = fit.model()
    assert model.base_seconds == pytest.approx(3e-4, rel=0.02)


def test_a_pause_of_the_machine_counts_little():
    fit = observed(1e-5, 1e-7, seed=7)
    before = fit.model().delay_seconds
    fit.note(100.0, 0.5)
    assert fit.model().delay_seconds == pytest.approx(before, rel=0.02)


def test_nothing_noted_is_a_model_of_nothing():
    assert MatchDelayFitter().model() == FittedMatchDelay(0.0, 0.0, 0.0)
    fit = MatchDelayFitter()
    fit.note(3.0, 1.0, 0)
    assert fit.model() == FittedMatchDelay(0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="half_life"):
        MatchDelayFitter(half_life=0.0)
