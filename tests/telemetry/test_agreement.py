"""Whether clusters are balanced equally by the fold and by Spark's snapshot, over small recordings."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from bench.telemetry.agreement import WAYS, Changes, Decision, Pipeline, Way, arrivals, compare
from bench.telemetry.recording import LOOK_SECONDS, REPORT_SECONDS, Recording, record

from plimsoll.mediator import telemetry_loads
from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.snapshot import SnapshotRequirements, decode_usable

SECONDS, SEED = 600.0, 2


@cache
def recorded() -> Recording:
    return record(SECONDS, subscribers=160, publishers=16, seed=SEED)


@pytest.mark.sweep
def test_a_recording_has_what_a_fleet_does_under_load():
    found = recorded()
    assert sorted(found.clusters) == ["b1", "b2", "b3", "b4"]
    assert found.near["b2"] == {"b1", "b3"}
    assert len(found.reports) >= 0.95 * 12 * SECONDS / REPORT_SECONDS
    assert found.sessions > 0
    last = {report["broker"]: report["subscribers"] for _, report in found.reports if report["role"] == "edge"}
    assert sum(last.values()) == 160
    assert sum(count for name, count in last.items() if not name.startswith("b1")) > 16, (
        "load has moved along the chain"
    )


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("way", sorted(WAYS))
def test_decisions_by_fold_and_by_snapshot_agree(way: str):
    found = compare(recorded(), WAYS[way], SEED)
    assert found.looks == 4 * (SECONDS // LOOK_SECONDS - 1)
    assert found.share >= 0.95, found.apart
    assert found.wanted >= 5, "there was something to decide"
    assert found.by["spark"] >= 0.9 * found.by.total(), "the snapshot was good to decide by"


def test_who_decides_by_something_else_does_not_agree(monkeypatch: pytest.MonkeyPatch):
    """A snapshot whose figures are a third of the true ones is caught by this comparison."""
    true = telemetry_loads.telemetry_loads

    def wrong(known: PollResult | None, now: float) -> Any:
        found = true(known, now)
        if found is None or found.source != "Spark":
            return found
        less = {name: {key: value / 3 for key, value in load.items()} for name, load in found.clusters.items()}
        return dataclasses.replace(found, clusters=less)

    monkeypatch.setattr(telemetry_loads, "telemetry_loads", wrong)
    assert compare(recorded(), WAYS["calm"], SEED).share < 0.95


def test_the_fold_and_the_snapshot_are_of_different_moments():
    pipeline = Pipeline(recorded(), WAYS["calm"], 1)
    pipeline.until(300.0)
    data = pipeline.spark(300.0)
    assert data is not None
    snapshot, fold = (
        decode_usable(data, SnapshotRequirements("wide"), pipeline.fold(300.0).window_end_us),
        pipeline.fold(300.0),
    )
    assert 10.0 <= (fold.window_end_us - snapshot.window_end_us) / 1e6 <= 25.0
    assert (snapshot.source, fold.source) == ("spark", "fold")
    folded = telemetry_loads.telemetry_loads(
        PollResult(fold.window_end_us, ChosenSnapshot(fold, "Wanted: it"), 0), fold.window_end_us / 1e6
    )
    assert folded is not None, "the fold counts"
    assert folded.source == "the fold"


def test_networks_lose_repeat_and_delay():
    recording = recorded()
    assert len(arrivals(recording, Way(late=0, twice=0, lost=0), 1)) == len(recording.reports)
    assert len(arrivals(recording, Way(late=0, twice=1, lost=0), 1)) == 2 * len(recording.reports)
    assert arrivals(recording, Way(lost=1.0), 1) == []
    late = arrivals(recording, Way(late=1.0, late_seconds=5.0, twice=0, lost=0), 1)
    assert [one.at for one in late] == sorted(one.at for one in late)
    assert 2.0 < sum(one.at for one in late) / len(late) - sum(at for at, _ in recording.reports) / len(late) < 3.0


@pytest.mark.parametrize(
    ("fold", "spark", "why"),
    [
        (None, Decision("OK", "", "", 0.0, False), "one of them had too few reports of the cluster"),
        (Decision("OK", "b2", "input", 0.17, False), Decision("OK", "", "", 0.0, False), "within 0.03 of the trigger"),
        (Decision("OK", "b2", "input", 0.3, False), Decision("N/A", "b2", "input", 0.3, False), "the state"),
        (Decision("OK", "b2", "input", 0.3, False), Decision("OK", "b2", "input", 0.3, True), "twice in a row"),
        (Decision("OK", "b2", "input", 0.3, False), Decision("OK", "b3", "input", 0.3, False), "the target"),
    ],
)  # fmt: skip
def test_what_is_behind_a_disagreement_is_named(fold: Decision | None, spark: Decision | None, why: str):
    changes = Changes(Recording(recorded().resources, {}))
    wants = [each.difference for each in (fold, spark) if each is not None and each.target]
    assert why in changes.why(500.0, wants, 0.15, fold, spark)
