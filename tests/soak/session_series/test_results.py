"""Slices add up to a series, which resumes only from its own file."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.soak.added_latency import DurationHistogram
from plimsoll.soak.session_series import results
from plimsoll.soak.session_series.results import SliceResult, SliceSeries


def a_slice(seed: int = 1, **changes: Any) -> SliceResult:
    delays = DurationHistogram()
    delays.add(0.010 * seed)
    histograms = dict.fromkeys(("added", "spread", "raw", "raw_outside", "held_up", "beside_source"), delays.as_dict())
    given: dict[str, Any] = {
        "seed": seed, "sessions": 10, "states": {"done": 9, "aborted": 1}, "outcomes": {"moved": 20, "stayed": 2},
        "moving_seconds": 5.0, "published": 100, "expected": 400, "delivered": 400, "lost": 0, "duplicated": 0,
        "reordered": 0, "gaps": 0, "orphaned": 0, "violations": [], "violated": {}, "contradictions": 0,
        "session_seconds": [0.1 * seed], **histograms,
    }  # fmt: skip
    return SliceResult(**{**given, **changes})


def test_a_report_sums_its_slices() -> None:
    report = SliceSeries(what="w", first=1, slices=[a_slice(1), a_slice(2)]).report()
    assert (report["sessions"], report["delivered"], report["outcomes"]) == (20, 800, {"moved": 40, "stayed": 4})
    assert report["session_seconds_max"] == 0.2
    assert report["added_latency_ms"]["count"] == 2
    assert report["added_latency_ms"]["max"] == 20.0
    assert report["failed_seeds"] == []


@pytest.mark.parametrize(
    "fault",
    [{"violated": {"I1": 1}}, {"contradictions": 1}, {"orphaned": 1}, {"gaps": 1}, {"expected": 0}],
    ids=lambda fault: next(iter(fault)),
)
def test_one_fault_fails_the_series(fault: dict[str, Any]) -> None:
    assert SliceSeries(what="w", first=1, slices=[a_slice()]).is_clean
    found = SliceSeries(what="w", first=1, slices=[a_slice(1), a_slice(2, **fault)])
    assert not found.is_clean
    assert found.report()["failed_seeds"] == [2]


def test_a_series_resumes_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "sessions.json"
    results.save_series(path, SliceSeries(what="w", first=4, slices=[a_slice(4)]))
    again = results.load_series(path, "w", 4)
    assert (again.sessions, again.next_seed) == (10, 5)


def test_a_file_of_another_series_or_of_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    results.save_series(path, SliceSeries(what="w", first=4))
    for what, first in (("other", 4), ("w", 5)):
        with pytest.raises(ValueError, match="is of another series"):
            results.load_series(path, what, first)
    path.write_text("{}")
    with pytest.raises(ValueError, match="holds no series"):
        results.load_series(path, "w", 4)
