"""get bundles, split and unload: what they show, what they write, and what they refuse to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

LOW, HIGH = "0x00000000_0x80000000", "0x80000000_0xffffffff"
ROW: dict[str, object] = {
    "topics": 2,
    "sessions": 6,
    "publicationsPerSecond": 10,
    "deliveriesPerSecond": 52,
    "bytesPerSecond": 7200,
}

ROWS = [{"name": LOW, "edge": "e-0", **ROW}, {"name": HIGH, **dict.fromkeys(ROW, 0)}]


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    """A fleet whose cluster east reports two bundles, of which the second has no edge."""
    assert home.exists()
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            store.set_status("BrokerCluster", "east", lambda old: {**old.get("status", {}), "bundles": ROWS})
        yield found


def test_bundles_are_listed_with_edge_and_load(run: Run, folder: FleetFolder):
    code, out, _ = run("get", "bundles")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["BUNDLE", "CLUSTER", "EDGE", "TOPICS", "SESSIONS", "IN/S", "OUT/S", "BYTES/S"],
        [LOW, "east", "e-0", "2", "6", "10", "52", "7200"],
        [HIGH, "east", "-", "0", "0", "0", "0", "0"],
    ]
    assert run("get", "bundles", "-o", "name")[1].split() == [LOW, HIGH]
    whole = json.loads(run("get", "bundle", HIGH, "-o", "json")[1])
    assert (whole["kind"], whole["metadata"]["name"]) == ("Bundle", "east-80000000-ffffffff")
    assert whole["metadata"]["ownerReferences"][0]["name"] == "east"
    assert (whole["spec"]["range"], whole["status"]) == (HIGH, dict.fromkeys(ROW, 0))
    assert json.loads(run("get", "bundle", "east-80000000-ffffffff", "-o", "json")[1]) == whole
    listed = json.loads(run("get", "bundles", "-o", "json")[1])
    assert [item["status"].get("edge") for item in listed["items"]] == ["e-0", None]
    assert run("get", "bundles", "0x00000000_0x00000001")[0] == 3


def test_a_fleet_without_bundles_says_where_they_come_from(run: Run, home: Path):
    for _ in asked.fleet():
        code, out, error = run("get", "bundles")
        assert (code, out) == (0, "")
        assert "policy: {type: Pulsar}" in error
        code, _, error = run("split", "east", LOW, "--no-wait")
        assert code != 0
        assert "cluster east has no bundles" in error


@pytest.mark.parametrize("kind", ["BrokerFleet", "BrokerCluster"])
def test_while_the_head_has_not_reported_bundles_are_not_known_yet(run: Run, home: Path, kind: str):
    policy = {"policy": {"type": "Pulsar", "pulsar": {"topicAttribute": "topic"}}}
    name, spec = ("default", {"defaults": policy}) if kind == "BrokerFleet" else ("east", policy)
    for found in asked.fleet():
        with ObjectStore(found.store) as store:
            whole = store.get(kind, name)
            store.update({**whole, "spec": {**whole["spec"], **spec}})
        for words in (("get", "bundles"), ("split", "east", LOW, "--no-wait")):
            assert "not known yet" in run(*words)[2]


def test_what_is_asked_for_is_what_yaml_would_say(run: Run, folder: FleetFolder):
    assert run("unload", "east", LOW, LOW, HIGH, "--to", "e-1", "--no-wait", "--name", "one")[0] == 0
    assert run("split", "east", LOW, "--dry-run", "--no-wait", "--name", "two")[0] == 0
    assert asked.sessions(folder) == {
        "one": {"scope": "Local", "source": {"name": "east"}, "target": {"name": "e-1"}, "action": "Unload",
                "select": {"bundles": [LOW, HIGH]}, "mode": "Execute"},
        "two": {"scope": "Local", "source": {"name": "east"}, "action": "Split", "select": {"bundles": [LOW]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("split", "eas", LOW), 'Did you mean "east"?'),
        (("unload", "east", "hot"), '"hot" is not a bundle of east'),
        (("unload", "east", LOW, "--to", "far"), 'there is no EdgeBroker "far"'),
    ],
)
def test_a_wrong_name_has_a_hint(run: Run, folder: FleetFolder, words: tuple[str, ...], why: str):
    code, _, error = run(*words, "--no-wait")
    assert code != 0
    assert why in error
    assert asked.sessions(folder) == {}
