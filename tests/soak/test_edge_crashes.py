"""The time that subscribers of a killed edge need to re-attach; and a crash in real processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.demo.journal import DeliveryJournal, JournalAttachment
from plimsoll.soak import edge_crashes
from plimsoll.soak.edge_crashes import EdgeCrash, is_passed, recovery_times


def test_recovery_time_is_from_the_crash_to_the_next_attachment(tmp_path: Path) -> None:
    with DeliveryJournal(tmp_path / "a") as journal:
        journal.attached(JournalAttachment("hit", "e1", 1.0))
        journal.attached(JournalAttachment("other", "e2", 10.1))
        journal.attached(JournalAttachment("hit", "e2", 10.5))
        journal.attached(JournalAttachment("hit", "e3", 12.0))
        journal.attached(JournalAttachment("hit", "e1", 20.25))
    found = [EdgeCrash("e1", 10.0, frozenset(["hit", "lost"])), EdgeCrash("e3", 20.0, frozenset(["hit"]))]
    assert recovery_times([tmp_path / "a"], found) == [0.5, 0.25]


@pytest.mark.parametrize(
    "fault",
    [
        {"back": 9},
        {"back_ms": {"max": 10_001.0}},
        {"violations": ["I1"]},
        {"gaps": 1},
        {"orphaned": 1},
        {"expected": 0},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_late_recovery_or_a_finding_of_the_audit_fails_the_run(fault: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "hit": 10, "back": 10, "back_ms": {"max": 800.0}, "violations": [], "gaps": 0, "orphaned": 0, "expected": 5,
    }  # fmt: skip
    assert is_passed(good)
    assert not is_passed({**good, **fault})


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet of four brokers, and its busiest edge killed under load
def test_subscribers_of_a_killed_edge_re_attach_in_time_and_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = edge_crashes.main(["--subscribers", "90", "--times", "1", "--speed", "4", "--report", str(tmp_path)])
    assert code == 0, capsys.readouterr()
    report = json.loads((tmp_path / edge_crashes.REPORT).read_text())
    assert report["back"] == report["hit"] > 0
    assert (report["lost"], report["duplicated"], report["reordered"], report["gaps"]) == (0, 0, 0, 0)
    assert report["delivered"] == report["expected"] > 0
