"""Figures of arms: a line for each arm, a line for each broker."""

from plimsoll.experiments.bad.arm import ArmRun, BadArm, LoadPoint
from plimsoll.experiments.bad.arm_figures import brokers, comparison


def run(name: str) -> ArmRun:
    points = [LoadPoint(10.0 * n, 3000.0, 0.5, n, {"b1": 3000.0, "b2": 1000.0}) for n in range(4)]
    return ArmRun(BadArm(name, "Nearest"), points, 3, 1, 1, None, 0.0)


def test_arms_stand_side_by_side():
    found = comparison("x ", [run("one"), run("two")], "nearest")
    assert [each.name for each in found] == ["x a", "x b", "x c"]
    assert [line.name for line in found[0].chart.lines] == ["one", "two"]
    assert [each.chart.lines[0].points[-1] for each in found] == [(30.0, 3.0), (30.0, 0.5), (30.0, 3.0)]


def test_each_broker_has_a_line():
    found = brokers("a", run("one"))
    assert [(line.name, line.points[0]) for line in found.chart.lines] == [("b1", (0.0, 3.0)), ("b2", (0.0, 1.0))]
