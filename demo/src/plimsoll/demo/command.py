"""The demo from its first line to its exit code: start the fleet, run the traffic, drain, stop, audit, report.

Everything started here is also ended here, in the reverse order, even after an error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from plimsoll.core.printable import printable_lines
from plimsoll.core.spec import InvalidResourcesError, Resources
from plimsoll.core.spec import parse as parse_resources
from plimsoll.demo import quotes, workload
from plimsoll.demo.analysis.balancing_result import BalancingResult, convergence_limits, with_policy
from plimsoll.demo.analysis.balancing_result import assess_balancing as judge_balance
from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.fleet import DemoFleet, DemoFleetError
from plimsoll.demo.journal import DeliveryJournalError
from plimsoll.demo.leftovers import empty_report_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.options import DemoOptions, parse
from plimsoll.demo.report import json_report
from plimsoll.demo.run_audit import DemoAudit, audit_run
from plimsoll.demo.traffic import DemoTraffic
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.demo.world_prediction import WORLD_FILE, WorldPrediction
from plimsoll.local import manifests
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder
from plimsoll.local.storage.state_files import StateWriteError

INTERRUPTED = 130
PLAIN_SECONDS = 10.0
SHOWN_CASES = 5
"""Violations that are printed; the report has more."""
REPORT_FILES = ("report.json", "report.html", WORLD_FILE)
FAILED, BAD_INPUT, CONFLICT = 1, 2, 4
"""Exit codes, as in all of `plimsoll`."""
_REFUSALS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    (InvalidResourcesError, BAD_INPUT),
    (FleetBusyError, CONFLICT),
    (StateWriteError, FAILED),
    ((DemoFleetError, DeliveryJournalError, OSError, quotes.QuotesError, ValueError, WorkerError), FAILED),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code of the process."""
    options = parse(argv)
    terminal = sys.stdout.isatty() and not options.plain
    live = LiveDisplay(_write, terminal, min(PLAIN_SECONDS, options.scenario.seconds / 6))
    try:
        with interruptible():
            return DemoRun(options, live).run()
    except KeyboardInterrupt:
        live.keep()
        live.say("interrupted: everything was stopped, and there is no report")
        return INTERRUPTED
    except Exception as error:
        code = next((code for kinds, code in _REFUSALS if isinstance(error, kinds)), None)
        if code is None:
            raise
        live.keep()
        sys.stderr.write(printable_lines(f"plimsoll demo: {error}\n"))
        return code


class DemoRun:
    """One run."""

    def __init__(self, options: DemoOptions, live: LiveDisplay) -> None:
        self._options, self._scenario, self._live = options, options.scenario, live
        self._durations: dict[str, float] = {}
        self._began = time.monotonic()

    def run(self) -> int:
        """Run it; returns the exit code."""
        started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        plan = workload.plan_workload(self._scenario, quotes.load())
        resources = self._resources()
        state = FleetFolder(self._options.report / "fleet" / resources.fleet.name)
        folder = empty_report_folder(self._options.report, state, REPORT_FILES)
        self._live.say(self._what_runs(plan, resources))
        predicted = WorldPrediction(self._scenario, folder, state)
        try:
            fleet, traffic, faults = self._traffic(folder, state, resources, predicted)
        except KeyboardInterrupt:
            shutil.rmtree(folder / "journals")
            raise
        self._phase("fleet_stop_seconds")
        self._live.say(f"auditing {traffic.delivered:,} deliveries of {traffic.published:,} publications ...")
        balance = self._balance(resources, fleet, traffic)
        unmet = balance.unmet_claims if balance is not None else []
        claims = ClaimsVerdict(unmet, traffic.machine_load, self._options.strict)
        judgement = audit_run(*traffic.journals, traffic.start, [*faults, *claims.faults], traffic.settled_position)
        self._phase("audit_seconds")
        edges = [broker.name for broker in fleet.brokers.values() if broker.role == "edge"]
        prediction = predicted.result(traffic.series, judgement.delays, edges)
        self._phase("prediction_seconds")
        self._durations["total_seconds"] = time.monotonic() - self._began
        run = json_report.DemoResult(
            self._scenario, resources, fleet.brokers, traffic.series, judgement, self._durations, traffic.counters,
            started_at, claims, balance, prediction,
        )  # fmt: skip
        json_report.write_report(json_report.build_report(run), folder)
        if judgement.passed:
            shutil.rmtree(folder / "journals")
        self._live.say(_summary(judgement, traffic.counters, folder, balance, claims))
        return 0 if judgement.passed else FAILED

    def _resources(self) -> Resources:
        documents = manifests.load(self._options.files)
        policy = self._options.balance
        return parse_resources(documents if policy is None else with_policy(documents, policy))

    def _balance(self, resources: Resources, fleet: DemoFleet, traffic: DemoTraffic) -> BalancingResult | None:
        policy = self._options.balance
        if policy is None:
            return None
        edges = [broker.name for broker in fleet.brokers.values() if broker.role == "edge"]
        limits = convergence_limits(
            resources if policy != "off" else parse_resources(manifests.load(self._options.files))
        )
        return judge_balance(policy, self._scenario, limits, edges, traffic.series, traffic.sessions)

    def _traffic(
        self, folder: Path, state: FleetFolder, resources: Resources, predicted: WorldPrediction
    ) -> tuple[DemoFleet, DemoTraffic, list[str]]:
        """Run the fleet and the traffic in it. Returns the faults last."""
        began = time.monotonic()
        fleet = DemoFleet(state, resources)
        orderly = False
        try:
            fleet.await_ready()
            self._durations["fleet_start_seconds"] = time.monotonic() - began
            self._live.say(f"{len(fleet.brokers)} brokers are ready; to look at them:\n  {_inspect_command(folder)}")
            must_settle = self._options.balance in (None, "padres")
            with DemoTraffic(
                self._scenario, fleet, folder, self._options.clients, self._live, must_settle, predicted.look
            ) as traffic:
                faults = traffic.run()
                self._durations |= traffic.durations
            faults += fleet.deaths()
            orderly = True
        finally:
            predicted.kill()
            self._mark = time.monotonic()
            late = fleet.stop(hurry=not orderly)
            fleet.keep_logs(folder / "logs")
        return fleet, traffic, [*faults, *late]

    def _phase(self, name: str) -> None:
        now = time.monotonic()
        self._durations[name], self._mark = now - self._mark, now

    def _what_runs(self, plan: workload.WorkloadPlan, resources: Resources) -> str:
        scenario = self._scenario
        zero = sum(subscriber.zero_traffic for subscriber in plan.subscribers)
        fastest = workload.PAPER_RATE_PER_MINUTE * scenario.rate_factor
        return (
            f"fleet {resources.fleet.name}: {len(plan.publishers)} publishers of one company and year each, at 0 to "
            f"{fastest:g} a minute\n{len(plan.subscribers):,} subscribers, {zero:,} of them match no publication; "
            f"{scenario.seconds:g} s; seed {scenario.seed}"
        )


def _summary(
    judgement: DemoAudit,
    counters: Mapping[str, int],
    folder: Path,
    balance: BalancingResult | None,
    claims: ClaimsVerdict,
) -> str:
    verdict, delay = judgement.verdict, judgement.delays.summary()
    said = "passed" if judgement.passed else "FAILED"
    lines = [f"{said}: {verdict.lost:,} lost, {verdict.duplicated:,} duplicated, {verdict.reordered:,} reordered"]
    lines += judgement.problems + judgement.cases[:SHOWN_CASES]
    if repeated := counters.get("subscribers_duplicates_suppressed"):
        lines.append(f"{repeated:,} repeated deliveries were kept from applications by the client library")
    lines += [
        f"published {verdict.published:,}   expected {verdict.expected:,}   delivered {verdict.delivered:,}   "
        f"gaps {verdict.gaps:,}",
        "delivery delay " + "   ".join(f"{name} {_milliseconds(delay[name])}" for name in ("p50", "p99", "max")),
        *(balance.lines() if balance is not None else []),
        *(claims.lines() if balance is not None and balance.policy == "padres" else []),
        f"report: {folder / 'report.html'} and {folder / 'report.json'}",
    ]
    if not judgement.passed:
        lines.append(f"logs and journals: {folder}")
    return "\n  ".join(lines)


def _milliseconds(seconds: Any) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _inspect_command(folder: Path) -> str:
    """A command that shows the running fleet, with `plimsoll` as this shell would find it."""
    program = shutil.which("plimsoll") or os.path.relpath(Path(sys.executable).with_name("plimsoll"))
    return f"PLIMSOLL_HOME={folder / 'fleet'} {program} get edgebrokers"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first SIGINT or SIGTERM interrupts; later ones wait until everything that was started has ended."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
