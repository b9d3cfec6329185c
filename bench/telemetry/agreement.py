"""Compares balancing decisions made from the collectors' fold with those made from Spark's snapshot.

`python -m bench.telemetry.agreement`: a fleet is recorded in virtual time (`recording`), and its reports reach a
collector over an imperfect network: some late, some twice, some never. The collector's own machine accepts them. At
every detection interval two deciders, the mediator's own code, get the same brokers: one uses the fold of that moment,
the other the snapshot that the live job would have published by then, computed by the definition that `live` and
`oracle` share and checked as a reader checks it. The report says how often both decide alike for a cluster, and the
reason where they do not. Sessions are those of the recording: decisions are compared and not carried out.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.telemetry.recording import LOOK_SECONDS, REPORT_SECONDS, Recording, record

from plimsoll.core import session as s
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.triggers import global_detection
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.brokers import head_name
from plimsoll.mediator import telemetry_loads
from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot, SnapshotChooser
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.fold import ReportPoint, SnapshotHeader, aggregate_cluster, assemble_snapshot, fold_reports
from plimsoll.telemetry.ingest.report_intake import ReportIntake
from plimsoll.telemetry.schema import LOADS
from plimsoll.telemetry.snapshot import (
    SEEN_SECONDS,
    WINDOWS_SECONDS,
    SnapshotRequirements,
    TelemetrySnapshot,
    encode_snapshot,
)

START_US = 1_800_000_000_000_000
FLEET = "wide"
FRESH_SECONDS = max(5, round(2.5 * REPORT_SECONDS))
REPORTS_MISSED = 3
NEAR_TRIGGER = 0.03
"""A difference this close to the trigger may be above it for one decider and below it for the other."""


@dataclass(frozen=True)
class Way:
    """A network to the collector, and the intervals of Spark. Times are in seconds; shares are of all reports."""

    late: float = 0.05
    late_seconds: float = 8.0
    twice: float = 0.05
    lost: float = 0.02
    file_seconds: float = 10.0
    trigger_seconds: float = 5.0
    batch_seconds: float = 3.0
    ask_seconds: float = 5.0


@dataclass(frozen=True)
class Arrival:
    at: float
    report: dict[str, Any]


def arrivals(recording: Recording, way: Way, seed: int) -> list[Arrival]:
    """The reports in the order in which the collector gets them; `clock_us` is when a report was made."""
    draw = random.Random(seed)
    found = []
    for at, report in recording.reports:
        sent = {**report, "clock_us": START_US + round(at * 1e6)}
        if draw.random() < way.lost:
            continue
        copies = 1 + (draw.random() < way.twice)
        for _ in range(copies):
            found.append(Arrival(at + (draw.uniform(0, way.late_seconds) if draw.random() < way.late else 0.0), sent))
    return sorted(found, key=lambda one: one.at)


class Pipeline:
    """A collector and the live job behind it, in virtual time."""

    def __init__(self, recording: Recording, way: Way, seed: int) -> None:
        self.way, self.clusters = way, recording.clusters
        self.intake = ReportIntake(FLEET, "c0")
        self.published: list[tuple[float, bytes]] = []
        self._coming = arrivals(recording, way, seed)
        self._taken = 0
        self.files: list[tuple[float, list[dict[str, Any]]]] = []
        self._written_at = self._run_at = 0.0
        self._batch = 0

    def until(self, now: float) -> None:
        """Advance to `now`: write the files and run the batches that are due."""
        while (due := min(self._written_at + self.way.file_seconds, self._run_at + self.way.trigger_seconds)) <= now:
            self._receive(due)
            if due == self._written_at + self.way.file_seconds:
                self._written_at = due
                rows = [dict(zip(LOADS.names, row, strict=True)) for row in self.intake.take_rows()]
                self.files.append((due, rows))
            if due == self._run_at + self.way.trigger_seconds:
                self._run_at = due
                self._batch += 1
                self.published.append((due + self.way.batch_seconds, encode_snapshot(self._snapshot(due))))
        self._receive(now)

    def _receive(self, now: float) -> None:
        while self._taken < len(self._coming) and self._coming[self._taken].at <= now:
            one = self._coming[self._taken]
            self._taken += 1
            self.intake.take_report(one.report, one.report["cluster"], START_US + round(one.at * 1e6))

    def _snapshot(self, now: float) -> TelemetrySnapshot:
        end_us = START_US + round((now - self.way.file_seconds) * 1e6)
        since_us = end_us - max(WINDOWS_SECONDS) * 1_000_000
        points: dict[str, list[ReportPoint]] = {name: [] for name in self.clusters}
        for _, rows in self.files:
            for row in rows:
                if since_us < row["at_us"] <= end_us:
                    points[row["cluster"]].append(ReportPoint.of(row))
        found = {
            name: aggregate_cluster(points[name], brokers, end_us, WINDOWS_SECONDS, SEEN_SECONDS)
            for name, brokers in self.clusters.items()
        }
        return assemble_snapshot(
            self._header("spark", end_us, now), found, self.intake.counts, WINDOWS_SECONDS, SEEN_SECONDS
        )

    def _header(self, source: Any, end_us: int, now: float) -> SnapshotHeader:
        return SnapshotHeader(
            source=source, fleet=FLEET, run_us=START_US, batch=self._batch, window_end_us=end_us,
            written_us=START_US + round(now * 1e6),
        )  # fmt: skip

    def fold(self, now: float) -> TelemetrySnapshot:
        now_us = START_US + round(now * 1e6)
        points = {cluster: list(of.values()) for cluster, of in self.intake.newest.items()}
        return fold_reports(points, self.clusters, self._header("fold", now_us, now), self.intake.counts, FRESH_SECONDS)

    def spark(self, now: float) -> bytes | None:
        """The newest snapshot that the live job has published."""
        published = [data for at, data in self.published if at <= now]
        return published[-1] if published else None


class Decider:
    """The part of a mediator that detects imbalance between clusters."""

    def __init__(self) -> None:
        self.context = EngineContext(1, s.EngineSettings())

    def look(self, view: s.FleetView, now: float) -> dict[str, Decision]:
        """Its decision for each cluster. An empty target: no cluster is asked."""
        self.context.outbox.begin(now)
        self.context.observe(view)
        global_detection.detect_imbalance(self.context)
        asked = {one.spec["source"]["name"] for one in self.context.outbox.effects if isinstance(one, s.CreateSession)}
        found = {}
        for cluster, watched in self.context.watched_clusters.items():
            action = next(iter(watched.finding.actions), None)
            found[cluster] = Decision(
                watched.finding.state, action.target if action else "", action.metric if action else "",
                action.difference if action else 0.0, cluster in asked,
            )  # fmt: skip
        return found


@dataclass(frozen=True)
class Decision:
    """`asks`: a session is due now, since two detections in a row have found the same."""

    state: str
    target: str
    metric: str
    difference: float
    asks: bool

    @property
    def what(self) -> tuple[str, str, bool]:
        """What is compared: the state, the cluster that is asked, and whether it is asked now."""
        return self.state, self.target, self.asks


@dataclass
class Found:
    """Counts of compared decisions. `by`: how often the second decider used the snapshot, and why it did not."""

    looks: int = 0
    alike: int = 0
    same_metric: int = 0
    wanted: int = 0
    wanted_alike: int = 0
    by: Counter[str] = field(default_factory=Counter)
    apart: list[dict[str, Any]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.alike / self.looks if self.looks else 1.0

    def plain(self) -> dict[str, Any]:
        return {
            "decisions": self.looks, "agree": round(self.share, 4), "samePairAndMetric": self.same_metric,
            "eitherWants": self.wanted, "ofTheseAlike": self.wanted_alike, "by": dict(self.by),
            "apart": dict(Counter(one["why"] for one in self.apart)),
        }  # fmt: skip


def compare(recording: Recording, way: Way, seed: int, from_seconds: float = 60.0) -> Found:
    """Decide by both at every interval. Decisions before `from_seconds` are left out: the fleet is still starting."""
    pipeline, found = Pipeline(recording, way, seed), Found()
    choice = SnapshotChooser(SnapshotRequirements(FLEET))
    deciders = {"fold": Decider(), "spark": Decider()}
    trigger = next(iter(_policies(recording).values())).detection.global_trigger.ratio
    changes = Changes(recording)
    ask_at, known = 0.0, dict[str, PollResult]()
    look_at = LOOK_SECONDS
    while look_at <= recording.seconds:
        while ask_at <= look_at:
            pipeline.until(ask_at)
            known = _asked(pipeline, choice, ask_at)
            ask_at += way.ask_seconds
        pipeline.until(look_at)
        now = START_US / 1e6 + look_at
        decided = {
            name: decider.look(view_of(recording, look_at, now, known[name]), now) for name, decider in deciders.items()
        }
        if look_at >= from_seconds:
            chosen = known["spark"].chosen
            assert chosen is not None
            found.by["spark" if chosen.is_spark else chosen.reason.partition(":")[0]] += 1
            _count(found, decided["fold"], decided["spark"], look_at, float(trigger.value), changes)
        look_at += LOOK_SECONDS
    return found


def _asked(pipeline: Pipeline, choice: SnapshotChooser, now: float) -> dict[str, PollResult]:
    now_us = START_US + round(now * 1e6)
    by_fold = pipeline.fold(now)
    by_spark = choice.choose(pipeline.spark(now), by_fold, now_us)
    return {
        "fold": PollResult(now_us, ChosenSnapshot(by_fold, "Wanted: the fold"), 0),
        "spark": PollResult(now_us, by_spark, 0),
    }


def _count(
    found: Found, fold_: dict[str, Decision], spark: dict[str, Decision], at: float, trigger: float, changes: Changes
) -> None:
    for cluster in sorted({*fold_, *spark}):
        one, other = fold_.get(cluster), spark.get(cluster)
        found.looks += 1
        if one is not None and other is not None and one.what == other.what:
            found.alike += 1
            found.same_metric += one.metric == other.metric
        wants = [each for each in (one, other) if each is not None and each.target]
        if wants:
            found.wanted += 1
            found.wanted_alike += one is not None and other is not None and one.what == other.what
        if one is None or other is None or one.what != other.what:
            why = changes.why(at, [each.difference for each in wants], trigger, one, other)
            found.apart.append({"at": at, "cluster": cluster, "why": why, "fold": one, "spark": other})


class Changes:
    """The times at which subscribers moved: a snapshot from before such a time shows other loads."""

    def __init__(self, recording: Recording) -> None:
        self._at: list[float] = []
        last: dict[str, int] = {}
        for at, report in recording.reports:
            if report["role"] == "edge":
                before = last.get(report["broker"], report["subscribers"])
                if abs(before - report["subscribers"]) > max(2, 0.05 * before):
                    self._at.append(at)
                last[report["broker"]] = report["subscribers"]

    def why(
        self, at: float, differences: Sequence[float], trigger: float, one: Decision | None, other: Decision | None
    ) -> str:
        """The reason for a disagreement: the first that applies."""
        if one is None or other is None:
            return "one of them had too few reports of the cluster"
        if any(at - 40.0 <= moved <= at for moved in self._at):
            return "subscribers came or moved in the last 40 s"
        if differences and min(abs(each - trigger) for each in differences) <= NEAR_TRIGGER:
            return f"the difference was within {NEAR_TRIGGER} of the trigger"
        if one.state != other.state:
            return "the state"
        return "only one had found it twice in a row" if one.target == other.target else "the target"


def view_of(recording: Recording, at: float, now: float, known: PollResult) -> s.FleetView:
    """The fleet as a mediator sees it, with the loads of clusters by telemetry."""
    newest: dict[str, tuple[float, dict[str, Any]]] = {}
    for received, report in recording.reports:
        if received > at:
            break
        newest[report["broker"]] = received, report
    heads, edges = {}, {}
    for cluster, brokers in recording.clusters.items():
        for name in brokers:
            received, report = newest.get(name, (-1e9, {}))
            fresh = report if at - received <= REPORTS_MISSED * REPORT_SECONDS else {}
            if name == head_name(cluster):
                heads[name] = s.HeadView(name, cluster, 1, True, fresh)
            else:
                edges[name] = s.EdgeView(name, cluster, head_name(cluster), report=fresh)
    loads = telemetry_loads.telemetry_loads(known, now)
    shown = (
        s.ClusterComparison(LOOK_SECONDS)
        if loads is None
        else s.ClusterComparison(LOOK_SECONDS, loads.clusters, loads.source)
    )
    return s.FleetView(heads, edges, _policies(recording), recording.near, shown)


def _policies(recording: Recording) -> dict[str, Any]:
    made = ((name, policy_of(recording.resources, name)) for name in recording.resources.clusters)
    return {name: policy for name, policy in made if policy is not None}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.agreement", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="virtual time of each recording")
    parser.add_argument("--subscribers", type=int, default=240)
    parser.add_argument("--publishers", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="one recording for each")
    parser.add_argument("--apart", action="store_true", help="also print each disagreement")
    asked = parser.parse_args(arguments)
    for seed in asked.seeds:
        recording = record(asked.seconds, asked.subscribers, asked.publishers, seed)
        print(json.dumps({"seed": seed, "reports": len(recording.reports), "sessions": recording.sessions}))
        for name, way in WAYS.items():
            found = compare(recording, way, seed)
            print(json.dumps({"seed": seed, "way": name, **found.plain()}), flush=True)
            if asked.apart:
                print(*lines(found.apart), sep="\n")


def lines(apart: Iterable[dict[str, Any]]) -> list[str]:
    return [
        f"  {one['at']:g} s {one['cluster']}: {one['why']}: fold {one['fold']}; spark {one['spark']}" for one in apart
    ]


WAYS = {
    "calm": Way(late=0.0, twice=0.0, lost=0.0),
    "rough": Way(),
    "worse": Way(late=0.2, late_seconds=15.0, twice=0.2, lost=0.1),
}
"""The networks over which each recording is sent."""


if __name__ == "__main__":
    main()
