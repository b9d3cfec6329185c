"""get, describe, events and watch: tables for people, documents for programs, codes for scripts."""

import argparse
import json
import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from tests.core.session.model import World

from plimsoll.cli import backend
from plimsoll.cli.commands import inspect
from plimsoll.cli.describe.object import describe_object
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.local.runtime import prepare_store
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.mediator import plan_storage
from plimsoll.mediator.session_objects import SESSION_KIND

TEXT = """
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi, bandwidth: {outputBytesPerSecond: 600k}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east, labels: {team: quotes}}
spec: {head: {profile: small}, edges: [{name: e, profile: small}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: extra}
spec: {clusterRef: {name: east}, profile: small}
---
apiVersion: plimsoll.dev/v1alpha1
kind: LoadBalancingSession
metadata: {name: try}
spec: {scope: Local, source: {name: extra}}
"""


def prepared(name="default"):
    folder = FleetFolder.of(name)
    folder.make()
    documents = [SourceDocument(item) for item in yaml.safe_load_all(TEXT)]
    if name != "default":
        documents.append(
            SourceDocument({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": name}})
        )
    prepare_store(folder, parse(documents))
    return folder


@pytest.mark.parametrize("word", ["hwp", "HardwareProfile", "hardwareprofiles", "hardwareprofile", "HWP"])
def test_kinds_have_short_names_and_plurals(run, word):
    prepared()
    code, out, _ = run("get", word)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["NAME", "CPU", "MEMORY", "IN-BYTES/S", "OUT-BYTES/S", "EMULATED", "BROKERS", "AGE"]
    assert lines[1][:6] == ["small", "1", "64Mi", "unlimited", "600k", "no"]


def test_all_kinds_at_once(run):
    prepared()
    code, out, _ = run("get", "all")
    assert code == 0
    assert [block.split()[0] for block in out.split("\n\n")] == ["NAME"] * 5
    assert "try   Rebalance  extra   -       Requested  -" in out


def test_documents_for_programs(run):
    prepared()
    one = json.loads(run("get", "bc", "east", "-o", "json")[1])
    assert (one["kind"], one["metadata"]["labels"]) == ("BrokerCluster", {"team": "quotes"})
    many = json.loads(run("get", "bc", "-o", "json")[1])
    assert (many["kind"], len(many["items"])) == ("List", 1)
    assert yaml.safe_load(run("get", "bc", "east", "-o", "yaml")[1]) == one
    assert run("get", "bc", "-o", "name")[1] == "brokerclusters/east\n"


def test_what_is_printed_can_be_applied_again(run, tmp_path):
    prepared()
    file = tmp_path / "all.yaml"
    file.write_text(run("get", "all", "-o", "yaml")[1])
    code, out, err = run("apply", "-f", str(file))
    assert (code, err) == (0, "")
    assert {line.split()[1] for line in out.splitlines()} == {"unchanged"}


def test_nothing_found_has_a_code_of_its_own(run):
    assert run("get", "bc")[0] == 3
    prepared()
    code, out, err = run("get", "bc", "eats")
    assert (code, out) == (3, "")
    assert 'no BrokerCluster "eats" in fleet default. Did you mean "east"?' in err
    assert run("get", "cluster")[0] == 3
    assert run("describe", "bc", "west")[0] == 3
    assert run("get", "bc", "--fleet", "other")[0] == 3


def test_arguments_that_make_no_sense(run):
    assert run("get")[0] == 2
    assert run("get", "bc", "-o", "xml")[0] == 2
    assert run("fly")[0] == 2
    assert run()[0] == 2


def test_one_of_several_fleets_must_be_named(run, monkeypatch):
    prepared()
    prepared("second")
    code, _, err = run("get", "bc")
    assert code == 2
    assert "several fleets: default, second" in err
    assert run("get", "bc", "--fleet", "second")[0] == 0
    monkeypatch.setenv("PLIMSOLL_FLEET", "default")
    assert run("get", "bf")[1].splitlines()[1].startswith("default")


def test_a_description_has_defaults_status_conditions_and_events(run):
    folder = prepared()
    with ObjectStore(folder.store) as store:
        condition = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "2 of 2"}
        times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
        store.set_status(
            "BrokerCluster", "east", lambda old: {"endpoint": "tcp://x", "conditions": [{**condition, **times}]}
        )
        store.record("BrokerCluster", "east", "Warning", "Exited", "why", "2026-01-01T00:00:00Z")
        item, events = store.get("BrokerCluster", "east"), store.events()
    lines = list(describe_object(item, events, datetime(2026, 1, 1, 0, 3, tzinfo=UTC)))
    text = "\n".join(lines)
    for part in (
        "Name:        east",
        "Label:       team=quotes",
        "Spec (with defaults):",
        "  neighbors: []",
        "Status:\n  endpoint: tcp://x",
        "Ready  True    AllReady  3m     2 of 2",
        "3m    1      Warning  Exited  bc/east  why",
    ):
        assert part in text
    assert run("describe", "bc", "east")[0] == 0
    assert "Unknown" in run("describe", "bc", "east")[1]  # no process runs it


def test_fields_are_explained(run):
    code, out, _ = run("explain", "hwp")
    assert code == 0
    assert "spec.bandwidth.outputBytesPerSecond" in out
    code, out, _ = run("explain", "bc.edges")
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "spec.edges[]", "spec.edges[].name", "spec.edges[].profile", "spec.edges[].replicas", "spec.edges[].location",
        "spec.edges[].location.east", "spec.edges[].location.north",
    ]  # fmt: skip
    assert run("explain", "bc.spec.edges")[1] == out
    assert "spec.affinity " in run("explain", "hwp")[1]
    assert "spec.affinity.podAffinity" not in run("explain", "hwp")[1]
    assert "spec.affinity.podAffinity" in run("explain", "hwp.affinity")[1]
    assert run("explain", "bc.none")[0] == 3
    assert run("explain", "none")[0] == 3


def test_watching_prints_changes_until_it_is_interrupted(program):
    folder = prepared()
    process = program("get", "eb", "-w")
    assert process.stdout is not None
    assert "NAME" in process.stdout.readline()
    assert "extra" in process.stdout.readline()
    with ObjectStore(folder.store) as store:
        store.set_status("EdgeBroker", "extra", lambda old: {"state": "OK", "subscribers": 5})
        assert process.stdout.readline().split() == [
            "extra", "east", "small", "Unknown", "OK", "no", "5", "-", "-", "-", "-",
        ]  # fmt: skip
        store.delete("EdgeBroker", "extra")
        assert process.stdout.readline().split() == ["extra", "deleted"]
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130


def test_watching_documents_and_events(program):
    folder = prepared()
    documents, events = program("get", "eb", "extra", "-w", "-o", "json"), program("events", "-w")
    assert documents.stdout is not None
    assert events.stdout is not None
    first: list[str] = []
    while not first or first[-1] != "}\n":
        first.append(documents.stdout.readline())
    assert json.loads("".join(first))["metadata"]["name"] == "extra"
    events.stdout.readline()
    with ObjectStore(folder.store) as store:
        store.record("EdgeBroker", "extra", "Normal", "Started", "here", "2026-01-01T00:00:00Z")
    assert "eb/extra  here" in events.stdout.readline()


def test_the_fleet_as_lines_without_a_terminal(program):
    folder = prepared()
    process = program("watch")
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(3)]
    assert [line.split()[1] for line in first] == ["bc/east", "bf/default", "eb/extra"]
    with ObjectStore(folder.store) as store:
        store.set_status("EdgeBroker", "extra", lambda old: {"state": "OK", "subscribers": 5})
    line = process.stdout.readline()
    assert "eb/extra" in line
    assert "SUBSCRIBERS=5" in line


def test_a_reader_that_has_had_enough_is_no_failure(program):
    prepared()
    process = program("get", "all", "-w")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    with ObjectStore(FleetFolder.of("default").store) as store:
        deadline, n = time.monotonic() + 300, 0
        while process.poll() is None:
            n += 1
            store.set_status("EdgeBroker", "extra", lambda old, n=n: {"subscribers": n})
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert process.returncode == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


class ApartReader:
    """Sessions as on Kubernetes: the names of plans are in objects of their own."""

    def __init__(self, world: World) -> None:
        self._items, self._maps = [], []
        for session in world.mediator.sessions.values():
            record, text = plan_storage.split_session(session)
            names = plan_storage.plan_object_names(session.name, text)
            status = {"record": record, "planKey": plan_storage.plan_key(text), "planObjects": names}
            owners = [{"uid": session.parent, "controller": True, "kind": SESSION_KIND, "name": "d"}]
            metadata = {"name": session.name, "uid": session.uid, "ownerReferences": owners if session.parent else []}
            self._items.append({"kind": SESSION_KIND, "metadata": metadata, "spec": {}, "status": status})
            self._maps += plan_storage.plan_objects(session, "n", text)

    def objects(self, *_kinds: str) -> list[dict[str, Any]]:
        return self._items

    def with_plan(self, item: dict[str, Any]) -> dict[str, Any]:
        return plan_storage.with_full_record(item, self._maps)


def test_the_children_of_a_session_are_read_with_their_plans(monkeypatch, capsys):
    world = World(seed=1)
    world.fill("a", 4)
    uid = world.ask("d", source="a", action="Drain")
    world.until_over(uid, seconds=900)
    monkeypatch.setattr(backend, "choose_backend", lambda _: ApartReader(world))
    assert inspect.explain(argparse.Namespace(path="lbs/d")) == 0
    out = capsys.readouterr().out
    rows = [line.split()[:4] for line in out.splitlines() if line.startswith("a00")]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (name, "a", "moved") for name in ("a000", "a002", "a001", "a003")
    ]
