"""The demo of consumer groups: slices move with load, with consumers that come and go, and when one is killed.

`python -m plimsoll.demo.group_demo`; the fleet is `examples/groups`. Consumers write down each item that they finish,
and what the run claims is measured from that and from the looks at their slices.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from plimsoll.core.spec import parse
from plimsoll.demo.analysis.group_claims import FAST, LATE, SLOW, judged_claims
from plimsoll.demo.audited_run import exit_code
from plimsoll.demo.command import FAILED
from plimsoll.demo.group_run import GroupRun, run_group
from plimsoll.demo.live_display import LiveDisplay, stdout_display
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import group_page
from plimsoll.local import manifests

SECONDS: Final = 100.0
REPORT_FILES: Final = ["groups.json", "groups.html"]


def report_of(run: GroupRun, wall_seconds: float) -> dict[str, Any]:
    """The contents of `groups.json`."""
    figures, verdict = run.figures, run.figures.verdict
    problems = [*run.faults, *(f"{kind}: {text}" for kind, text in verdict.faults)]
    times = figures.times
    return {
        "verdict": "failed" if problems or not verdict.holds else "passed",
        "problems": problems,
        "published": run.published,
        "processed_once": verdict.processed_once,
        "lost": verdict.lost,
        "repeated": verdict.repeated,
        "redelivered": verdict.redelivered,
        "reordered": verdict.reordered,
        "claims": [claim.plain() for claim in judged_claims(figures)],
        "slices": figures.count,
        "slices_moved": figures.looks[-1].moved if figures.looks else 0,
        "wall_seconds": round(wall_seconds, 1),
        "events": [
            (times.burn, f"{SLOW} takes four times as long for each item"), (times.join, f"{LATE} joins"),
            (times.leave, f"{SLOW} leaves"), (times.kill, f"{LATE} is killed"),
        ],
        "consumers": {name: _consumer(run, name) for name in (FAST, SLOW, LATE)},
        "looks": [
            {
                "at": look.at, "slices": dict(look.slices), "items_per_second": dict(look.items_per_second),
                "backlog": look.backlog, "moved": look.moved,
            }
            for look in figures.looks
        ],
    }  # fmt: skip


def _consumer(run: GroupRun, name: str) -> dict[str, Any]:
    own = [each for each in run.figures.given if each.consumer == name]
    work = [each.until - each.at for each in own if each.until is not None]
    return {
        "finished": len(work),
        "redelivered": sum(each.is_redelivered for each in own),
        "seconds_per_item": round(fmean(work), 6) if work else 0.0,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code: 1 if an item was lost, repeated or reordered, or a broker has ended."""
    given = _parser().parse_args(argv)
    live = stdout_display(10.0)
    return exit_code(live, lambda: _reported(given.seconds, given.report, live))


def _reported(seconds: float, folder: Path, live: LiveDisplay) -> int:
    began = time.monotonic()
    resources = parse(manifests.load([str(resource_folder("groups"))]))
    run = run_group(seconds, resources, folder, live, REPORT_FILES)
    report = report_of(run, time.monotonic() - began)
    group_page.write_report(report, folder)
    live.say(summary(report, run, folder))
    return 0 if report["verdict"] == "passed" else FAILED


def summary(report: dict[str, Any], run: GroupRun, folder: Path) -> str:
    """The result for the terminal."""
    claims = judged_claims(run.figures)
    lines = [
        f"{report['verdict']}: {report['processed_once']:,} of {report['published']:,} items processed once, "
        f"{report['lost']:,} lost, {report['repeated']:,} repeated, {report['redelivered']:,} marked as redelivered",
        *report["problems"],
        *(claim.line() for claim in claims),
        f"{sum(claim.held for claim in claims)} of {len(claims)} claims held; {report['wall_seconds']:.0f} s in all",
        f"report: {folder / 'groups.html'} and {folder / 'groups.json'}",
    ]
    return "\n  ".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.demo.group_demo",
        description="Share a stream among consumers that come, burn, leave and die, and count every item.",
    )
    option: Callable[..., Any] = parser.add_argument
    option("--seconds", type=float, default=SECONDS, help="of traffic (default %(default)g)")
    option(
        "--report", type=Path, default=Path("groups-report"), metavar="DIR", help="where it goes (default %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
