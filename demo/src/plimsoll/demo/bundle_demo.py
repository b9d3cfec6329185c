"""The demo of the Pulsar policy: topics in bundles, a hot bundle that splits, shedding, unloads, and a killed edge.

`python -m plimsoll.demo.bundle_demo`; the fleet is `examples/bundles`. Every delivery is audited as in the other demos,
and what the run claims is measured from load reports and journals.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.spec import Resources, parse
from plimsoll.demo.analysis import bundle_history
from plimsoll.demo.analysis.bundle_claims import (
    BundleFigures,
    UsageSpread,
    hottest_split,
    judged_claims,
    mean_usage,
    spread,
)
from plimsoll.demo.analysis.bundle_pauses import Waits, waits_of
from plimsoll.demo.analysis.bundle_sessions import BundleSession, bundle_sessions, longest_wait, moves_before
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.measured_claims import MeasuredClaim
from plimsoll.demo.audited_run import AuditedRun, exit_code, run_audited
from plimsoll.demo.bundle_director import BundleDirector
from plimsoll.demo.command import FAILED
from plimsoll.demo.live_display import LiveDisplay, stdout_display
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import bundle_page
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests

BUNDLE_SCENARIO: Final = DemoScenario(
    seconds=135.0, publishers=200, subscribers=120, topics=200, topic_rate_per_second=200.0, join_from=0.0,
    join_to=0.05, zero_traffic=0.0, step_at=0.2, step_publishers=1.0,
)  # fmt: skip
PLAIN_SECONDS: Final = 10.0
SHOWN_CASES: Final = 5
REPORT_FILES: Final = ("bundles.json", "bundles.html")
SPREAD_SECONDS: Final = 8.0
"""Over how long usages are averaged, before the step of the rates and at the end."""
COUNTS: Final = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")


@dataclass(frozen=True)
class BundleRun:
    """The result of a run. `waits`: of the subscribers of moved bundles, by session."""

    scenario: DemoScenario
    found: AuditedRun
    director: BundleDirector
    sessions: Sequence[BundleSession]
    waits: Mapping[str, Waits]
    limit: float
    threshold: float
    edges: Sequence[str]
    wall_seconds: float

    @property
    def figures(self) -> BundleFigures:
        """What the claims are about."""
        verdict, killed, scenario = self.found.judgement.verdict, self.director.killed, self.scenario
        return BundleFigures(
            counts={name: getattr(verdict, name) for name in COUNTS},
            looks=self.director.looks,
            limit=self.limit,
            threshold=self.threshold,
            shed=sum(each.is_shedding and each.moved > 0 for each in self.sessions),
            before=self._spread(scenario.step_seconds),
            after=self._spread(scenario.seconds),
            transfer_seconds=longest_wait(self.sessions, self.waits, "Transfer"),
            lookup_seconds=longest_wait(self.sessions, self.waits, "Lookup"),
            owned_again_seconds=None if killed is None else bundle_history.owned_again_seconds(
                self.director.looks, killed.edge, killed.at
            ),
        )  # fmt: skip

    def _spread(self, until: float) -> UsageSpread:
        series: LoadSeries = self.found.series
        usages = {edge: mean_usage(series.of(edge), until - SPREAD_SECONDS, until) for edge in self.edges}
        look = next((each for each in reversed(self.director.looks) if each.at <= until), None)
        return spread(usages, () if look is None else look.owners.values())

    @property
    def problems(self) -> list[str]:
        """The reasons why it fails, one sentence each: deliveries and laws alone."""
        return self.found.judgement.problems

    def plain(self) -> dict[str, Any]:
        """The contents of `bundles.json`."""
        figures, killed = self.figures, self.director.killed
        hot = hottest_split(figures)
        return {
            "verdict": "failed" if self.problems else "passed",
            "problems": self.problems,
            "violations": self.found.judgement.cases,
            **figures.counts,
            "claims": [claim.plain() for claim in judged_claims(figures)],
            "seed": self.scenario.seed,
            "wall_seconds": round(self.wall_seconds, 1),
            "machine_load": self.found.machine.plain(),
            "delivery_delay_seconds": self.found.judgement.delays.summary(),
            "scenario": msgspec.to_builtins(self.scenario),
            "hot_bundle": None if hot is None else {
                "at_seconds": round(hot.at, 2), "bundle": hot.bundle, "halves": list(hot.halves),
                "messages_per_second": round(hot.rate, 1), "limit": self.limit,
            },
            "spread": {
                name: {
                    "cov": one.cov, "highest_above_average": one.above,
                    "highest_above_average_of_several_bundles": one.above_of_several,
                }
                for name, one in (("before", figures.before), ("after", figures.after))
            },
            "waits": {
                name: {"longest_seconds": one.longest_seconds, "deliveries": one.deliveries}
                for name, one in self.waits.items()
            },
            "killed": None if killed is None else {"edge": killed.edge, "at_seconds": round(killed.at, 2)},
            "splits": [msgspec.to_builtins(each) for each in bundle_history.splits_seen(self.director.looks)],
            "owner_changes": [msgspec.to_builtins(each) for each in bundle_history.owner_changes(self.director.looks)],
            "sessions": [session.plain() for session in self.sessions],
            "brokers": {edge: {"series": self.found.series.of(edge)} for edge in self.edges},
            "bundles": bundle_rows(self.director),
        }  # fmt: skip


def bundle_rows(director: BundleDirector) -> list[dict[str, Any]]:
    """The bundles at the end: owner, edges that serve sessions of them, and messages per second."""
    if not director.looks:
        return []
    last = director.looks[-1]
    return [
        {
            "bundle": name, "edge": last.owners.get(name, ""), "serving": list(last.serving.get(name, ())),
            "messages_per_second": round(last.rates.get(name, 0.0), 1),
        }
        for name in sorted({*last.owners, *last.serving})
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code: 1 if something was lost, repeated or reordered, or a law was broken."""
    given = _parser().parse_args(argv)
    scenario = msgspec.structs.replace(
        BUNDLE_SCENARIO, seconds=given.seconds, subscribers=given.subscribers, seed=given.seed
    )
    live = stdout_display(min(PLAIN_SECONDS, scenario.seconds / 6))
    return exit_code(live, lambda: _reported(scenario, given.report, live))


def _reported(scenario: DemoScenario, folder: Path, live: LiveDisplay) -> int:
    run = run_bundles(scenario, parse(manifests.load([str(resource_folder("bundles"))])), folder, live)
    report = run.plain()
    bundle_page.write_report(report, folder)
    live.say(_summary(run, judged_claims(run.figures), folder))
    return FAILED if run.problems else 0


def run_bundles(scenario: DemoScenario, resources: Resources, folder: Path, live: LiveDisplay) -> BundleRun:
    """The whole run; everything it started has ended when it returns."""
    began = time.monotonic()
    director = BundleDirector(scenario.seconds, resources, live)
    found = run_audited(scenario, resources, folder, live, REPORT_FILES, director)
    sessions = bundle_sessions(found.sessions, found.began_at)
    until = math.inf if director.killed is None else director.killed.at
    waits = waits_of(moves_before(sessions, until, found.series.start), *found.journals)
    if found.judgement.passed:
        shutil.rmtree(folder / "journals")
    (cluster,) = resources.clusters.values()
    edges = sorted({*found.series.latest} - {head_of(found.series)})
    policy = cluster.spec.policy or resources.fleet.spec.defaults.policy
    if policy is None or policy.pulsar is None:
        raise ValueError("the fleet of this demo has the policy Pulsar")
    limit = float(policy.pulsar.split.max_message_rate.value)
    threshold = float(policy.pulsar.shedding.threshold.value)
    wall = time.monotonic() - began
    return BundleRun(scenario, found, director, sessions, waits, limit, threshold, edges, wall)


def head_of(series: LoadSeries) -> str:
    """The broker whose reports say who owns which bundle."""
    return next((name for name, report in series.latest.items() if "bundle_owners" in report), "")


def _summary(run: BundleRun, claims: Sequence[MeasuredClaim], folder: Path) -> str:
    counts, delay = run.figures.counts, run.found.judgement.delays.summary()
    said = "FAILED" if run.problems else "passed"
    lines = [f"{said}: {counts['lost']:,} lost, {counts['duplicated']:,} duplicated, {counts['reordered']:,} reordered"]
    lines += run.problems + run.found.judgement.cases[:SHOWN_CASES]
    lines.append(
        f"published {counts['published']:,}   expected {counts['expected']:,}   delivered {counts['delivered']:,}   "
        f"gaps {counts['gaps']:,}   delay p99 {1000 * (delay['p99'] or 0.0):,.0f} ms"
    )
    lines += [claim.line() for claim in claims]
    lines.append(f"{sum(claim.held for claim in claims)} of {len(claims)} claims held; {run.wall_seconds:.0f} s in all")
    return "\n  ".join([*lines, f"report: {folder / 'bundles.html'} and {folder / 'bundles.json'}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.demo.bundle_demo",
        description="Balance bundles of topics as Pulsar does, kill an edge, and audit every delivery.",
    )
    option: Callable[..., Any] = parser.add_argument
    base = BUNDLE_SCENARIO
    option("--seconds", type=float, default=base.seconds, help="of traffic (default %(default)g)")
    option("--subscribers", type=int, default=base.subscribers, help="(default %(default)s)")
    option("--seed", type=int, default=base.seed, help="of the plan (default %(default)s)")
    option(
        "--report", type=Path, default=Path("bundles-report"), metavar="DIR", help="where it goes (default %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
