"""PADRES 2006, 6.2, figures 7a and 7b: how near predictions come, and how many samples they need."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median, pstdev
from typing import Any, Final, NamedTuple

from msgspec import structs

from plimsoll.demo.quotes import Quotes
from plimsoll.demo.workload import DemoScenario
from plimsoll.experiments.padres import local
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.experiments.stock_world import PolicyPlan, resources, traffic
from plimsoll.experiments.world_run import WorldRun, run_world
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "padres-accuracy"
SAMPLES: Final = (1, 5, 10, 25, 50, 100, 250, 500, 1000)
PAPER_SAMPLES: Final = 50
METRICS: Final = ("input_utilization", "output_utilization", "match_delay_seconds")
SMALLEST: Final = 0.01
"""Loads below this are left out: an error of a hundredth of a percent would count as a large one."""


class Estimate(NamedTuple):
    """A prediction of one edge's metric by one session, and what was measured. `has_newcomers`: others joined there."""

    metric: str
    predicted: float
    measured: float
    is_source: bool
    has_newcomers: bool

    @property
    def accuracy(self) -> float:
        """1 - |predicted - measured| / measured, at least 0."""
        return max(0.0, 1.0 - abs(self.predicted - self.measured) / self.measured)

    @property
    def error(self) -> float:
        return (self.predicted - self.measured) / self.measured


def with_press(policy: PolicyPlan, samples: int) -> PolicyPlan:
    """The policy with the paper's estimator."""
    block = dict(policy.block or {})
    own = {**block.get("estimation", {}), "type": "Press", "press": {"samples": samples, "timeout": "30s"}}
    own.pop("ring", None)
    return PolicyPlan({**block, "estimation": own}, policy.global_seconds)


def estimates(run: WorldRun, joined_seconds: float, newcomers_at: str) -> list[Estimate]:
    """What sessions that moved something predicted for their two edges."""
    found = []
    for session in run.sessions:
        if not session.subscribers or session.duration_seconds is None:
            continue
        for edge, measured in session.measured.items():
            joining = edge == newcomers_at and session.at_seconds < joined_seconds
            for metric in METRICS:
                value, told = measured[metric], session.predicted.get(edge, {}).get(metric)
                least = SMALLEST if metric != "match_delay_seconds" else 0.0
                if told is not None and value > least:
                    found.append(Estimate(metric, told, value, edge == session.source, joining))
    return found


def run(
    quotes: Quotes, policy: PolicyPlan, seed: int, *, scenario: DemoScenario = local.SCENARIO,
    samples: Sequence[int] = SAMPLES,
) -> ExperimentResult:  # fmt: skip
    """Both figures. With Press of 50 samples, as in the paper, and with the policy's own estimator."""
    scenario = structs.replace(scenario, seed=seed)
    by_samples = {n: _estimates_of(quotes, with_press(policy, n), scenario) for n in samples}
    at_paper = by_samples.get(PAPER_SAMPLES) or _estimates_of(quotes, with_press(policy, PAPER_SAMPLES), scenario)
    own = _estimates_of(quotes, policy, scenario)
    numbers = {
        "press": {str(n): _summary(each) for n, each in by_samples.items()}, "press_50": _summary(at_paper),
        "own": _summary(own),
    }  # fmt: skip
    return ExperimentResult(
        NAME, "PADRES 2006, 6.2: accuracy of estimation", policy.name, seed,
        _claims(at_paper, own, by_samples), [_scatter(at_paper), _by_samples(by_samples)], numbers, NOTES,
    )  # fmt: skip


NOTES: Final = (
    "Accuracy is 1 - |predicted - measured| / measured. Edges that newcomers join are kept apart, as in the paper.",
    "In the paper more than 50 samples make the estimate worse, since the first ones are old by the time of the last. "
    "Here publishers replay the quotes of one year in order and at an even rate, so a subscription's share of the "
    "traffic drifts slowly, and old samples harm less.",
)


def _estimates_of(quotes: Quotes, policy: PolicyPlan, scenario: DemoScenario) -> list[Estimate]:
    fleet = resources(local.clusters(local.EDGES), policy)
    run = run_world(fleet, traffic(scenario, quotes, "quotes"), scenario.seconds, scenario.seed)
    return estimates(run, scenario.join_to * scenario.seconds, scenario.prefer)


def _of(found: Sequence[Estimate], metric: str, *, newcomers: bool = False) -> list[Estimate]:
    return [each for each in found if each.metric == metric and each.has_newcomers == newcomers]


def _summary(found: Sequence[Estimate]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for metric in METRICS:
        each = [one.accuracy for one in _of(found, metric)]
        result[metric] = {
            "estimates": len(each), "mean": round(fmean(each), 4) if each else None,
            "median": round(median(each), 4) if each else None,
        }  # fmt: skip
    return result


def _claims(
    at_paper: Sequence[Estimate], own: Sequence[Estimate], by_samples: dict[int, list[Estimate]]
) -> list[Claim]:
    means = {metric: _mean_accuracy(at_paper, metric) for metric in METRICS}
    joining = [each.error for each in _of(at_paper, "input_utilization", newcomers=True)]
    few, more = _mean_accuracy(by_samples.get(1, []), METRICS[0]), _mean_accuracy(by_samples.get(10, []), METRICS[0])
    most = _mean_accuracy(by_samples.get(1000, []), METRICS[0])
    worst = min((value for value in means.values() if value is not None), default=None)
    return [
        Claim("Input is predicted with Press of 50 (7a)", "91 %", _percent(means[METRICS[0]]),
              _least(means[METRICS[0]], 0.91)),
        Claim("Input is the hardest metric to predict (7a)", "yes", ", ".join(_percent(means[m]) for m in METRICS),
              worst is not None and worst == means[METRICS[0]]),
        Claim("Edges with newcomers are underestimated (7a)", "yes",
              f"error {fmean(joining):+.1%} in {len(joining)}" if joining else "no such session",
              bool(joining) and fmean(joining) < 0),
        Claim("Accuracy rises from 1 to 10 samples (7b)", "yes", f"{_percent(few)} to {_percent(more)}",
              few is not None and more is not None and more > few),
        Claim("Beyond 50 samples accuracy falls (7b)", "yes",
              f"{_percent(means[METRICS[0]])} with 50, {_percent(most)} with 1,000",
              most is not None and means[METRICS[0]] is not None and most < (means[METRICS[0]] or 0)),
        Claim("Input is predicted by the policy's own estimator", "-", _percent(_mean_accuracy(own, METRICS[0])),
              _least(_mean_accuracy(own, METRICS[0]), 0.91)),
    ]  # fmt: skip


def _mean_accuracy(found: Sequence[Estimate], metric: str) -> float | None:
    each = [one.accuracy for one in _of(found, metric)]
    return fmean(each) if each else None


def _least(value: float | None, limit: float) -> bool:
    return value is not None and value >= limit


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _scatter(found: Sequence[Estimate]) -> Figure:
    """Figure 7a: estimated against measured input; 100 % accuracy is the diagonal."""
    groups = (
        ("source", [e for e in _of(found, METRICS[0]) if e.is_source]),
        ("target", [e for e in _of(found, METRICS[0]) if not e.is_source]),
        ("with newcomers", _of(found, METRICS[0], newcomers=True)),
    )
    lines = [
        ChartLine(name, look, sorted((e.measured, e.predicted) for e in each))
        for look, (name, each) in enumerate(groups, 1) if each
    ]  # fmt: skip
    ends = max((e.measured for e in found if e.metric == METRICS[0]), default=1.0)
    lines.append(ChartLine("exact", 7, [(0.0, 0.0), (ends, ends)]))
    chart = Chart("Estimated input utilization", "ratio", lines, along=("the measured input utilization", ""))
    return Figure("7a", chart, "PADRES 2006, figure 7a: Press of 50 samples.")


def _by_samples(by_samples: dict[int, list[Estimate]]) -> Figure:
    """Figure 7b: the mean error and its deviation by the number of samples."""
    rows = [(n, [each.error for each in _of(found, METRICS[0])]) for n, found in by_samples.items()]
    means = [(float(n), 100 * fmean(errors)) for n, errors in rows if errors]
    spread = [(float(n), 100 * pstdev(errors)) for n, errors in rows if errors]
    chart = Chart(
        "Error of estimated input utilization", "%", [ChartLine("mean", 1, means), ChartLine("deviation", 2, spread)],
        along=("samples", ""),
    )  # fmt: skip
    return Figure("7b", chart, "PADRES 2006, figure 7b: error of Press by the number of samples.")
