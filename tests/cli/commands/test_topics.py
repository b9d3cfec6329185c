"""get topics: what it shows, and where topics come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FAST: dict[str, Any] = {
    "hash": "00000007", "name": "fast", "edge": "e-0", "subscribers": 7, "publicationsPerSecond": 200,
    "deliveriesPerSecond": 1225, "depth": 100, "latencyMilliseconds": 1050, "late": 12, "requiredMilliseconds": 1100,
    "depthThreshold": 97,
}  # fmt: skip
FREE: dict[str, Any] = {
    "hash": "00000001", "name": "free\x1b[2J", "edge": "e-1", "subscribers": 1, "publicationsPerSecond": 0,
    "deliveriesPerSecond": 0, "depth": 0, "latencyMilliseconds": 3, "late": 0,
}  # fmt: skip


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    """A fleet whose cluster east reports two topics, of which the second has no deadline."""
    assert home.exists()
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            store.set_status("BrokerCluster", "east", lambda old: {**old.get("status", {}), "topics": [FREE, FAST]})
        yield found


@pytest.mark.usefixtures("folder")
def test_topics_are_listed_with_what_is_required_and_measured(run: Run):
    code, out, _ = run("get", "topics")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["fast", "east", "e-0", "7", "1100", "ms", "1050", "ms", "!", "100", "97", "12", "200", "1225"]
    assert lines[2][1:] == ["east", "e-1", "1", "-", "3", "ms", "0", "-", "0", "0", "0"]
    assert lines[0][-1] == "REASON"
    assert "\x1b" not in out, "what applications call their topics does not reach the terminal as it is"
    assert json.loads(run("get", "topic", "fast", "-o", "json")[1]) == [{"cluster": "east", **FAST}]
    assert json.loads(run("get", "topic", "00000007", "-o", "json")[1]) == [{"cluster": "east", **FAST}]


def test_a_topic_that_is_only_named_shows_why_it_has_no_figures(run: Run, folder: FleetFolder):
    silent = {"hash": "00000002", "name": "bouys", "subscribers": 0, "requiredMilliseconds": 2000,
              "reason": "NoSubscribers", "message": "no subscriber of this cluster asks for it"}  # fmt: skip
    with ObjectStore(folder.store) as store:
        store.set_status("BrokerCluster", "east", lambda old: {**old.get("status", {}), "topics": [silent]})
    [line] = [line.split() for line in run("get", "topics")[1].splitlines()[1:]]
    assert line == ["bouys", "east", "-", "0", "2000", "ms", *"-" * 6, "NoSubscribers"]


@pytest.mark.usefixtures("folder")
def test_a_topic_that_is_not_there(run: Run):
    code, _, error = run("get", "topics", "slow")
    assert code == 3
    assert 'no topic "slow"' in error


def test_a_fleet_without_topics_says_where_they_come_from(run: Run, home: Path):
    assert home.exists()
    for _ in asked.fleet():
        code, out, error = run("get", "topics")
        assert (code, out) == (0, "")
        assert "policy: {type: DelaySensitive}" in error
