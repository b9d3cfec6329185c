"""`python -m plimsoll.local.soak`: a fleet, load, disturbances, and a verdict over every delivery."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.core.spec import parse as parse_resources
from plimsoll.local import manifests
from plimsoll.local.demo.command import interruptible
from plimsoll.local.demo.fleet import Fleet
from plimsoll.local.demo.judging import Judgement, judge
from plimsoll.local.demo.live import Live
from plimsoll.local.demo.options import resources
from plimsoll.local.demo.workers import WorkerError
from plimsoll.local.demo.workload import Scenario
from plimsoll.local.home import FleetFolder
from plimsoll.local.soak import slices
from plimsoll.local.soak.ground import GroundError
from plimsoll.local.soak.moving import Mix
from plimsoll.local.soak.plan import plan
from plimsoll.local.soak.saturating import MOST_SHARE
from plimsoll.local.soak.sessions import Load
from plimsoll.local.soak.slices import Wanted
from plimsoll.local.soak.traffic import DisturbedTraffic

REPORT = "soak-report.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak; returns the exit code of the process."""
    parser = _parser()
    given = parser.parse_args(argv)
    if given.sessions is not None and (problem := _problem(given)):
        parser.error(problem)
    if given.sessions is not None:
        return _sessions(given)
    subscribers, join_to = given.subscribers or 500, min(0.6, 20 / given.seconds)
    scenario = Scenario(seconds=given.seconds, subscribers=subscribers, seed=given.seed, join_to=join_to)
    try:
        with interruptible():
            return run(scenario, given.every, given.report, given.clients)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: everything was stopped, and there is no report\n")
        return 130


def _problem(given: argparse.Namespace) -> str:
    """Why such sessions could not be had; empty if they can."""
    subscribers = given.subscribers or 300
    if given.saturated and given.members > subscribers * MOST_SHARE:
        return f"--saturated leaves --members of at most {subscribers * MOST_SHARE:.0f} of {subscribers} --subscribers"
    if given.saturated and given.utilization:
        return "--utilization is for edges that are not saturated, and --saturated for one that is"
    if given.members > subscribers:
        return f"--members {given.members} are more than the {subscribers} --subscribers"
    return ""


def _sessions(given: argparse.Namespace) -> int:
    load = Load(
        given.subscribers or 300, speed=given.speed, processes=given.clients, saturated=given.saturated,
        disturbed=given.disturb, utilization=given.utilization,
    )  # fmt: skip
    mix = Mix(given.members, given.replay, 0.0 if given.members or given.saturated else Mix.abort_share)
    wanted = Wanted(given.sessions, given.slice, given.seed, given.lanes, load, mix, given.report)
    wanted.folder.mkdir(parents=True, exist_ok=True)
    try:
        with interruptible():
            return slices.run(wanted, lambda line: _write(line + "\n"))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: everything was stopped; the slices that had ended are kept\n")
        return 130
    except (ValueError, GroundError, WorkerError) as error:
        sys.stderr.write(f"soak: {error}\n")
        return 2 if isinstance(error, ValueError) else 1


def run(scenario: Scenario, every_seconds: float, folder: Path, clients: int) -> int:
    """One soak; its report goes to `folder`."""
    live = Live(_write, terminal=False, interval_seconds=10.0)
    for name in ("journals", "logs", "fleet"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    parsed = parse_resources(manifests.load([str(resources())]))
    began = time.monotonic()
    fleet = Fleet(FleetFolder(folder / "fleet" / parsed.fleet.name), parsed)
    orderly = False
    try:
        fleet.await_ready()
        heads = [b.name for b in fleet.brokers.values() if b.role == "head"]
        edges = [b.name for b in fleet.brokers.values() if b.role == "edge"]
        ahead = plan(scenario.seed, scenario.seconds, every_seconds, heads, edges, clients)
        live.say(f"{scenario.seconds:g} s, {scenario.subscribers:,} subscribers, seed {scenario.seed}")
        with DisturbedTraffic(scenario, fleet, folder, clients, live, ahead) as traffic:
            faults = traffic.run()
        orderly = True
    finally:
        late = fleet.stop(hurry=not orderly)
        fleet.keep_logs(folder / "logs")
    judgement = judge(*traffic.journals, traffic.start, [*faults, *late])
    report = _report(scenario, traffic, judgement, time.monotonic() - began)
    (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    live.say(_summary(judgement, report, folder / REPORT))
    shutil.rmtree(folder / "journals")
    return 0 if judgement.passed else 1


def _report(scenario: Scenario, traffic: DisturbedTraffic, judgement: Judgement, seconds: float) -> dict[str, Any]:
    verdict, delay = judgement.verdict, judgement.delays.summary()
    return {
        "seed": scenario.seed,
        "seconds": round(seconds, 1),
        "disturbances": dict(Counter(each.kind for each in traffic.done)),
        "published": verdict.published,
        "expected": verdict.expected,
        "delivered": verdict.delivered,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "reordered": verdict.reordered,
        "gaps": verdict.gaps,
        "violated": dict(verdict.violated),
        "cases": judgement.cases,
        "problems": judgement.problems,
        "delay_ms": {name: None if value is None else round(value * 1000, 2) for name, value in delay.items()},
        "clients": traffic.counters,
    }


def _summary(judgement: Judgement, report: dict[str, Any], path: Path) -> str:
    head = "passed" if judgement.passed else "FAILED: " + "; ".join(judgement.problems)
    counts = "   ".join(f"{name} {report[name]:,}" for name in ("published", "expected", "delivered", "gaps"))
    cases = "".join(f"\n  {case}" for case in judgement.cases)
    return (
        f"{head}: {report['lost']:,} lost outside gaps, {report['duplicated']:,} duplicated, "
        f"{report['reordered']:,} reordered after {sum(report['disturbances'].values())} disturbances\n"
        f"  {counts}\n  {path}{cases}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.local.soak",
        description="Run a fleet under load, kill and freeze its parts or move its subscribers; audit every delivery.",
        epilog="Exit code 0: nothing was lost outside of a reported gap, repeated, reordered or left over. "
        "1: otherwise.",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="of traffic (default %(default)g)")
    parser.add_argument("--every", type=float, default=8.0, help="seconds between disturbances (default %(default)g)")
    parser.add_argument("--subscribers", type=int, help="(default 500, with --sessions 300)")
    parser.add_argument("--clients", type=int, default=2, help="processes that subscribe (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of load and disturbances (default %(default)s)")
    parser.add_argument("--report", type=Path, default=Path("soak-report"), metavar="DIR", help="(default %(default)s)")
    sessions = parser.add_argument_group("instead of disturbances, sessions back to back")
    sessions.add_argument("--sessions", type=int, metavar="N", help="so many; goes on from the file in --report")
    sessions.add_argument("--slice", type=int, default=500, help="of one fleet each (default %(default)s)")
    sessions.add_argument("--lanes", type=int, default=2, help="sessions at one time (default %(default)s)")
    sessions.add_argument("--speed", type=float, default=2.0, help="of the publishers (default %(default)g)")
    sessions.add_argument("--members", type=int, default=0, metavar="N", help="of each; various small sizes if 0")
    sessions.add_argument("--replay", type=float, default=Mix.replay_share, help="share of them (default %(default)g)")
    sessions.add_argument(
        "--saturated", action="store_true", help="by replay, each time that an edge has more to do than it can"
    )
    sessions.add_argument(
        "--disturb", type=float, default=0.0, metavar="SECONDS", help="kill or freeze something so often meanwhile"
    )
    sessions.add_argument(
        "--utilization", type=float, default=0.0, metavar="SHARE", help="of emulated edges; 0: they are what they are"
    )
    return parser


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
