"""The demo between clusters: four in a chain, all subscribers at one edge of the first, a later step of the rates.

`python -m plimsoll.demo.multi_cluster`; PADRES 2006, 6.3. Clusters balance with their neighbours, so load moves along
the chain. Every delivery is audited as in the other demo; the load of each cluster is reported beside it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.spec import Resources, parse
from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.analysis.cluster_loads import ClusterLoadSeries
from plimsoll.demo.analysis.machine_load import MachineLoad
from plimsoll.demo.audited_run import exit_code, run_audited
from plimsoll.demo.command import FAILED
from plimsoll.demo.live_display import LiveDisplay, stdout_display
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import multi_cluster_page
from plimsoll.demo.run_audit import DemoAudit
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests

MULTI_CLUSTER_SCENARIO: Final = DemoScenario(
    seconds=150.0, rate_factor=10.0, zero_traffic=0.2, join_from=0.02, join_to=0.3, prefer="b11", step_at=0.7
)
PLAIN_SECONDS: Final = 10.0
SHOWN_CASES: Final = 5
REPORT_FILES: Final = ("global.json", "global.html")


@dataclass(frozen=True)
class MultiClusterRun:
    """The result of a run."""

    scenario: DemoScenario
    clusters: ClusterLoadSeries
    judgement: DemoAudit
    sessions: Sequence[dict[str, Any]]
    machine: MachineLoad
    is_strict: bool = False

    @property
    def claims(self) -> ClaimsVerdict:
        """Whether load has spread along the chain."""
        unmet = [*self.clusters.unmet_claims(self.scenario.seconds), *self._unmoved()]
        return ClaimsVerdict(unmet, self.machine, self.is_strict)

    @property
    def problems(self) -> list[str]:
        """The reasons why it fails, one sentence each."""
        return [*self.judgement.problems, *self.claims.faults]

    def _unmoved(self) -> list[str]:
        moved = sum(one["moved"] for one in self.sessions if one["between"])
        return [] if moved else ["no session between clusters moved a subscriber"]

    def plain(self) -> dict[str, Any]:
        """The contents of `global.json`."""
        verdict, delay = self.judgement.verdict, self.judgement.delays.summary()
        counts = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")
        return {
            "verdict": "failed" if self.problems else "passed",
            "problems": self.problems,
            "claims": self.claims.plain(),
            "machine_load": self.machine.plain(),
            **{name: getattr(verdict, name) for name in counts},
            "delivery_delay_seconds": delay,
            "scenario": msgspec.to_builtins(self.scenario),
            "clusters": self.clusters.plain(self.scenario.seconds),
            "sessions": list(self.sessions),
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code: 0 if every delivery was right; with `--strict` also if load has spread."""
    given = _parser().parse_args(argv)
    scenario = msgspec.structs.replace(
        MULTI_CLUSTER_SCENARIO, seconds=given.seconds, subscribers=given.subscribers, seed=given.seed
    )
    live = stdout_display(min(PLAIN_SECONDS, scenario.seconds / 6))
    return exit_code(live, lambda: _reported(scenario, given.report, live, given.strict))


def _reported(scenario: DemoScenario, folder: Path, live: LiveDisplay, is_strict: bool) -> int:
    run = run_multi_cluster(scenario, parse(manifests.load([str(resource_folder("global"))])), folder, live, is_strict)
    multi_cluster_page.write_report(run.plain(), folder)
    live.say(_summary(run, folder))
    return FAILED if run.problems else 0


def run_multi_cluster(
    scenario: DemoScenario, fleet_resources: Resources, folder: Path, live: LiveDisplay, is_strict: bool = False
) -> MultiClusterRun:
    """The whole run; everything it started has ended when it returns."""
    found = run_audited(scenario, fleet_resources, folder, live, REPORT_FILES)
    if found.judgement.passed:
        shutil.rmtree(folder / "journals")
    sessions = session_summaries(found.sessions, found.began_at)
    edges = {
        name: [group.name for group in cluster.spec.edges] for name, cluster in sorted(fleet_resources.clusters.items())
    }
    clusters = ClusterLoadSeries(edges, found.series)
    return MultiClusterRun(scenario, clusters, found.judgement, sessions, found.machine, is_strict)


def session_summaries(objects: Sequence[Mapping[str, Any]], began_at: float) -> list[dict[str, Any]]:
    """The sessions in the order of their beginning: source, target, number of members, and outcome."""
    found = []
    for item in objects:
        status = item.get("status", {})
        record = status.get("record")
        if record is None:
            continue
        progress = status.get("progress", {})
        found.append({
            "name": item["metadata"]["name"], "between": bool(record.get("between")),
            "source": status.get("source", ""), "target": status.get("target", ""),
            "at_seconds": round(record["requestedAt"] - began_at, 2), "state": status.get("phase", ""),
            "reason": status.get("reason", ""), "message": status.get("message", ""),
            "moved": int(progress.get("moved", 0)),
        })  # fmt: skip
    return sorted(found, key=lambda one: (one["at_seconds"], one["name"]))


def _summary(run: MultiClusterRun, folder: Path) -> str:
    verdict, delay = run.judgement.verdict, run.judgement.delays.summary()
    said = "FAILED" if run.problems else "passed"
    lines = [f"{said}: {verdict.lost:,} lost, {verdict.duplicated:,} duplicated, {verdict.reordered:,} reordered"]
    lines += run.problems + run.judgement.cases[:SHOWN_CASES]
    lines.append(
        f"published {verdict.published:,}   expected {verdict.expected:,}   delivered {verdict.delivered:,}   "
        f"gaps {verdict.gaps:,}   delay p99 {1000 * (delay['p99'] or 0.0):,.0f} ms"
    )
    between = [one for one in run.sessions if one["between"]]
    lines.append(
        f"{len(between)} sessions between clusters moved {sum(one['moved'] for one in between):,}; "
        f"{sum(not one['between'] for one in run.sessions)} sessions of edges"
    )
    lines += run.clusters.lines(run.scenario.seconds)
    lines += run.claims.lines()
    return "\n  ".join([*lines, f"report: {folder / 'global.html'} and {folder / 'global.json'}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.demo.multi_cluster",
        description="Balance four clusters in a chain, and audit every delivery.",
    )
    parser.add_argument(
        "--seconds", type=float, default=MULTI_CLUSTER_SCENARIO.seconds, help="of traffic (default %(default)g)"
    )
    parser.add_argument(
        "--subscribers", type=int, default=MULTI_CLUSTER_SCENARIO.subscribers, help="(default %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=MULTI_CLUSTER_SCENARIO.seed, help="of the plan (default %(default)s)"
    )
    parser.add_argument("--strict", action="store_true", help="also fail if load has not spread along the chain")
    parser.add_argument(
        "--report", type=Path, default=Path("global-report"), metavar="DIR", help="where it goes (default %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
