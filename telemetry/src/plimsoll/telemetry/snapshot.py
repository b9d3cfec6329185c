"""The snapshot: a fleet's aggregated load reports at one moment, and the reader that verifies it.

Spark's jobs, the oracle and the collectors' fold write the same format. Every decider reads it with `decode_usable`,
which refuses a snapshot that is malformed, of another schema or fleet, changed after it was written, too old,
incomplete, or older than one that was used before, and names the fault.

A window of W seconds holds the rows with `window_end_us - W x 10^6 < at_us <= window_end_us`. Figures are of edges: a
head carries no subscribers, but counts as seen and expected. A broker's load is the greater of its mean input and
output utilisation over the window. `states` has the state of each edge by its newest row, the greatest (epoch, seq), in
the longest window.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from plimsoll.telemetry.metric_statistics import MetricStatistics

SCHEMA: Final = "plimsoll.snapshot/1"
WINDOWS_SECONDS: Final = (10, 60, 300)
SEEN_SECONDS: Final = 60
"""A broker of a Spark snapshot is seen if it has a row within this many seconds before the window's end."""
CANDIDATES_AT_MOST: Final = 5
MAX_AGE_SECONDS: Final = 45.0
MIN_COVERAGE: Final = 0.95
AHEAD_SECONDS: Final = 5.0
"""A window that ends further than this in the reader's future shows that a clock is wrong."""

SnapshotSource = Literal["spark", "oracle", "fold"]
SnapshotFault = Literal[
    "Missing", "Malformed", "UnknownSchema", "ChecksumMismatch", "WrongFleet", "Stale", "FromFuture", "Incomplete",
    "OutOfOrder",
]  # fmt: skip
SNAPSHOT_FAULTS: Final[tuple[SnapshotFault, ...]] = get_args(SnapshotFault)


class ReportCounts(Struct, frozen=True, kw_only=True):
    """The rows since the run began, by what became of them: `rows_in = counted + duplicate + late + invalid`."""

    rows_in: int = 0
    counted: int = 0
    duplicate: int = 0
    late: int = 0
    invalid: int = 0

    @property
    def unaccounted(self) -> int:
        """Rows that are not accounted for: 0 unless there is a bug."""
        return self.rows_in - self.counted - self.duplicate - self.late - self.invalid


class LoadCandidate(Struct, frozen=True, kw_only=True):
    """A broker and its load, a ratio."""

    broker: str
    load: float


class LoadWindow(Struct, frozen=True, kw_only=True):
    """One cluster's edges over one window. `n`: reports, `brokers`: edges that they are from.

    A metric without values is missing. `over`: the most loaded edges, most first; `under`: the least, least first.
    """

    n: int
    brokers: int
    metrics: dict[str, MetricStatistics]
    over: list[LoadCandidate]
    under: list[LoadCandidate]


class ClusterSnapshot(Struct, frozen=True, kw_only=True):
    """One cluster. `windows` by their length in seconds, written as text."""

    seen: int
    expected: int
    missing: list[str]
    states: dict[str, str]
    windows: dict[str, LoadWindow]

    def window(self, seconds: int) -> LoadWindow:
        """The window of this length in seconds.

        Raises:
            KeyError: there is none.

        """
        return self.windows[str(seconds)]


class TelemetrySnapshot(Struct, frozen=True, kw_only=True):
    """All clusters at `window_end_us`. Snapshots are ordered by `order`: a run's start, then its batches."""

    schema: str = SCHEMA
    source: SnapshotSource
    fleet: str
    run_us: int
    batch: int
    window_end_us: int
    written_us: int
    windows_seconds: list[int]
    seen_seconds: int
    seen: int
    expected: int
    counts: ReportCounts
    clusters: dict[str, ClusterSnapshot]

    @property
    def order(self) -> tuple[int, int]:
        return self.run_us, self.batch

    @property
    def coverage(self) -> float:
        """Brokers seen / expected; 0 if none is expected, since then nothing is known."""
        return self.seen / self.expected if self.expected else 0.0

    def age_seconds(self, now_us: int) -> float:
        return (now_us - self.window_end_us) / 1e6


class SnapshotSummary(Struct, frozen=True):
    """The last written snapshot, usable or not: the end of its window, and how much of the fleet it had seen."""

    window_end_us: int
    seen: int
    expected: int

    @classmethod
    def of(cls, snapshot: TelemetrySnapshot) -> SnapshotSummary:
        return cls(snapshot.window_end_us, snapshot.seen, snapshot.expected)

    @property
    def coverage(self) -> float:
        """Brokers seen / expected; 0 if none is expected."""
        return self.seen / self.expected if self.expected else 0.0

    def age_seconds(self, now_us: int) -> float:
        return (now_us - self.window_end_us) / 1e6


class SnapshotError(ValueError):
    """A snapshot that must not be used. `fault` names the reason; `last`: its readable part, if any."""

    def __init__(self, fault: SnapshotFault, text: str, last: SnapshotSummary | None = None) -> None:
        super().__init__(text)
        self.fault: SnapshotFault = fault
        self.last = last


@dataclass(frozen=True)
class SnapshotRequirements:
    """A reader's requirements. `after`: the order of the last snapshot used; an equal order is the same snapshot."""

    fleet: str
    max_age_seconds: float = MAX_AGE_SECONDS
    min_coverage: float = MIN_COVERAGE
    after: tuple[int, int] | None = None


def canonical_json(content: dict[str, Any]) -> bytes:
    """The bytes under the checksum: sorted keys, no spaces, ASCII, floats in their shortest exact form."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def checksum(content: dict[str, Any]) -> str:
    """SHA-256 in hex over the canonical form of everything but `sha256` itself."""
    return hashlib.sha256(canonical_json({key: content[key] for key in content if key != "sha256"})).hexdigest()


def encode_snapshot(snapshot: TelemetrySnapshot) -> bytes:
    """As JSON, with its checksum, which also covers fields that an older reader does not know."""
    content = msgspec.to_builtins(snapshot)
    return canonical_json({**content, "sha256": checksum(content)})


def decode_snapshot(data: bytes) -> TelemetrySnapshot:
    """Decode a snapshot and check its form and its checksum.

    Raises:
        SnapshotError: Malformed, UnknownSchema or ChecksumMismatch.

    """
    try:
        content = msgspec.json.decode(data)
    except (RecursionError, ValueError) as error:
        raise SnapshotError("Malformed", f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SnapshotError("Malformed", f"a snapshot is an object, found {type(content).__name__}")
    if (schema := content.get("schema")) != SCHEMA:
        raise SnapshotError("UnknownSchema", f"schema {schema!r}; this reader knows {SCHEMA}")
    if (said := content.get("sha256")) != (found := checksum(content)):
        raise SnapshotError("ChecksumMismatch", f"says sha256 {str(said)[:12]}..., its content has {found[:12]}...")
    try:
        snapshot = msgspec.convert(content, TelemetrySnapshot)
    except msgspec.ValidationError as error:
        raise SnapshotError("Malformed", str(error)) from error
    if snapshot.counts.unaccounted:
        raise SnapshotError(
            "Malformed", f"{snapshot.counts.unaccounted} of {snapshot.counts.rows_in} rows are unaccounted"
        )
    return snapshot


def check_usable(snapshot: TelemetrySnapshot, wanted: SnapshotRequirements, now_us: int) -> None:
    """Check that an intact snapshot may be used now.

    Raises:
        SnapshotError: WrongFleet, FromFuture, Stale, OutOfOrder or Incomplete.

    """
    if snapshot.fleet != wanted.fleet:
        raise SnapshotError("WrongFleet", f"of fleet {snapshot.fleet}, wanted {wanted.fleet}")
    age, last = snapshot.age_seconds(now_us), SnapshotSummary.of(snapshot)
    if age < -AHEAD_SECONDS:
        raise SnapshotError(
            "FromFuture",
            f"its window ends {-age:.1f} s from now: the clock of its writer or of this reader is wrong",
            last,
        )
    if age > wanted.max_age_seconds:
        text = f"its window ended {age:.1f} s ago; at most {wanted.max_age_seconds:g} s are allowed"
        raise SnapshotError("Stale", text, last)
    if wanted.after is not None and snapshot.order < wanted.after:
        text = f"run and batch {snapshot.order} come before {wanted.after}, used already"
        raise SnapshotError("OutOfOrder", text, last)
    if snapshot.coverage < wanted.min_coverage:
        missing = sorted(name for cluster in snapshot.clusters.values() for name in cluster.missing)
        raise SnapshotError(
            "Incomplete",
            f"{snapshot.seen} of {snapshot.expected} brokers seen, {wanted.min_coverage:.0%} wanted; missing: "
            f"{', '.join(missing[:3]) or 'unknown'}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}",
            last,
        )


def decode_usable(data: bytes, wanted: SnapshotRequirements, now_us: int) -> TelemetrySnapshot:
    """Decode a snapshot and make all checks.

    Raises:
        SnapshotError: naming the first fault.

    """
    snapshot = decode_snapshot(data)
    check_usable(snapshot, wanted, now_us)
    return snapshot
