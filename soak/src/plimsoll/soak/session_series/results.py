"""The results of slices: in a file from which a long series is resumed, and summed up in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.demo.analysis.delays import percentile
from plimsoll.soak.added_latency import DurationHistogram

SUMMED = ("sessions", "published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps", "orphaned")


class SliceResult(msgspec.Struct, kw_only=True):
    """The result of one slice. Histograms are dictionaries; `session_seconds` are those of sessions that were done."""

    seed: int
    sessions: int
    states: dict[str, int]
    outcomes: dict[str, int]
    reasons: dict[str, int] = {}
    moving_seconds: float
    published: int
    expected: int
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    gaps: int
    orphaned: int
    violations: list[str]
    violated: dict[str, int]
    contradictions: int
    session_seconds: list[float]
    added: dict[str, Any]
    spread: dict[str, Any]
    raw: dict[str, Any]
    raw_outside: dict[str, Any]
    held_up: dict[str, Any]
    beside_source: dict[str, Any]
    loads: dict[str, dict[str, float]] = {}
    counters: dict[str, int] = {}
    faults: dict[str, int] = {}
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        """No violation, contradiction, residue or gap, and at least one delivery was expected."""
        return not (self.violated or self.contradictions or self.orphaned or self.gaps) and self.expected > 0


class SliceSeries(msgspec.Struct, kw_only=True):
    """Slices from seed `first` on, all of the size and load described by `what`."""

    what: str
    first: int
    slices: list[SliceResult] = []

    @property
    def sessions(self) -> int:
        return sum(one.sessions for one in self.slices)

    @property
    def next_seed(self) -> int:
        return self.first + len(self.slices)

    @property
    def is_clean(self) -> bool:
        return all(one.is_clean for one in self.slices)

    def report(self) -> dict[str, Any]:
        """The report as a JSON object."""
        found: dict[str, Any] = {name: sum(getattr(one, name) for one in self.slices) for name in SUMMED}
        seconds = sorted(second for one in self.slices for second in one.session_seconds)
        found |= {
            "session_seconds_p50": percentile(seconds, 0.5),
            "session_seconds_p95": percentile(seconds, 0.95),
            "session_seconds_max": seconds[-1] if seconds else None,
            "added_latency_ms": self._joined("added"),
            "latency_ms": {
                "beside_source": self._joined("beside_source"),
                "held_up": self._joined("held_up"),
                "spread_outside": self._joined("spread"),
                "during": self._joined("raw"),
                "outside": self._joined("raw_outside"),
            },
            "states": _summed(one.states for one in self.slices),
            "outcomes": _summed(one.outcomes for one in self.slices),
            "reasons": _summed(one.reasons for one in self.slices),
            "counters": _summed(one.counters for one in self.slices),
            "faults": _summed(one.faults for one in self.slices),
            "seeds": [one.seed for one in self.slices],
            "failed_seeds": [one.seed for one in self.slices if not one.is_clean],
            "violated": _summed(one.violated for one in self.slices),
            "violations": [text for one in self.slices for text in one.violations][:50],
            "loads": {broker: max_of for one in self.slices[-1:] for broker, max_of in one.loads.items()},
            "seconds": round(sum(one.seconds for one in self.slices), 1),
        }
        return found

    def _joined(self, name: str) -> dict[str, Any]:
        total = DurationHistogram()
        for one in self.slices:
            total.merge(DurationHistogram.from_dict(getattr(one, name)))
        return total.milliseconds()


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def load_series(path: Path, what: str, first: int) -> SliceSeries:
    """The series in a file, or an empty one if the file does not exist.

    Raises:
        ValueError: the file is of another series, or is no series.

    """
    if not path.exists():
        return SliceSeries(what=what, first=first)
    try:
        series = msgspec.json.decode(path.read_bytes(), type=SliceSeries)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} holds no series of sessions, delete it: {error}") from error
    if (series.what, series.first) != (what, first):
        raise ValueError(
            f"{path} is of another series: {series.what}, from seed {series.first}; use the same options, or delete it"
        )
    return series


def save_series(path: Path, series: SliceSeries) -> None:
    """Replace the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(msgspec.json.encode(series))
    beside.replace(path)
