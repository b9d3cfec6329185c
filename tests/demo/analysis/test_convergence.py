"""Convergence of loads: three detections in a row, all pairs, every metric, and the one exception."""

import pytest

from plimsoll.demo.analysis import convergence
from plimsoll.demo.analysis.convergence import ConvergenceLimits, DetectionSample, EdgeLevels, StabilityStop

LIMITS = ConvergenceLimits(interval_seconds=1.0, normalization_seconds=0.01)


def levels(input=0.5, output=0.3, match=0.005):  # noqa: A002  # as the attribute is called
    return EdgeLevels(input, output, match)


def sample(seconds=1.0, **edges):
    return DetectionSample(seconds, {"a": levels(), "b": levels(), **edges})


def run(*balanced: bool, start=1.0):
    """One sample a second, in which edge b is balanced with a, or not."""
    return [sample(start + i, b=levels() if yes else levels(input=0.8)) for i, yes in enumerate(balanced)]


@pytest.mark.parametrize(
    ("other", "metric", "difference"),
    [
        (levels(input=0.601), "input", 0.101),
        (levels(input=0.3), "input", 0.2),
        (levels(output=0.45), "output", 0.15),
        (levels(match=0.0062), "match", 0.12),
    ],
)
def test_a_pair_that_differs_by_more_in_one_metric_is_apart(other, metric, difference):
    [found] = convergence.imbalances(sample(b=other), LIMITS)
    assert found.metric == metric
    assert found.difference == pytest.approx(difference)
    assert {found.higher, found.lower} == {"a", "b"}


def test_who_carries_more_is_told():
    [found] = convergence.imbalances(sample(b=levels(input=0.9)), LIMITS)
    assert (found.higher, found.lower) == ("b", "a")
    assert str(found) == "input of b and a differs by 0.400"


def test_within_the_triggers_nothing_is_apart():
    assert convergence.imbalances(sample(b=levels(0.6, 0.4, 0.006)), LIMITS) == []


def test_every_pair_counts():
    found = convergence.imbalances(sample(c=levels(input=0.7)), LIMITS)
    assert {(one.higher, one.lower) for one in found} == {("c", "a"), ("c", "b")}


def test_output_may_differ_where_the_stability_rule_has_said_so_and_nothing_else_may():
    """PADRES 2006, 5.3 and 6.2."""
    apart = sample(5.0, b=levels(output=0.6))
    assert convergence.imbalances(apart, LIMITS, [StabilityStop("b", "a", 4.0)]) == []
    assert convergence.imbalances(apart, LIMITS, [StabilityStop("a", "b", 4.0)]) == []
    assert len(convergence.imbalances(apart, LIMITS, [StabilityStop("b", "a", 5.5)])) == 1
    assert len(convergence.imbalances(apart, LIMITS, [StabilityStop("b", "c", 4.0)])) == 1
    assert len(convergence.imbalances(sample(5.0, b=levels(input=0.9)), LIMITS, [StabilityStop("b", "a", 4.0)])) == 1


def test_three_running_are_wanted():
    taken = run(True, True, False, True, True, True, True)
    assert convergence.converged_at(taken, LIMITS, 0.0, 10.0) == 6.0
    assert convergence.converged_at(run(True, True, False, True, True), LIMITS, 0.0, 10.0) is None


def test_what_was_before_does_not_count_and_what_comes_after_neither():
    taken = run(True, True, True, True, True, True)
    assert convergence.converged_at(taken, LIMITS, 2.0, 10.0) == 5.0
    assert convergence.converged_at(taken, LIMITS, 4.0, 6.0) is None
    assert convergence.converged_at(taken, LIMITS, 0.0, 2.0) is None


def test_detections_that_did_not_see_all_edges_break_a_run():
    taken = run(True, True) + run(True, start=4.0)
    assert convergence.converged_at(taken, LIMITS, 0.0, 10.0) is None


def columns(*rows):
    """(seconds, input) of one edge's reports."""
    return {
        "seconds": [at for at, _ in rows], "input_utilization": [value for _, value in rows],
        "output_utilization": [0.1] * len(rows), "match_delay_seconds": [0.001] * len(rows),
    }  # fmt: skip


def test_loads_are_averaged_over_a_detection_interval():
    limits = ConvergenceLimits(interval_seconds=2.0)
    found = convergence.detection_samples({"a": columns((0.5, 0.2), (1.5, 0.4), (2.5, 0.8), (4.5, 0.9))}, limits, 4.0)
    assert [(one.seconds, one.edges["a"].input) for one in found] == [(2.0, pytest.approx(0.3)), (4.0, 0.8)]


def test_an_edge_that_is_late_is_known_by_its_last_report_for_a_while():
    """Detection does the same: reports come a little less often than it looks."""
    both = {"a": columns(*((0.5 + i, 0.2) for i in range(6))), "b": columns((0.5, 0.4), (1.5, 0.5))}
    found = convergence.detection_samples(both, LIMITS, 6.0)
    assert [(one.seconds, one.edges["b"].input) for one in found] == [(1.0, 0.4), (2.0, 0.5), (3.0, 0.5), (4.0, 0.5)]
    assert convergence.detection_samples({}, LIMITS, 2.0) == []


def test_overload_is_told_by_edge_and_resource():
    found = convergence.overloaded_edges(sample(b=levels(input=1.2, output=0.96)), LIMITS)
    assert found == ["b is overloaded: input at 120%", "b is overloaded: output at 96%"]
    assert convergence.overloaded_edges(sample(b=levels(input=0.95)), LIMITS) == []


def test_the_share_of_balanced_detections():
    taken = run(True, False, True, True)
    assert convergence.share_balanced(taken, LIMITS, 0.0, 4.0) == pytest.approx(0.75)
    assert convergence.share_balanced(taken, LIMITS, 2.0, 4.0) == 1.0
    assert convergence.share_balanced(taken, LIMITS, 9.0, 10.0) is None


def test_the_widest_pair_of_each_metric():
    found = convergence.largest_differences(sample(b=levels(0.7, 0.1, 0.009), c=levels(0.4, 0.2, 0.004)), LIMITS)
    assert found == {"input": pytest.approx(0.3), "output": pytest.approx(0.2), "match": pytest.approx(0.5)}
