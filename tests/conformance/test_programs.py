"""Our own client as a program: the adapter in examples/ keeps to the scenarios over sockets, too."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from plimsoll.conformance import SCENARIOS, ChildClient, play_all, table_report

ADAPTER = Path(__file__).resolve().parents[2] / "examples" / "clients" / "conformance_client.py"
SOME = (
    "frame-lost", "connection-broken", "link-lost", "publish", "head-restarted", "attach", "closed", "moved", "move",
    "move-paused", "move-list-changed", "move-next-lost-before",
)  # fmt: skip


def play_ours(names: tuple[str, ...]) -> None:
    scenarios = [each for each in SCENARIOS if "full" in each.profiles and (not names or each.name in names)]
    verdicts = list(play_all(scenarios, partial(ChildClient, [sys.executable, str(ADAPTER)]), jobs=2, patience=25))
    assert len(verdicts) == len(names or scenarios)
    assert all(verdict.is_kept for verdict in verdicts), table_report(verdicts)


@pytest.mark.slow
def test_our_own_client_keeps_to_some_scenarios():
    play_ours(SOME)


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # each scenario starts a process, and some wait for dead times
def test_our_own_client_keeps_to_all_scenarios():
    play_ours(())
