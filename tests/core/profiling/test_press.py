"""PRESS: Table 1 of the paper with its own publications and subscriptions, eq. 2 and 3, N, T, and brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import pair_of

from plimsoll.core import predicates
from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.predicates.subscription import Attributes
from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.sampler import AcceptFunction, MatchFunction

ARRIVALS: list[Attributes] = [
    {"class": "STOCK", "volume": 0},
    {"class": "STOCK", "volume": 10},
    {"class": "STOCK", "volume": 20},
    {"class": "SPORTS", "type": "racing"},
    {"class": "STOCK", "volume": 100},
    {"class": "STOCK", "volume": 500},
]
CANDIDATES = {
    "[class,=,'STOCK']": 0b110111,
    "[class,=,'STOCK'],[volume,>,15]": 0b110100,
    "[class,=,'STOCK'],[volume,>,150]": 0b100000,
    "[class,=,'SPORTS']": 0b001000,
}
COVERING = ("[class,=,'STOCK'],[volume,>,50]", "[class,=,'STOCK'],[volume,<,5]", "[class,=,'MOVIES']")


def matching(*texts: str) -> MatchFunction:
    subscriptions = {text: predicates.parse(text) for text in texts}
    return lambda attributes: [text for text, each in subscriptions.items() if each.matches(attributes)]


def accepting(*texts: str) -> AcceptFunction:
    found = matching(*texts)
    return lambda attributes: bool(list(found(attributes)))


def rows(*texts: str) -> list[ProfileRow]:
    return [ProfileRow(text, 0, (f"who asks for {text}",)) for text in texts]


def test_table_1():
    """PADRES 2006, Table 1, N = 6, at 3 publications a second: six within two seconds.

    [class,=,'STOCK'] has 5 of 6 bits: 2.5 a second (eq. 2). 110111 ANDNOT 110001 = 000110 (eq. 3): the target takes in
    1 a second more for it. Once it is offloaded the target's vector is 110111: the volumes above 15 come for nothing.
    """
    press = PressEstimator(samples=6, timeout_seconds=30.0, now=10.0)
    for i, attributes in enumerate(ARRIVALS):
        assert not press.is_complete(10.0 + i / 3)
        press.note("p", attributes, 100, 10.0 + (i + 1) / 3)
    assert press.is_complete(12.0)
    profile = press.profile(rows(*CANDIDATES), matching(*CANDIDATES), accepting(*COVERING), 99.0)
    assert {row.key: row.bits for row in profile.rows} == CANDIDATES
    assert profile.accepting == 0b110001
    stock, above_15, above_150, sports = profile.rows
    assert profile.rate(stock) == pytest.approx(2.5)
    assert stock.bits & ~profile.accepting == 0b000110
    pair = pair_of(profile)
    assert pair.extra_rate(stock) == pytest.approx(1.0)
    pair.choose(stock, 1)
    assert pair.accepting == 0b110111
    assert [pair.extra_rate(row) for row in (above_15, above_150)] == [0.0, 0.0]
    assert pair.extra_rate(sports) == pytest.approx(0.5)


def test_it_ends_after_n_publications():
    press = PressEstimator(samples=3, timeout_seconds=30.0)
    for second in range(1, 10):
        press.note("p", {"n": second}, 100, float(second))
    (stretch,) = press.sample_runs(50.0)
    assert [attributes["n"] for attributes, _, _ in stretch.samples] == [1, 2, 3]
    assert stretch.rate == pytest.approx(1.0)
    assert press.ends_at() == 3.0


def test_it_ends_after_t_seconds():
    press = PressEstimator(samples=50, timeout_seconds=30.0, now=100.0)
    for second in (101.0, 115.0, 130.0, 131.0):
        press.note("p", {}, 100, second)
    assert not press.is_complete(129.9)
    assert press.is_complete(130.0)
    assert len(press) == 2
    (stretch,) = press.sample_runs(200.0)
    assert stretch.rate == pytest.approx(2 / 30)


def test_before_its_end_it_counts_what_there_is():
    press = PressEstimator(samples=50, timeout_seconds=30.0)
    assert press.sample_runs(10.0) == ()
    press.note("p", {}, 100, 5.0)
    assert press.sample_runs(10.0)[0].rate == pytest.approx(0.1)


def test_the_rate_is_that_of_all_that_was_counted():
    """Three samples came by chance in one second; before, ten seconds had ten."""
    press = PressEstimator(samples=3, timeout_seconds=30.0, now=10.0, counted=(10.0, 10.0))
    for number in range(3):
        press.note("p", {}, 100, 10.0 + (number + 1) / 3)
    assert press.sample_runs(20.0)[0].rate == pytest.approx(13 / 11)
    assert PressEstimator(counted=(10.0, 10.0)).sample_runs(20.0) == (), "without samples there is nothing to weigh"


def test_nothing_comes_of_nothing():
    profile = PressEstimator().profile(rows("[a,=,1]"), matching("[a,=,1]"), accepting("[a,=,1]"), 30.0)
    assert profile.input_rate == 0.0
    assert profile.rate(profile.rows[0]) == 0.0


@pytest.mark.parametrize(("samples", "seconds"), [(0, 30.0), (50, 0.0), (50, float("inf")), (50, float("nan"))])
def test_parameters_out_of_range_are_refused(samples: int, seconds: float):
    with pytest.raises(ValueError, match="PRESS takes"):
        PressEstimator(samples, seconds)


values = st.integers(0, 5)


@given(
    publications=st.lists(st.tuples(values, st.floats(0.001, 0.5)), min_size=1, max_size=40),
    bounds=st.lists(values, min_size=1, max_size=5, unique=True),
    covering=st.lists(values, max_size=3),
    most=st.integers(1, 40),
)
def test_eq_2_and_3_by_counting(
    publications: list[tuple[int, float]], bounds: list[int], covering: list[int], most: int
):
    """Rates are counts over the time of sampling; rows ask for [v,>,bound], the target for [v,=,c] of each c."""
    press, now, ended = PressEstimator(samples=most, timeout_seconds=5.0), 0.0, 5.0
    taken: list[int] = []
    for value, gap in publications:
        now += gap
        press.note("p", {"v": value}, 100, now)
        if len(taken) < most and now < 5.0:
            taken.append(value)
            ended = now if len(taken) == most else 5.0
    asked = [ProfileRow(str(bound), 0, (f"s{bound}",)) for bound in bounds]
    profile = press.profile(
        asked,
        lambda attributes: [str(bound) for bound in bounds if float(attributes["v"]) > bound],
        lambda attributes: attributes["v"] in covering,
        1000.0,
    )
    pair = pair_of(profile)
    for row, bound in zip(profile.rows, bounds, strict=True):
        matched = [value for value in taken if value > bound]
        assert profile.rate(row) == pytest.approx(len(matched) / ended)
        assert pair.extra_rate(row) == pytest.approx(sum(value not in covering for value in matched) / ended)
    assert profile.input_rate == pytest.approx(sum(value > min(bounds) for value in taken) / ended)


def test_publications_of_one_instant_give_no_rate():
    press = PressEstimator(samples=1, now=1.0)
    press.note("p", {}, 100, 1.0 + 1e-9)
    assert press.sample_runs(2.0) == ()
