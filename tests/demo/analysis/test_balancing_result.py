"""The verdict on balancing: its windows of time, its claims, and the policy that a fleet gets."""

from collections import Counter

import pytest

from plimsoll.core.spec import parse as parse_resources
from plimsoll.core.spec.types.policy import POLICY_TYPES
from plimsoll.demo.analysis import balancing_result
from plimsoll.demo.analysis.balancing_result import (
    BalancingResult,
    assess_balancing,
    convergence_limits,
    converging_and_steady_windows,
    with_policy,
)
from plimsoll.demo.analysis.convergence import ConvergenceLimits
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.options import BALANCING_SCENARIO, parse, resource_folder
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests

SCENARIO = DemoScenario(seconds=40.0, join_from=0.05, join_to=0.25, step_at=0.5)
LIMITS = ConvergenceLimits(interval_seconds=1.0, normalization_seconds=0.01)


def run(apart, says=0, delivers=1000) -> LoadSeries:
    """Two edges that report each second; `apart(second)` is what their input differs by."""
    series = LoadSeries()
    for second in range(1, 41):
        for name, more in (("b1", apart(second)), ("b2", 0.0)):
            series.take(
                {"broker": name, "role": "edge", "epoch": 1, "seq": second, "input_utilization": 0.5 + more,
                 "output_utilization": 0.3, "match_delay_seconds": 0.002,
                 "counters": {"deliveries": delivers * second, "said_Cut": says * second}},
                second - 0.5,
            )  # fmt: skip
    return series


def judged(apart, policy="padres", **more) -> BalancingResult:
    return assess_balancing(policy, SCENARIO, LIMITS, ["b1", "b2"], run(apart, **more), [])


def test_a_run_that_comes_to_rest_twice_has_no_problem():
    found = judged(lambda second: 0.4 if second <= 12 or 20 < second <= 25 else 0.0)
    assert (found.converged_at, found.again_at) == (15.0, 28.0)
    assert found.unmet_claims == []
    assert found.steady_share == 1.0
    assert found.plain()["converged_at_seconds"] == 15.0


def test_one_that_never_does_says_what_is_apart():
    found = judged(lambda second: 0.4)
    assert (found.converged_at, found.again_at) == (None, None)
    assert found.unmet_claims == [
        "it had not converged by 20 s: input of b1 and b2 differs by 0.400",
        "it had not converged again by 40 s: input of b1 and b2 differs by 0.400",
    ]


def test_before_all_have_joined_nothing_has_converged():
    assert judged(lambda second: 0.4 if 10 < second <= 20 else 0.0).converged_at is None


def test_an_edge_that_is_overloaded_at_the_end_is_a_problem():
    found = judged(lambda second: 0.5 if second > 38 else 0.0)
    assert found.unmet_claims == ["at the end b1 is overloaded: input at 100%"]


def test_overhead_above_what_is_claimed_is_a_problem():
    found = judged(lambda second: 0.0, says=10)
    assert [text for text in found.unmet_claims if "while converging" in text] == []
    assert [text for text in found.unmet_claims if "while steady" in text] == [
        "balancing took 0.99% of all messages while steady, at most 0.5% is claimed"
    ]
    assert len(judged(lambda second: 0.0, says=20).unmet_claims) == 2


def test_windows_of_converging_and_of_rest():
    assert converging_and_steady_windows(15.0, 28.0, 20.0, 40.0) == (
        [(0.0, 15.0), (20.0, 28.0)],
        [(15.0, 20.0), (28.0, 40.0)],
    )
    assert converging_and_steady_windows(None, 28.0, 20.0, 40.0) == ([(0.0, 20.0), (20.0, 28.0)], [(28.0, 40.0)])
    assert converging_and_steady_windows(15.0, None, float("inf"), 40.0) == ([(0.0, 15.0)], [(15.0, 40.0)])


def test_overhead_is_told_over_time():
    found = judged(lambda second: 0.0, says=10).overhead_series
    assert found["seconds"] == [5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]
    assert found["ratio"][3] == pytest.approx(20 / 2020)
    assert found["sessions"][3] == pytest.approx(20.0)


def fleet(policy):
    return parse_resources(with_policy(manifests.load([str(resource_folder("balancing"))]), policy)).fleet.spec


@pytest.mark.parametrize("policy", sorted(POLICY_TYPES))
def test_a_policy_is_exchanged_and_its_detection_stays(policy):
    given = fleet(policy).defaults.policy
    assert given is not None
    assert given.type == balancing_result.POLICIES[policy]
    own = parse_resources(manifests.load([str(resource_folder("balancing"))])).fleet.spec.defaults.policy
    assert own is not None
    assert given.detection == own.detection


def test_off_is_no_policy():
    assert fleet("off").defaults.policy is None


def test_files_without_a_fleet_have_no_policy_to_exchange():
    with pytest.raises(ValueError, match="no BrokerFleet"):
        with_policy([], "padres")


def test_limits_are_the_papers_at_the_detections_of_the_fleet():
    """PADRES 2006, 3.2, with time 12.5 times as fast: N_f of 0.1 s is 8 ms. The fleet's own triggers are below 0.1."""
    found = convergence_limits(parse_resources(manifests.load([str(resource_folder("balancing"))])))
    assert found.normalization_seconds == pytest.approx(0.1 / BALANCING_SCENARIO.rate_factor)
    assert found.interval_seconds == pytest.approx(1.0)
    assert (found.ratio, found.delay, found.overload) == (0.1, 0.1, 0.95)


def test_the_fleet_has_the_proportions_of_the_paper():
    """PADRES 2006, 6.2: 2 GHz and 100, 200, 400, 1000 MHz; 10 and 0.6, 1.2, 2.4, 6 Mbit/s, 12.5 times."""
    found = parse_resources(manifests.load([str(resource_folder("balancing"))]))
    for name, megahertz, megabits in (
        ("b0", 2000, 10), ("b1", 100, 0.6), ("b2", 200, 1.2), ("b3", 400, 2.4), ("b4", 1000, 6),
    ):  # fmt: skip
        profile = found.profiles[name].spec
        assert profile.emulation is not None
        assert profile.emulation.base.seconds * megahertz == pytest.approx(0.4 / BALANCING_SCENARIO.rate_factor)
        assert profile.emulation.per_subscription.seconds * megahertz == pytest.approx(
            0.016 / BALANCING_SCENARIO.rate_factor
        )
        rate = profile.bandwidth.output_bytes_per_second
        assert rate is not None
        assert float(rate.value) == pytest.approx(megabits * 1e6 / 8 * BALANCING_SCENARIO.rate_factor)


def test_balancing_is_the_experiment_of_the_paper_under_any_options():
    """6.2: all come to the weakest edge, and half of the publishers double their rates later."""
    options = parse(["--balance", "padres", "--seconds", "60"])
    assert options.balance == "padres"
    assert options.scenario.prefer == "b1"
    assert options.scenario.seconds == 60.0
    assert options.scenario.step_seconds == pytest.approx(48.0)
    assert (options.scenario.step_publishers, options.scenario.step_factor) == (0.5, 2.0)
    assert parse(["--balance", "greedy"]).balance == "greedy"
    assert parse(["--place"]).balance is None
    assert parse([]).balance == "padres"
    with pytest.raises(SystemExit):
        parse(["--balance", "nonsense"])


def test_lines_for_people_say_when_and_how_much():
    lines = judged(lambda second: 0.4 if second <= 12 or 20 < second <= 25 else 0.0).lines()
    assert lines[0] == "balancing by padres: converged at 15 s; after the rates had risen at 28 s"
    assert Counter(line.split()[0] for line in lines) == {"balancing": 1, "0": 1, "overhead": 1}
