"""Crashes of edges, one after another: how long their subscribers are without an edge, and whether they lose anything.

    python -m plimsoll.soak.edge_crashes [--subscribers 1000] [--times 5] [--silent]

Each crash hits the edge that serves most subscribers: by SIGKILL, or with `--silent` by SIGSTOP, which looks like a
host without power. The edge is restarted when all its subscribers are served elsewhere. A subscriber's time is from the
signal to the moment at which its application learns of the next edge.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.core.printable import printable_lines
from plimsoll.core.verify import observations as seen
from plimsoll.demo.command import interruptible
from plimsoll.demo.journal import JournalAttachment, read_journal
from plimsoll.demo.leftovers import remove_folder
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.soak.added_latency import DurationHistogram
from plimsoll.soak.handover_audit import audit_handovers
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness, FleetHarnessError, HarnessLayout
from plimsoll.soak.harness.handover_driver import SoakListings
from plimsoll.soak.harness.residue import await_no_residue
from plimsoll.soak.session_series.slice_run import SoakLoad

REPORT = "crash-report.json"
LEAD_SECONDS = 3.0
RECOVERY_DEADLINE_SECONDS = 60.0
RESIDUE_SECONDS = 45.0
MAX_RECOVERY_SECONDS = 10.0


@dataclass(frozen=True)
class EdgeCrash:
    """When an edge was hit, and its subscribers at that time."""

    edge: str
    at: float
    served: frozenset[str]


class EdgeCrashRun:
    """A fleet of one cluster with three edges under load, and a number of crashes."""

    def __init__(self, folder: Path, load: SoakLoad, seed: int, times: int, *, silent: bool) -> None:
        self._folder, self._load, self._seed, self._times = folder, load, seed, times
        self._silent = silent

    def run(self) -> dict[str, Any]:
        """Run the fleet and its crashes; returns the report."""
        for name in ("journals", "fleet", "logs"):
            remove_folder(self._folder / name)
        scenario = self._load.scenario(self._seed)
        with (
            FleetHarness(self._folder / "fleet" / "crashes", HarnessLayout({"east": 3})) as harness,
            SoakClients(scenario, harness.entry(), self._folder, self._load.processes) as clients,
        ):
            self._harness, self._clients = harness, clients
            for _ in clients.joining():
                self._moment()
            clients.report_homes(True)
            self._until(clients.begin() + LEAD_SECONDS)
            crashes = [self._crash() for _ in range(self._times)]
            for _ in clients.ending():
                self._moment()
            left = await_no_residue(harness, SoakListings(harness.control.send), clients.homes, RESIDUE_SECONDS)
            clients.finish()
        harness.keep_logs(self._folder / "logs")
        residue = [seen.ResidueObserved("fleet", what, 1, time.monotonic()) for what in left]
        verdict = audit_handovers(*clients.journals, [], residue).verdict
        back = DurationHistogram()
        for seconds in recovery_times(clients.journals[1], crashes):
            back.add(seconds)
        hit = sum(len(one.served) for one in crashes)
        return {
            "crashes": len(crashes), "subscribers": scenario.subscribers, "hit": hit,
            "back": back.count, "back_ms": back.milliseconds(), "published": verdict.published,
            "expected": verdict.expected, "delivered": verdict.delivered, "lost": verdict.lost,
            "duplicated": verdict.duplicated, "reordered": verdict.reordered, "gaps": verdict.gaps,
            "orphaned": len(left), "violations": list(map(str, verdict.violations))[:20],
        }  # fmt: skip

    def _crash(self) -> EdgeCrash:
        homes = self._clients.homes()
        (edge, _), *_ = Counter(homes.values()).most_common()
        crash = EdgeCrash(edge, time.monotonic(), frozenset(name for name, at in homes.items() if at == edge))
        if self._silent:
            self._harness.freeze(edge)
        else:
            self._harness.kill(edge)
        while (missing := [at for at in self._clients.homes().values() if at in ("", edge)]) and (
            time.monotonic() < crash.at + RECOVERY_DEADLINE_SECONDS
        ):
            self._moment()
        if missing:
            raise FleetHarnessError(
                f"{RECOVERY_DEADLINE_SECONDS:g} s after the crash of {edge}, {len(missing)} of its subscribers are "
                "not served by another edge"
            )
        if self._silent:
            self._harness.thaw(edge)
        else:
            self._harness.start(edge)
        self._until(time.monotonic() + LEAD_SECONDS)
        return crash

    def _until(self, then: float) -> None:
        while time.monotonic() < then:
            self._moment()

    def _moment(self) -> None:
        for _ in self._harness.poll(0.02):
            pass
        self._clients.poll()


def recovery_times(journals: Sequence[Path], crashes: Sequence[EdgeCrash]) -> list[float]:
    """Seconds from each crash until each subscriber of that edge was attached to another."""
    found: list[float] = []
    waiting: dict[str, list[EdgeCrash]] = {}
    for crash in crashes:
        for name in crash.served:
            waiting.setdefault(name, []).append(crash)
    for path in journals:
        for one in read_journal(path):
            crash_of = waiting.get(one.subscriber) if isinstance(one, JournalAttachment) else None
            if crash_of and isinstance(one, JournalAttachment) and one.at >= crash_of[0].at:
                found.append(one.at - crash_of.pop(0).at)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the crashes; 0 if all subscribers were re-attached in time and the audit found nothing."""
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.soak.edge_crashes",
        description="Kill edges under load, and measure how long their subscribers take to attach to another edge.",
        epilog=f"Exit code 0: all subscribers were re-attached within {MAX_RECOVERY_SECONDS:g} s, and the audit found "
        "nothing. 1: otherwise.",
    )
    parser.add_argument("--subscribers", type=int, default=1000, help="(default %(default)s)")
    parser.add_argument("--times", type=int, default=5, help="number of crashes (default %(default)s)")
    parser.add_argument("--silent", action="store_true", help="freeze edges instead, like a host without power")
    parser.add_argument("--speed", type=float, default=2.0, help="speed of the publishers (default %(default)g)")
    parser.add_argument("--seed", type=int, default=1, help="of the load (default %(default)s)")
    parser.add_argument(
        "--report", type=Path, default=Path("soak-report"), metavar="DIR", help="folder (default %(default)s)"
    )
    given = parser.parse_args(argv)
    given.report.mkdir(parents=True, exist_ok=True)
    try:
        with interruptible():
            load = SoakLoad(given.subscribers, speed=given.speed)
            report = EdgeCrashRun(given.report, load, given.seed, given.times, silent=given.silent).run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: all processes were stopped; no report was written\n")
        return 130
    except (FleetHarnessError, WorkerError) as error:
        sys.stderr.write(printable_lines(f"edge crashes: {error}\n"))
        return 1
    path = given.report / REPORT
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    good = is_passed(report)
    back = report["back_ms"]
    sys.stdout.write(
        printable_lines(
            f"{'passed' if good else 'FAILED'}: {report['back']:,} of {report['hit']:,} subscribers re-attached after "
            f"p50 {back['p50']} ms, p99 {back['p99']} ms, max {back['max']} ms; {report['lost']} lost, "
            f"{report['duplicated']} duplicated, {report['reordered']} reordered, {report['gaps']} gaps, "
            f"{report['orphaned']} orphaned of {report['delivered']:,} deliveries\n  {path}\n"
        )
    )
    return 0 if good else 1


def is_passed(report: dict[str, Any]) -> bool:
    """Whether every subscriber was re-attached in time and lost nothing."""
    return (
        report["back"] == report["hit"] > 0
        and report["back_ms"]["max"] <= MAX_RECOVERY_SECONDS * 1000
        and not (report["violations"] or report["gaps"] or report["orphaned"])
        and report["expected"] > 0
    )


if __name__ == "__main__":
    sys.exit(main())
