"""Runs a series of sessions slice by slice. Each slice has its own fleet and audit; a file allows to resume."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.soak.session_series import results
from plimsoll.soak.session_series.lanes import SessionMix
from plimsoll.soak.session_series.slice_run import SliceRun, SoakLoad

REPORT: Final = "soak-report.json"
STATE: Final = "sessions.json"
FAULTS: Final = ("lost", "duplicated", "reordered", "orphaned")


@dataclass(frozen=True)
class SliceSeriesRequest:
    """`sessions`: in all, including those of earlier runs in the file. `slice_size`: sessions for each fleet."""

    sessions: int
    slice_size: int
    seed: int
    lanes: int
    load: SoakLoad
    mix: SessionMix
    folder: Path

    @property
    def description(self) -> str:
        load, mix = self.load, self.mix
        size = f" of {mix.members} members" if mix.members else ""
        used = f", edges used to {load.utilization:g}" if load.utilization else ""
        faults = f", a fault every {load.disturbed:g} s" if load.disturbed else ""
        how = "away from a saturated edge" if load.saturated else f"{mix.replay_share:g} by replay"
        return (
            f"slices of {self.slice_size} sessions{size}, {how}, {self.lanes} at a time, "
            f"{load.subscribers} subscribers, {load.publishers} publishers at {load.speed:g}{used}{faults}"
        )


def run_series(wanted: SliceSeriesRequest, say: Callable[[str], None]) -> int:
    """Run the missing slices; returns the exit code: 0 if all slices are clean, those of earlier runs included."""
    state = wanted.folder / STATE
    so_far = results.load_series(state, wanted.description, wanted.seed)
    if so_far.sessions:
        say(f"resuming: {so_far.sessions:,} sessions are in {state}")
    while so_far.sessions < wanted.sessions and so_far.is_clean:
        seed, began = so_far.next_seed, time.monotonic()
        count = min(wanted.slice_size, wanted.sessions - so_far.sessions)
        one, audit = SliceRun(wanted.folder, seed, count, wanted.load, wanted.mix, wanted.lanes, say).run()
        so_far.slices.append(one)
        results.save_series(state, so_far)
        took = f"{time.monotonic() - began:.0f} s"
        say(f"seed {seed}: {one.sessions} sessions {one.states}, members {one.outcomes}, {took}")
        for violation in audit.violations[:10]:
            say(f"  {violation}")
    report = so_far.report()
    path = wanted.folder / REPORT
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    say(_summary(report, so_far.is_clean, path))
    return 0 if so_far.is_clean else 1


def _summary(report: dict[str, Any], clean: bool, path: Path) -> str:
    added, others = report["added_latency_ms"], report["latency_ms"]
    p95 = report["session_seconds_p95"]
    faults = ", ".join(f"{report[name]:,} {name}" for name in (*FAULTS, "gaps"))
    return (
        f"{'passed' if clean else 'FAILED'}: {faults} in {report['sessions']:,} sessions and "
        f"{report['delivered']:,} deliveries\n"
        f"  session p95 {'-' if p95 is None else f'{p95:.3f} s'}   added latency of {added['count']:,} deliveries: "
        f"p50 {_ms(added['p50'])}   p99 {_ms(added['p99'])}   max {_ms(added['max'])}\n"
        f"{_line('beside the source', others['beside_source'])}\n{_line('held up', others['held_up'])}\n  {path}"
    )


def _line(name: str, found: dict[str, Any]) -> str:
    figures = "   ".join(f"{which} {_ms(found[which])}" for which in ("p50", "p99", "max"))
    return f"  {name}, of {found['count']:,}: {figures}"


def _ms(value: Any) -> str:
    return "-" if value is None else f"{value:.1f} ms"
