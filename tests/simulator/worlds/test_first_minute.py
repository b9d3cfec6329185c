"""Means of the first minute: what comes later, and what was before the start, has no part in them."""

import pytest

from plimsoll.simulator.worlds.first_minute import METRICS, FirstMinute


def report(broker: str, value: float) -> dict[str, object]:
    return {"broker": broker, **dict.fromkeys(METRICS, value)}


def test_means_by_broker():
    first = FirstMinute()
    for at, value in ((0.5, 9.0), (5.0, 1.0), (60.0, 2.0), (60.1, 50.0)):
        first.take(report("b", value), at)
    first.take(report("a", 4.0), 3.0)  # the only one
    assert list(first.means()) == ["a", "b"]
    assert first.means()["b"] == pytest.approx(dict.fromkeys(METRICS, 1.5))
    assert first.means()["a"]["input_rate"] == 4.0
