"""rebalance --group and drain --group: what they write, and what they refuse to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder

GROUPS = asked.TEXT.replace(
    "neighbors: [{name: west}]", "neighbors: [{name: west}], consumerGroups: [{name: readings, slices: {count: 8}}]"
).replace("slices: {count: 8}", "slices: {count: 8, function: Publisher}")


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    yield from asked.fleet(GROUPS)


def test_slices_go_from_consumer_to_consumer(run: Run, folder: FleetFolder):
    words = ("--from", "worker-1", "--to", "worker-2", "--slices", "3,4", "--name", "one", "--no-wait")
    assert run("rebalance", "--group", "readings", *words)[0] == 0
    assert asked.sessions(folder)["one"] == {
        "scope": "Local", "source": {"name": "east"}, "action": "MoveSlices", "mode": "Execute",
        "slices": {"group": "readings", "giver": "worker-1", "taker": "worker-2", "numbers": [3, 4]},
    }  # fmt: skip


def test_a_consumer_is_drained_and_a_policy_asked(run: Run, folder: FleetFolder):
    assert run("drain", "worker-1", "--group", "readings", "--name", "empty", "--no-wait")[0] == 0
    assert run("rebalance", "--group", "readings", "--dry-run", "--name", "even", "--no-wait")[0] == 0
    found = asked.sessions(folder)
    assert found["empty"]["slices"] == {"group": "readings", "giver": "worker-1"}
    assert found["even"]["slices"] == {"group": "readings"}
    assert "mode" not in found["even"]  # which is DryRun


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "reading"), 'no consumer group "reading"'),
        (("--group", "readings", "--to", "worker-1"), "say which slices with --slices or --from"),
        (("--group", "readings", "--from", "a", "--to", "a"), "are both a"),
        (("--group", "readings", "--share", "30%"), "--group moves slices"),
        (("--group", "readings", "--handover", "replay"), "slices move in one way only"),
        (("--group", "readings", "--slices", "three"), "not a list of numbers"),
        (("--from", "e-0", "--slices", "3"), "--slices needs a consumer group"),
        (("--to", "e-0"), "say what moves"),
    ],
)
def test_what_it_does_not_write(run: Run, folder: FleetFolder, words: tuple[str, ...], message: str):
    code, _, error = run("rebalance", *words, "--no-wait")
    assert code
    assert message in error
    assert not asked.sessions(folder)
