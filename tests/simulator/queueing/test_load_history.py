"""Figures of loads: means over a time, deviation, and the time above the limit."""

import pytest

from plimsoll.simulator.queueing.load_history import LoadHistory, cov


def report(broker: str, load: float, role: str = "edge") -> dict[str, object]:
    return {"broker": broker, "role": role, "input_utilization": load / 2, "output_utilization": load}


def test_means_and_overload_are_of_edges():
    loads = LoadHistory()
    for at in range(10):
        loads.take(report("a", 1.0 if at < 4 else 0.5), float(at))
        loads.take(report("b", 0.25), float(at))
        loads.take(report("h", 2.0, "head"), float(at))
    assert loads.means(4.0) == [0.5, 0.25]
    assert loads.means(2.0, 6.0) == [0.75, 0.25]
    assert loads.means(50.0) == [0.0, 0.0]
    assert loads.overloaded_seconds(10.0) == pytest.approx(4.0)


def test_cov():
    assert cov([0.25, 0.75]) == 0.5
    assert cov([]) == cov([0.0, 0.0]) == 0.0
