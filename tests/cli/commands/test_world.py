"""`plimsoll world`: the file of a fleet with real brokers, what it says of itself, and why there is none."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from plimsoll.cli.commands.world import world_text
from plimsoll.cli.local_backend import LocalBackend
from plimsoll.client import Connection, Publisher, Subscriber
from plimsoll.core.printable import printable_lines
from plimsoll.core.spec import parse
from plimsoll.local.manifests import load as load_files
from plimsoll.local.runtime import prepare_store
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.mediator.world.fleet_world import FleetWorld

EVIL = "x\n- name: y\x1b[31m\u202e"


@pytest.fixture
def load(run, shared_fleet, tmp_path: Path) -> Iterator[Namespace]:
    """Two subscribers and a publisher with an ugly name; what was published is in the log."""
    path = tmp_path / "app.json"
    assert run("client-config", "app", "--write", str(path))[0] == 0
    with Connection.from_file(str(path)) as connection:
        subscribers = [Subscriber(connection, name=name) for name in ("one", EVIL)]
        for number, each in enumerate(subscribers):
            each.subscribe(f"[class,=,'STOCK'],[n,>,{number}]", wait=True)
        with Publisher(connection, name=f"p {EVIL}") as publisher:
            for number in range(5):
                publisher.publish({"class": "STOCK", "n": number, "text": EVIL}, b"12345")
                publisher.flush()
            yield Namespace(path=path, publisher=publisher)
            for each in subscribers:
                each.close()


def ready(run) -> None:
    """Wait until every broker has reported its load."""
    until = time.monotonic() + 300
    while (found := run("world", "--from-status"))[0] != 0 and "has not reported" in found[2]:
        assert time.monotonic() < until


@pytest.mark.slow
def test_a_running_fleet_becomes_a_file_that_can_be_simulated(run, load, tmp_path):
    ready(run)
    path = tmp_path / "world.yaml"
    code, out, err = run("world", "--over", "60", "--duration", "30s", "--write", str(path))
    assert (code, out) == (0, ""), err
    assert "plimsoll simulate -f" in err
    text = path.read_text()
    assert printable_lines(text) == text
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert any("measured: 5 publications of 1 publishers" in line for line in comments)
    world = next(yaml.safe_load_all(text))
    assert [each["name"] for each in world["spec"]["publishers"]] == [f"p {EVIL}"]
    assert world["spec"]["publishers"][0]["payload"] == 5
    assert {each["name"]: each["subscriptions"] for each in world["spec"]["subscribers"]} == {
        "one": ["[class,=,'STOCK'],[n,>,0]"], EVIL: ["[class,=,'STOCK'],[n,>,1]"],
    }  # fmt: skip
    code, out, err = run("simulate", "-f", str(path), "--policy", "none")
    assert code == 0, err
    assert "and the first minute under none:" in out
    assert out.count("east-head") == 1


@pytest.mark.slow
def test_a_cluster_that_is_not_there(run, shared_fleet):
    code, out, err = run("world", "--cluster", "eats")
    assert (code, out) == (1, "")
    assert 'there is no BrokerCluster "eats". Did you mean "east"?' in err


def test_a_fleet_that_does_not_run(run, quickstart):
    assert run("world")[0] == 3  # there is none at all
    folder = FleetFolder.of("quickstart")
    folder.make()
    prepare_store(folder, parse(load_files([quickstart])))
    code, out, err = run("world")
    assert (code, out) == (4, "")
    assert err == "plimsoll: fleet quickstart is not running: start it with `plimsoll up -f FILE`\n"


def test_a_supervisor_that_does_not_write(run, quickstart, monkeypatch):
    folder = FleetFolder.of("quickstart")
    folder.make()
    prepare_store(folder, parse(load_files([quickstart])))
    note = "the supervisor of fleet quickstart has written nothing for 12 s"
    monkeypatch.setattr(LocalBackend, "staleness_note", lambda self: note)
    monkeypatch.setattr(LocalBackend, "not_running_reason", lambda self: "")
    code, _, err = run("world")
    assert code == 4
    assert err.startswith("plimsoll: the supervisor of fleet quickstart has written nothing for 12 s; a World")


def test_an_address_leads_to_no_load(run, tmp_path):
    assert run("context", "add", "far", "--address", "tcp://127.0.0.1:1", "--plain")[0] == 0
    code, _, err = run("world", "--context", "far")
    assert code == 2
    assert "context far is an address, which does not show or change the fleet behind it" in err


def test_options_are_checked(run):
    assert run("world", "--over", "0")[0] == 2
    assert run("world", "--duration", "soon")[0] == 2


def test_text_from_outside_ends_no_comment():
    world = {"kind": "World", "metadata": {"name": "w"}, "spec": {"publishers": [{"name": EVIL}]}}
    text = world_text(
        FleetWorld([world, {"kind": "BrokerFleet"}], [f"measured: {EVIL} " + "word " * 50]), f"fleet {EVIL}"
    )
    assert printable_lines(text) == text
    assert list(yaml.safe_load_all(text)) == [world, {"kind": "BrokerFleet"}]
    comments = text[: text.index("kind:")].splitlines()
    assert all(line.startswith("#") and len(line) <= 120 for line in comments)
