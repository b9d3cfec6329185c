"""The demo from its first line to its exit code: start the fleet, run the traffic, drain, stop, audit, report.

Whatever happens, what was started is ended here, in the reverse order.
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

from plimsoll.core.spec import InvalidResourcesError, Resources
from plimsoll.core.spec import parse as parse_resources
from plimsoll.local import manifests
from plimsoll.local.demo import quotes, report, workload
from plimsoll.local.demo.balance import Balance, limits_of, with_policy
from plimsoll.local.demo.balance import judge as judge_balance
from plimsoll.local.demo.fleet import Fleet, FleetError
from plimsoll.local.demo.journal import JournalError
from plimsoll.local.demo.judging import Judgement, judge
from plimsoll.local.demo.live import Live
from plimsoll.local.demo.options import Options, parse
from plimsoll.local.demo.traffic import Traffic
from plimsoll.local.demo.workers import WorkerError
from plimsoll.local.home import FleetBusyError, FleetFolder

INTERRUPTED = 130
PLAIN_SECONDS = 10.0
SHOWN_CASES = 5
"""So many violations are printed; the report has more."""
FAILED, BAD_INPUT, CONFLICT = 1, 2, 4
"""Exit codes as all of `plimsoll` has them."""
_REFUSALS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    (InvalidResourcesError, BAD_INPUT),
    (FleetBusyError, CONFLICT),
    ((FleetError, JournalError, OSError, quotes.QuotesError, ValueError, WorkerError), FAILED),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code of the process."""
    options = parse(argv)
    terminal = sys.stdout.isatty() and not options.plain
    live = Live(_write, terminal, min(PLAIN_SECONDS, options.scenario.seconds / 6))
    try:
        with interruptible():
            return Demo(options, live).run()
    except KeyboardInterrupt:
        live.keep()
        live.say("interrupted: everything was stopped, and there is no report")
        return INTERRUPTED
    except Exception as error:
        code = next((code for kinds, code in _REFUSALS if isinstance(error, kinds)), None)
        if code is None:
            raise
        live.keep()
        sys.stderr.write(f"plimsoll demo: {error}\n")
        return code


class Demo:
    """One run."""

    def __init__(self, options: Options, live: Live) -> None:
        self._options, self._scenario, self._live = options, options.scenario, live
        self._durations: dict[str, float] = {}
        self._began = time.monotonic()

    def run(self) -> int:
        """Everything; returns the exit code."""
        started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        plan = workload.plan(self._scenario, quotes.load())
        resources = self._resources()
        state = FleetFolder(self._options.report / "fleet" / resources.fleet.name)
        folder = _fresh(self._options.report, state)
        self._live.say(self._what_runs(plan, resources))
        try:
            fleet, traffic, faults = self._traffic(folder, state, resources)
        except KeyboardInterrupt:
            shutil.rmtree(folder / "journals")
            raise
        self._phase("fleet_stop_seconds")
        self._live.say(f"auditing {traffic.delivered:,} deliveries of {traffic.published:,} publications ...")
        balance = self._balance(resources, fleet, traffic)
        if balance is not None and self._options.balance == "padres":
            faults = [*faults, *balance.problems]
        judgement = judge(*traffic.journals, traffic.start, faults, traffic.settled_position)
        self._phase("audit_seconds")
        self._durations["total_seconds"] = time.monotonic() - self._began
        run = report.Run(
            self._scenario, resources, fleet.brokers, traffic.series, judgement, self._durations, traffic.counters,
            started_at, balance,
        )  # fmt: skip
        report.write(report.build(run), folder)
        if judgement.passed:
            shutil.rmtree(folder / "journals")
        self._live.say(_summary(judgement, traffic.counters, folder, balance))
        return 0 if judgement.passed else FAILED

    def _resources(self) -> Resources:
        documents = manifests.load(self._options.files)
        policy = self._options.balance
        return parse_resources(documents if policy is None else with_policy(documents, policy))

    def _balance(self, resources: Resources, fleet: Fleet, traffic: Traffic) -> Balance | None:
        policy = self._options.balance
        if policy is None:
            return None
        edges = [broker.name for broker in fleet.brokers.values() if broker.role == "edge"]
        limits = limits_of(resources if policy != "off" else parse_resources(manifests.load(self._options.files)))
        return judge_balance(policy, self._scenario, limits, edges, traffic.series, traffic.sessions)

    def _traffic(self, folder: Path, state: FleetFolder, resources: Resources) -> tuple[Fleet, Traffic, list[str]]:
        """The fleet's life, and the traffic in it. Returns what went wrong as the last."""
        began = time.monotonic()
        fleet = Fleet(state, resources)
        orderly = False
        try:
            fleet.await_ready()
            self._durations["fleet_start_seconds"] = time.monotonic() - began
            self._live.say(f"{len(fleet.brokers)} brokers are ready; to look at them:\n  {_look(folder)}")
            must_settle = self._options.balance in (None, "padres")
            with Traffic(self._scenario, fleet, folder, self._options.clients, self._live, must_settle) as traffic:
                faults = traffic.run()
                self._durations |= traffic.durations
            faults += fleet.deaths()
            orderly = True
        finally:
            self._mark = time.monotonic()
            late = fleet.stop(hurry=not orderly)
            fleet.keep_logs(folder / "logs")
        return fleet, traffic, [*faults, *late]

    def _phase(self, name: str) -> None:
        now = time.monotonic()
        self._durations[name], self._mark = now - self._mark, now

    def _what_runs(self, plan: workload.Plan, resources: Resources) -> str:
        scenario = self._scenario
        zero = sum(subscriber.zero_traffic for subscriber in plan.subscribers)
        fastest = workload.PAPER_RATE_PER_MINUTE * scenario.rate_factor
        return (
            f"fleet {resources.fleet.name}: {len(plan.publishers)} publishers of one company and year each, at 0 to "
            f"{fastest:g} a minute\n{len(plan.subscribers):,} subscribers, {zero:,} of them to what nobody publishes; "
            f"{scenario.seconds:g} s; seed {scenario.seed}"
        )


def _summary(judgement: Judgement, counters: Mapping[str, int], folder: Path, balance: Balance | None) -> str:
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
        f"report: {folder / 'report.html'} and {folder / 'report.json'}",
    ]
    if not judgement.passed:
        lines.append(f"logs and journals: {folder}")
    return "\n  ".join(lines)


def _milliseconds(seconds: Any) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _fresh(folder: Path, state: FleetFolder) -> Path:
    """The folder of the report, without what an earlier run left in it, however that ended."""
    if pid := state.running_pid():
        raise FleetBusyError(
            f"process {pid} runs a demo that reports to {folder}; wait for it, or name another --report"
        )
    shutil.rmtree(state.path, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("report.json", "report.html"):
        (folder / name).unlink(missing_ok=True)
    for name in ("journals", "logs"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    return folder


def _look(folder: Path) -> str:
    """A command that shows the fleet while it runs; `plimsoll` as this shell would find it."""
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
