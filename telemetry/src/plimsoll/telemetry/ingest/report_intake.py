"""Reports as a collector accepts them: each is counted, a duplicate, late or invalid, and none is lost silently.

Pure: reports come in with their arrival time, rows and figures come out. Memory is bounded by the number of brokers
and by the number of pending rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from plimsoll.telemetry.fold import ReportPoint
from plimsoll.telemetry.ingest.report_sequence import ReportSequence, SequenceVerdict
from plimsoll.telemetry.metric_statistics import to_billionths
from plimsoll.telemetry.schema import LOADS, MAJOR, METRICS, SKEW_SECONDS, TableRow
from plimsoll.telemetry.snapshot import ReportCounts

ReportOutcome = Literal["counted", "duplicate", "late", "invalid"]
RefusalReason = Literal["malformed", "schema", "misplaced", "future", "full"]
ReportRow = TableRow
"""Values of the columns of `loads`, in their order."""

FUTURE_SECONDS: Final = 3600.0
"""A report dated further in the future is refused: nothing else it states can be trusted either."""
FORGET_SECONDS: Final = 3600.0
"""An unexpected broker is forgotten after this much silence."""
CLOCK_SET_US: Final = 1_577_836_800_000_000
"""A clock before 2020 was never set; its time is ignored."""

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Amount = Annotated[float, Meta(ge=0, le=9e9)]
"""Jobs hold billionths in 64 bits; a larger value does not fit, and is a mistake anyway."""
Whole = Annotated[int, Meta(ge=0, le=2**62)]


class IncomingReport(Struct, frozen=True, kw_only=True):
    """A load report as brokers of this major version send it. Unknown fields are ignored."""

    broker: Name
    cluster: Name
    role: Literal["head", "edge"]
    epoch: Whole
    seq: Annotated[int, Meta(ge=1, le=2**62)]
    state: Literal["OK", "BUSY", "N/A", "STABILIZING"]
    input_utilization: Amount
    output_utilization: Amount
    cpu_ratio: Amount
    memory_ratio: Amount
    match_delay_seconds: Amount
    index_delay_seconds: Amount
    input_queue_delay_seconds: Amount
    output_queue_delay_seconds: Amount
    input_rate: Amount
    output_rate: Amount
    output_bytes_per_second: Amount
    subscribers: Whole
    subscriptions: Whole
    clock_us: Whole = 0
    interval_seconds: Amount | None = None
    input_queue_messages: Whole | None = None
    output_queue_messages: Whole | None = None
    output_queue_bytes: Whole | None = None
    bandwidth_bytes_per_second: Amount | None = None
    match_base_seconds: Amount | None = None
    match_seconds_per_match: Amount | None = None
    log_bytes: Whole | None = None
    log_limit_bytes: Whole | None = None
    log_bytes_per_second: Amount | None = None
    cover_subscriptions: Whole | None = None
    publishers: Whole | None = None
    balanced_set: list[str] = []
    publisher_rates: dict[str, Amount] = {}
    publisher_bytes_per_second: dict[str, Amount] = {}
    covers: dict[str, Whole] = {}
    counters: dict[str, Any] = {}


_TOTALS: Final = {
    "arrivals_total": "arrivals", "deliveries_total": "deliveries", "bytes_out_total": "bytes_out",
    "gaps_total": "said_Gap",
}  # fmt: skip
_COLLECTOR_COLUMNS: Final = ("schema", "collector", "received_us", "event_us", "at_us", "fleet")
_LISTS: Final = ("balanced_set", "publisher_rates", "covers")
_COPIED: Final = tuple(n for n in LOADS.names if n not in {*_COLLECTOR_COLUMNS, *_TOTALS, *_LISTS})
_FLOATS: Final = tuple(n for n in _COPIED if LOADS.field(n).type == "float64")


class ReportIntake:
    """One collector's memory. `pending_rows`: rows to be written; at most `max_rows`, of which the oldest go first."""

    def __init__(self, fleet: str, collector: str, *, max_brokers: int = 20_000, max_rows: int = 200_000) -> None:
        self.fleet, self.collector = fleet, collector
        self.max_brokers, self.max_rows = max_brokers, max_rows
        self.outcomes: Counter[ReportOutcome] = Counter()
        self.reasons: Counter[RefusalReason] = Counter()
        self.skewed = 0
        self.dropped = 0
        self.pending_rows: list[ReportRow] = []
        self.newest: dict[str, dict[str, ReportPoint]] = {}
        self._numbers: dict[str, ReportSequence] = {}
        self._cluster_of: dict[str, str] = {}

    @property
    def counts(self) -> ReportCounts:
        """Counts of all reports since this collector started, by what became of them."""
        of = self.outcomes
        return ReportCounts(
            rows_in=sum(of.values()), counted=of["counted"], duplicate=of["duplicate"], late=of["late"],
            invalid=of["invalid"],
        )  # fmt: skip

    @property
    def brokers(self) -> int:
        """The number of known brokers."""
        return len(self._numbers)

    # -- reports

    def refuse(self, reason: RefusalReason = "malformed") -> ReportOutcome:
        """Count a frame that could not be decoded as a report."""
        self.outcomes["invalid"] += 1
        self.reasons[reason] += 1
        return "invalid"

    def take_report(self, said: Mapping[str, Any], cluster: str, received_us: int) -> ReportOutcome:
        """Take one report from the head of `cluster`."""
        if said.get("schema", MAJOR) != MAJOR:
            return self.refuse("schema")
        try:
            report = msgspec.convert(said, IncomingReport)
        except msgspec.ValidationError:  # counted under its reason, as everything that is refused
            return self.refuse("malformed")
        if any(math.isnan(value) for value in _float_values(report)):
            return self.refuse("malformed")
        if report.cluster != cluster:
            return self.refuse("misplaced")
        if report.clock_us > received_us + FUTURE_SECONDS * 1e6:
            return self.refuse("future")
        verdict = self._classify(report, received_us)
        if verdict is None:
            return self.refuse("full")
        self.outcomes[verdict] += 1
        if verdict == "counted":
            self._accept(report, received_us)
        return verdict

    def _classify(self, report: IncomingReport, received_us: int) -> SequenceVerdict | None:
        numbers = self._numbers.get(report.broker)
        if numbers is None:
            if len(self._numbers) >= self.max_brokers:
                return None
            numbers = self._numbers[report.broker] = ReportSequence()
        return numbers.classify(report.epoch, report.seq, received_us)

    def _accept(self, report: IncomingReport, received_us: int) -> None:
        event_us = report.clock_us if report.clock_us >= CLOCK_SET_US else None
        at_us = event_us
        if event_us is None or abs(received_us - event_us) > SKEW_SECONDS * 1e6:
            self.skewed += 1
            at_us = received_us
        assert at_us is not None  # noqa: S101  # either the broker's time or ours
        made = {
            "schema": MAJOR, "collector": self.collector, "received_us": received_us, "event_us": event_us,
            "at_us": at_us, "fleet": self.fleet,
        }  # fmt: skip
        self.pending_rows.append(tuple(made[name] for name in _COLLECTOR_COLUMNS) + report_row(report))
        if len(self.pending_rows) > self.max_rows:
            self._drop(len(self.pending_rows) - self.max_rows)
        self._update_newest(
            ReportPoint(
                report.broker, report.role, report.epoch, report.seq, received_us, report.state,
                tuple(to_billionths(getattr(report, name)) for name in METRICS),
            ),
            report.cluster,
        )  # fmt: skip

    def _update_newest(self, point: ReportPoint, cluster: str) -> None:
        """Keep the newest report per broker for the fold, which goes by arrival and ignores the brokers' clocks."""
        before = self._cluster_of.get(point.broker)
        if before is not None and before != cluster:
            self._forget_point(point.broker)
        here = self.newest.setdefault(cluster, {})
        known = here.get(point.broker)
        if known is None or known.epoch != point.epoch or known.seq < point.seq:
            here[point.broker] = point
            self._cluster_of[point.broker] = cluster

    # -- rows

    def take_rows(self) -> list[ReportRow]:
        """The pending rows, which become the caller's; rows that cannot be written go to `return_rows`."""
        rows, self.pending_rows = self.pending_rows, []
        return rows

    def return_rows(self, rows: Sequence[ReportRow]) -> None:
        """Queue rows again that could not be written, ahead of the others."""
        self.pending_rows = [*rows, *self.pending_rows]
        if len(self.pending_rows) > self.max_rows:
            self._drop(len(self.pending_rows) - self.max_rows)

    def _drop(self, rows: int) -> None:
        del self.pending_rows[:rows]
        self.dropped += rows

    # -- memory

    def remember(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember rows written before a restart, so that a repetition is a duplicate. Nothing is counted."""
        for row in sorted(rows, key=lambda row: (row["received_us"], row["epoch"], row["seq"])):
            if row["broker"] in self._numbers or len(self._numbers) < self.max_brokers:
                numbers = self._numbers.setdefault(row["broker"], ReportSequence())
                numbers.classify(row["epoch"], row["seq"], row["received_us"])

    def forget_silent(self, expected: Iterable[str], now_us: int) -> None:
        """Forget brokers that are not expected and have been silent for long."""
        kept = set(expected)
        for broker, numbers in list(self._numbers.items()):
            if broker not in kept and now_us - numbers.heard_us > FORGET_SECONDS * 1e6:
                del self._numbers[broker]
                self._forget_point(broker)

    def _forget_point(self, broker: str) -> None:
        cluster = self._cluster_of.pop(broker, None)
        if cluster is not None:
            self.newest[cluster].pop(broker, None)
            if not self.newest[cluster]:
                del self.newest[cluster]


def report_row(report: IncomingReport) -> ReportRow:
    """The columns of `loads` that come from the report, in order."""
    totals = report.counters
    return (
        *(getattr(report, name) for name in _COPIED_FIRST),
        *(_integer_or_none(totals.get(name)) for name in _TOTALS.values()),
        report.balanced_set,
        [
            {
                "publisher": name, "publications_per_second": rate,
                "bytes_per_second": report.publisher_bytes_per_second.get(name, 0.0),
            }
            for name, rate in report.publisher_rates.items()
        ],
        [{"link": name, "subscriptions": size} for name, size in report.covers.items()],
    )  # fmt: skip


def _float_values(report: IncomingReport) -> Iterator[float]:
    """All values that must not be NaN, which the bounds of the fields let through."""
    for name in _FLOATS:
        if (value := getattr(report, name)) is not None:
            yield value
    yield from report.publisher_rates.values()
    yield from report.publisher_bytes_per_second.values()


def _integer_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_COPIED_FIRST: Final = LOADS.names[len(_COLLECTOR_COLUMNS) : LOADS.names.index("arrivals_total")]
if LOADS.names != (*_COLLECTOR_COLUMNS, *_COPIED_FIRST, *_TOTALS, *_LISTS):
    raise AssertionError("rows are put together in the order of the schema's columns")
