from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.spec.quantities import Duration, Quantity, bytes_text, seconds_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("250m", Fraction(1, 4)),
        ("64Mi", 64 * 1024 * 1024),
        ("600k", 600_000),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        ("5E-1", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("100n", Fraction(1, 10**7)),
    ],
)
def test_quantity_is_read_as_kubernetes_reads_it(text, value):
    assert Quantity.parse(text).value == value


@pytest.mark.parametrize("text", ["", "Mi", "1 Mi", "1kb", "64MB", "1K", "0x10", "1e99", "--1", "1.2.3", "nan"])
def test_quantity_that_is_none_is_refused(text):
    with pytest.raises(ValueError):
        Quantity.parse(text)


def test_quantities_are_equal_by_value_and_keep_their_text():
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi")
    assert str(Quantity.parse("1024Mi")) == "1024Mi"


def test_quantity_rounds_up():
    assert Quantity.parse("1100m").whole == 2
    assert Quantity.parse("100u").milli == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500us", 0.0005), ("500µs", 0.0005), ("250ms", 0.25), ("30s", 30), ("1m30s", 90), ("1h", 3600), ("1.5s", 1.5)],
)
def test_duration(text, seconds):
    assert Duration.parse(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "30", "-1s", "s", "1 s", "1s foo", "1d", "1sm"])
def test_duration_that_is_none_is_refused(text):
    with pytest.raises(ValueError):
        Duration.parse(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_bytes_text_is_a_little_less_and_never_more(amount):
    read = Quantity.parse(bytes_text(amount)).value
    assert read <= amount
    assert amount == read or amount - read < amount / 10


@given(st.fractions(min_value=0, max_value=10**6))
def test_seconds_text_is_never_more(seconds):
    read = Duration.parse(seconds_text(seconds)).value
    assert seconds - 1 < read <= seconds
