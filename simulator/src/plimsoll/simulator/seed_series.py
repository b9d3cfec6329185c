"""The totals of many runs: as a table, and in a file from which a long series resumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from plimsoll.simulator.run import RunOutcome

COUNTS = ("runs", "events", "deliveries", "excused", "gaps", "uncertain", "violations")
MEMBER_OUTCOMES = ("moved", "stayed", "away", "gone", "returned", "detached", "unknown")
HEADINGS = (
    "scenario                  seeds      events  delivered in gaps unsure  faults |  "
    "done abort  fail |  moved stayed   away   gone return detach unknow | violations"
)


@dataclass(slots=True)
class ScenarioTotals:
    """The totals of one scenario. `failed`: the seeds of failed runs, with the laws that they broke.

    The fields are those of the state file: renaming one makes older files unreadable.
    """

    runs: int = 0
    events: int = 0
    deliveries: int = 0
    excused: int = 0
    gaps: int = 0
    uncertain: int = 0
    violations: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    handovers: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def add(self, one: RunOutcome) -> None:
        self.runs += 1
        self.events += one.events
        self.deliveries += one.verdict.delivered
        self.excused += one.verdict.excused
        self.gaps += one.verdict.gaps
        self.uncertain += one.verdict.uncertain
        self.violations += sum(one.verdict.violated.values()) + bool(one.error)
        self.faults = dict(Counter(self.faults) + Counter(one.faults))
        self.handovers = dict(Counter(self.handovers) + Counter(one.handovers))
        if not one.ok:
            self.failed.append((one.scenario, one.seed, sorted(one.broken)))

    def join(self, other: ScenarioTotals) -> None:
        for what in COUNTS:
            setattr(self, what, getattr(self, what) + getattr(other, what))
        self.faults = dict(Counter(self.faults) + Counter(other.faults))
        self.handovers = dict(Counter(self.handovers) + Counter(other.handovers))
        self.failed += other.failed

    def row(self, name: str) -> str:
        h = self.handovers
        moved = " ".join(f"{h.get(what, 0):6}" for what in MEMBER_OUTCOMES)
        ended = f"{h.get('done', 0):6}{h.get('aborted', 0):6}{h.get('failed', 0) + h.get('open', 0):6}"
        return (
            f"{name:24} {self.runs:6} {self.events:11} {self.deliveries:10} {self.excused:7} {self.uncertain:6} "
            f"{sum(self.faults.values()):7} |{ended} | {moved} | {self.violations}"
        )


class SeedSeries(msgspec.Struct):
    """Seeds from `first` on, over these scenarios in turn. `done`: the number of runs so far; `sums`: their totals."""

    scenarios: list[str]
    first: int = 0
    done: int = 0
    seconds: float = 0.0
    sums: dict[str, ScenarioTotals] = {}

    def work(self, runs: int) -> Iterator[tuple[str, int]]:
        """The runs that are left of `runs` runs in total."""
        for i in range(self.done, runs):
            yield self.scenarios[i % len(self.scenarios)], self.first + i // len(self.scenarios)

    def add(self, one: RunOutcome) -> None:
        self.done += 1
        self.sums.setdefault(one.scenario, ScenarioTotals()).add(one)

    def total(self) -> ScenarioTotals:
        total = ScenarioTotals()
        for each in self.sums.values():
            total.join(each)
        return total

    def table(self) -> Iterator[str]:
        yield HEADINGS
        for name in self.scenarios:
            if name in self.sums:
                yield self.sums[name].row(name)
        total = self.total()
        if len(self.sums) > 1:
            yield total.row("all")
        rate = max(self.seconds, 1e-9)
        yield f"{self.seconds:.1f} s, {total.runs / rate:,.1f} seeds/s, {total.events / rate:,.0f} events/s"


def load_series(path: Path, scenarios: Sequence[str], first: int) -> SeedSeries:
    """Resume a series, or start one if the file does not exist.

    Raises:
        ValueError: the file holds another series, or none.

    """
    if not path.exists():
        return SeedSeries(list(scenarios), first)
    try:
        series = msgspec.json.decode(path.read_bytes(), type=SeedSeries)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is not a state file of the simulator; name another file: {error}") from error
    if (series.scenarios, series.first) != (list(scenarios), first):
        raise ValueError(
            f"{path} holds another series: from seed {series.first}, over {' '.join(series.scenarios)}; "
            "pass the same --from and --scenario, or name another file"
        )
    return series


def save_series(path: Path, series: SeedSeries) -> None:
    """Write the file whole or not at all, since a series may be stopped at any time."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(series), indent=1))
    new.replace(path)
