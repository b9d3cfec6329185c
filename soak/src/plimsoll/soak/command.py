"""`python -m plimsoll.soak`: a fleet under load, with disturbances or sessions, and an audit of every delivery."""

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

from plimsoll.core.printable import printable_lines
from plimsoll.core.spec import parse as parse_resources
from plimsoll.demo.command import interruptible
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.leftovers import remove_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.options import resource_folder
from plimsoll.demo.run_audit import DemoAudit, audit_run
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.soak.disturbance.disturbance_plan import plan_disturbances
from plimsoll.soak.disturbance.disturbed_traffic import DisturbedTraffic
from plimsoll.soak.harness.fleet_harness import FleetHarnessError
from plimsoll.soak.session_series import runner
from plimsoll.soak.session_series.lanes import SessionMix
from plimsoll.soak.session_series.runner import SliceSeriesRequest
from plimsoll.soak.session_series.saturated_lanes import MAX_MOVED_SHARE
from plimsoll.soak.session_series.slice_run import SoakLoad

REPORT = "soak-report.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak; returns the exit code of the process."""
    parser = _parser()
    given = parser.parse_args(argv)
    if given.sessions is not None and (problem := _option_problem(given)):
        parser.error(problem)
    if given.sessions is not None:
        return _run_sessions(given)
    subscribers, join_to = given.subscribers or 500, min(0.6, 20 / given.seconds)
    scenario = DemoScenario(seconds=given.seconds, subscribers=subscribers, seed=given.seed, join_to=join_to)
    try:
        with interruptible():
            return run_disturbed(scenario, given.every, given.report, given.clients)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: all processes were stopped; no report was written\n")
        return 130


def _option_problem(given: argparse.Namespace) -> str:
    """Why these options cannot be combined; empty if they can."""
    subscribers = given.subscribers or 300
    if given.saturated and given.members > subscribers * MAX_MOVED_SHARE:
        most = subscribers * MAX_MOVED_SHARE
        return f"--saturated: --members may be at most {most:.0f} of {subscribers} --subscribers"
    if given.saturated and given.utilization:
        return "--utilization and --saturated exclude one another: use one of them"
    if given.members > subscribers:
        return f"--members {given.members}: more than the {subscribers} --subscribers"
    return ""


def _run_sessions(given: argparse.Namespace) -> int:
    load = SoakLoad(
        given.subscribers or 300,
        speed=given.speed,
        processes=given.clients,
        saturated=given.saturated,
        disturbed=given.disturb,
        utilization=given.utilization,
    )
    mix = SessionMix(given.members, given.replay, 0.0 if given.members or given.saturated else SessionMix.abort_share)
    wanted = SliceSeriesRequest(given.sessions, given.slice, given.seed, given.lanes, load, mix, given.report)
    wanted.folder.mkdir(parents=True, exist_ok=True)
    try:
        with interruptible():
            return runner.run_series(wanted, lambda line: _write(printable_lines(line) + "\n"))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: all processes were stopped; finished slices are kept\n")
        return 130
    except (ValueError, FleetHarnessError, WorkerError) as error:
        sys.stderr.write(printable_lines(f"soak: {error}\n"))
        return 2 if isinstance(error, ValueError) else 1


def run_disturbed(scenario: DemoScenario, every_seconds: float, folder: Path, clients: int) -> int:
    """Run one soak with disturbances; its report goes to `folder`."""
    live = LiveDisplay(_write, terminal=False, interval_seconds=10.0)
    for name in ("journals", "logs", "fleet"):
        remove_folder(folder / name)
        (folder / name).mkdir(parents=True)
    parsed = parse_resources(manifests.load([str(resource_folder())]))
    began = time.monotonic()
    fleet = DemoFleet(FleetFolder(folder / "fleet" / parsed.fleet.name), parsed)
    orderly = False
    try:
        fleet.await_ready()
        heads = [b.name for b in fleet.brokers.values() if b.role == "head"]
        edges = [b.name for b in fleet.brokers.values() if b.role == "edge"]
        ahead = plan_disturbances(scenario.seed, scenario.seconds, every_seconds, heads, edges, clients)
        live.say(f"{scenario.seconds:g} s, {scenario.subscribers:,} subscribers, seed {scenario.seed}")
        with DisturbedTraffic(scenario, fleet, folder, clients, live, ahead) as traffic:
            faults = traffic.run()
        orderly = True
    finally:
        late = fleet.stop(hurry=not orderly)
        fleet.keep_logs(folder / "logs")
    audit = audit_run(*traffic.journals, traffic.start, [*faults, *late])
    report = _report(scenario, traffic, audit, time.monotonic() - began)
    (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    live.say(_summary(audit, report, folder / REPORT))
    shutil.rmtree(folder / "journals")
    return 0 if audit.passed else 1


def _report(scenario: DemoScenario, traffic: DisturbedTraffic, audit: DemoAudit, seconds: float) -> dict[str, Any]:
    verdict, delay = audit.verdict, audit.delays.summary()
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
        "excused": verdict.excused,
        "violated": dict(verdict.violated),
        "cases": audit.cases,
        "problems": audit.problems,
        "delay_ms": {name: None if value is None else round(value * 1000, 2) for name, value in delay.items()},
        "clients": traffic.counters,
    }


def _summary(audit: DemoAudit, report: dict[str, Any], path: Path) -> str:
    head = "passed" if audit.passed else "FAILED: " + "; ".join(audit.problems)
    counts = "   ".join(f"{name} {report[name]:,}" for name in ("published", "expected", "delivered", "gaps"))
    cases = "".join(f"\n  {case}" for case in audit.cases)
    return (
        f"{head}: {report['lost']:,} lost outside gaps, {report['duplicated']:,} duplicated, "
        f"{report['reordered']:,} reordered after {sum(report['disturbances'].values())} disturbances\n"
        f"  {counts}\n  {path}{cases}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.soak",
        description="Run a fleet under load; kill and freeze its processes, or move its subscribers in sessions; "
        "audit every delivery.",
        epilog="Exit code 0: no delivery was lost outside a reported gap, repeated or reordered, and nothing was left "
        "over in brokers. 1: otherwise. 2: wrong options.",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="length of the traffic (default %(default)g)")
    parser.add_argument("--every", type=float, default=8.0, help="seconds between disturbances (default %(default)g)")
    parser.add_argument("--subscribers", type=int, help="(default 500; 300 with --sessions)")
    parser.add_argument("--clients", type=int, default=2, help="processes of subscribers (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of load and disturbances (default %(default)s)")
    parser.add_argument(
        "--report", type=Path, default=Path("soak-report"), metavar="DIR", help="folder (default %(default)s)"
    )
    sessions = parser.add_argument_group("sessions back to back, in place of disturbances")
    sessions.add_argument("--sessions", type=int, metavar="N", help="number of sessions; resumes a series in --report")
    sessions.add_argument("--slice", type=int, default=500, help="sessions for each fleet (default %(default)s)")
    sessions.add_argument("--lanes", type=int, default=2, help="sessions at one time (default %(default)s)")
    sessions.add_argument("--speed", type=float, default=2.0, help="speed of the publishers (default %(default)g)")
    sessions.add_argument("--members", type=int, default=0, metavar="N", help="members of a session; 0: from 1 to 34")
    sessions.add_argument(
        "--replay", type=float, default=SessionMix.replay_share, help="share by replay (default %(default)g)"
    )
    sessions.add_argument(
        "--saturated", action="store_true", help="sessions by replay, whenever an overloaded edge has a queue"
    )
    sessions.add_argument(
        "--disturb", type=float, default=0.0, metavar="SECONDS", help="also kill or freeze a process this often"
    )
    sessions.add_argument(
        "--utilization", type=float, default=0.0, metavar="SHARE", help="emulate edges of this utilization; 0: do not"
    )
    return parser


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
