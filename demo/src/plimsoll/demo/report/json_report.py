"""`report.json`: all results of a run in plain values; and both files of the report, written together."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.spec import Resources
from plimsoll.core.spec.kinds import HardwareProfileSpec
from plimsoll.demo.analysis.balancing_result import BalancingResult
from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.fleet import DemoBroker
from plimsoll.demo.report.html_page import render_page
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.demo.run_audit import DemoAudit
from plimsoll.demo.workload import DemoScenario

FORMAT: Final = 1
_PACKAGES: Final = ("plimsoll-operator", "pyzmq", "msgspec", "bokeh_sampledata")
_COUNTS: Final = (
    "published", "accepted", "refused", "unknown", "expected", "delivered", "lost", "duplicated", "reordered", "gaps",
    "excused", "uncertain", "unwanted",
)  # fmt: skip


@dataclass(frozen=True)
class DemoResult:
    """A run's settings and results. `durations`: seconds by phase; `counters`: those of the client library."""

    scenario: DemoScenario
    resources: Resources
    brokers: Mapping[str, DemoBroker]
    series: LoadSeries
    judgement: DemoAudit
    durations: Mapping[str, float]
    counters: Mapping[str, int]
    started_at: str
    claims: ClaimsVerdict
    balance: BalancingResult | None = None
    prediction: Mapping[str, Any] | None = None


def build_report(run: DemoResult) -> dict[str, Any]:
    """The report as plain values, ready for JSON."""
    verdict, delays = run.judgement.verdict, run.judgement.delays
    counts = {name: getattr(verdict, name) for name in _COUNTS}
    return {
        "format": FORMAT,
        "verdict": "passed" if run.judgement.passed else "failed",
        **counts,
        "problems": run.judgement.problems,
        "violations": run.judgement.cases,
        "violated": verdict.violated,
        "seed": run.scenario.seed,
        "started_at": run.started_at,
        "scenario": {**msgspec.structs.asdict(run.scenario), "join_factor": round(run.scenario.join_factor, 2)},
        "durations": {name: round(seconds, 2) for name, seconds in run.durations.items()},
        "delivery_delay_seconds": {**delays.summary(), "series": delays.series()},
        "client_counters": dict(run.counters),
        "claims": run.claims.plain(),
        "machine": machine_facts(),
        "machine_load": run.claims.machine.plain(),
        "versions": package_versions(),
        **({} if run.balance is None else run.balance.plain()),
        **({} if run.prediction is None else {"prediction": dict(run.prediction)}),
        "brokers": {name: _broker(run, broker) for name, broker in run.brokers.items()},
    }


def _broker(run: DemoResult, broker: DemoBroker) -> dict[str, Any]:
    delays = run.judgement.delays
    return {
        "role": broker.role,
        "profile": broker.profile,
        "hardware": _hardware(run.resources.profiles[broker.profile].spec),
        "series": run.series.of(broker.name),
        "delivery_delay_seconds": {**delays.summary(broker.name), "series": delays.series(broker.name)},
    }


def _hardware(profile: HardwareProfileSpec) -> dict[str, Any]:
    """The limit of the broker; None where it is not limited, or not emulated."""
    bandwidth, emulation = profile.bandwidth, profile.emulation
    into, out = bandwidth.input_bytes_per_second, bandwidth.output_bytes_per_second
    return {
        "cpu_cores": float(profile.cpu.value),
        "memory_bytes": profile.memory.whole,
        "input_bytes_per_second": None if into is None else float(into.value),
        "output_bytes_per_second": None if out is None else float(out.value),
        "emulated_base_seconds": None if emulation is None else emulation.base.seconds,
        "emulated_seconds_per_subscription": None if emulation is None else emulation.per_subscription.seconds,
    }


def machine_facts() -> dict[str, Any]:
    """The machine, as far as it matters for the figures."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "processor": _processor(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    """The processor's model name, which only Linux writes into a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that affect the figures."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _PACKAGES}}


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """Write `report.json` and `report.html`."""
    write_report_files(folder, "report", report, render_page(report))
