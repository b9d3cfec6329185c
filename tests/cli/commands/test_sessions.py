"""rebalance, drain, shuffle, cordon, uncordon, approve, stop: what they write, and what they refuse to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

from plimsoll.cli import local_backend, session_wait
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

HASH = "0123456789abcdef"


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    yield from asked.fleet()


def rebalance(run: Run, *more: str, source: str = "e-0") -> tuple[int, str, str]:
    return run("rebalance", "--from", source, "--no-wait", "--name", "one", *more)


def test_what_is_asked_for_is_what_yaml_would_say(run: Run, folder: FleetFolder):
    assert rebalance(run, "--to", "e-1", "--subscribers", "3") == (0, "loadbalancingsession/one created\n", "")
    assert asked.sessions(folder)["one"] == {
        "scope": "Local", "source": {"name": "e-0"}, "target": {"name": "e-1"}, "select": {"count": 3},
        "mode": "Execute",
    }  # fmt: skip


def test_every_option_is_a_field(run: Run, folder: FleetFolder):
    options = (
        "--to", "w", "--share", "30%", "--dry-run", "--approve", "manual", "--handover", "drain", "--deadline", "90s",
        "--exclude", "s1, e-1,s2",
    )  # fmt: skip
    assert rebalance(run, *options)[0] == 0
    assert asked.sessions(folder)["one"] == {
        "scope": "Global", "source": {"name": "e-0"}, "target": {"name": "w"}, "select": {"sharePercent": 30},
        "handover": "Drain", "approval": {"policy": "Manual"}, "deadline": "90s",
        "exclusions": {"brokers": ["e-1"], "subscribers": ["s1", "s2"]},
    }, "a dry run is the default of an object"  # fmt: skip


def test_without_a_target_the_mediator_chooses_one(run: Run, folder: FleetFolder):
    assert rebalance(run, "--subscribers", "1", "--exclude", "s1")[0] == 0
    spec = asked.sessions(folder)["one"]
    assert "target" not in spec
    assert (spec["scope"], spec["exclusions"]) == ("Local", {"subscribers": ["s1"]})


def test_without_a_number_the_policy_chooses(run: Run, home: Path):
    for folder in asked.fleet(asked.TEXT.replace("edges: [{name: e,", "policy: {type: Padres}, edges: [{name: e,")):
        assert rebalance(run)[0] == 0
        assert asked.sessions(folder)["one"] == {
            "scope": "Local", "source": {"name": "e-0"}, "mode": "Execute",
        }  # fmt: skip
        code, _, err = run("rebalance", "--from", "e-0", "--to", "w", "--no-wait")
        assert (code, "a policy does not choose subscribers across clusters" in err) == (2, True)
        code, _, err = run("rebalance", "--from", "w", "--no-wait")
        assert (code, "cluster west has no policy to choose subscribers" in err) == (2, True)


def test_a_session_without_a_name_is_given_one(run: Run, folder: FleetFolder):
    for _ in range(2):
        code, out, _ = run("rebalance", "--from", "e-0", "--subscribers", "1", "--no-wait")
        assert code == 0
        assert out.startswith("loadbalancingsession/rebalance-e-0-")
    assert len(asked.sessions(folder)) == 2
    assert rebalance(run, "--subscribers", "1")[0] == 0
    code, _, err = rebalance(run, "--subscribers", "1")
    assert (code, err) == (4, "plimsoll: there is already a session one: choose another name\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--from", "e-0", "--to", "e-0", "--subscribers", "1"), 2, "--from and --to are both e-0: name two edges"),
        (("--from", "e-00", "--subscribers", "1"), 3, 'no edge "e-00" in fleet default. Did you mean "e-0"?'),
        (("--from", "zz", "--subscribers", "1"), 3, "Edges: e-0, e-1, w."),
        (("--from", "e-0", "--to", "w-1", "--subscribers", "1"), 3, 'no edge "w-1" in fleet default.'),
        (("--from", "e-0"), 2, "no policy to choose subscribers; use --subscribers N or --share P%"),
        (("--from", "e-0", "--share", "0%"), 2, "'0%' is not a share: write a whole percentage from 1% to 100%"),
        (("--from", "e-0", "--share", "101%"), 2, "is not a share"),
        (("--from", "e-0", "--share", "30"), 2, "is not a share"),
        (("--from", "e-0", "--subscribers", "0"), 2, "'0' is not a number of subscribers: write 1 or more"),
        (("--from", "e-0", "--subscribers", "-1"), 2, "is not a number of subscribers"),
        (("--from", "e-0", "--subscribers", "1", "--deadline", "0s"), 2, "'0s' is not longer than zero"),
        (("--from", "e-0", "--subscribers", "1", "--deadline", "soon"), 2, "'soon' "),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_written(
    run: Run, folder: FleetFolder, arguments: tuple[str, ...], code: int, message: str
):
    found, out, err = run("rebalance", *arguments, "--no-wait")
    assert (found, out) == (code, "")
    assert message in err
    assert asked.sessions(folder) == {}


def test_an_edge_that_takes_no_subscribers_is_no_target(run: Run, folder: FleetFolder):
    assert run("cordon", "e-1")[0] == 0
    code, _, err = rebalance(run, "--to", "e-1", "--subscribers", "1")
    assert code == 4
    assert "e-1 is cordoned and takes no subscribers: run `plimsoll uncordon e-1`" in err
    assert rebalance(run, "--to", "e-0", "--subscribers", "1", source="e-1")[0] == 0, "it may give, though"
    with ObjectStore(folder.store) as store:
        store.mark_deleted("EdgeBroker", "w", "now")
    code, _, err = run("rebalance", "--from", "e-0", "--to", "w", "--subscribers", "1")
    assert (code, err) == (4, "plimsoll: w is leaving the fleet and takes no subscribers\n")


def with_policies(home: Path) -> Iterator[FleetFolder]:
    assert home.exists()
    yield from asked.fleet(asked.TEXT.replace("edges: [{name: e,", "policy: {type: Padres}, edges: [{name: e,"))


def test_a_shuffle_names_its_cluster(run: Run, home: Path):
    for folder in with_policies(home):
        code, out, _ = run("shuffle", "east", "--no-wait", "--name", "all", "--moves", "20", "--exclude", "s1,e-1")
        assert (code, out) == (0, "loadbalancingsession/all created\n")
        assert asked.sessions(folder)["all"] == {
            "scope": "Local", "source": {"name": "east"}, "action": "Shuffle", "mode": "Execute",
            "limits": {"maxMoves": 20}, "exclusions": {"brokers": ["e-1"], "subscribers": ["s1"]},
        }  # fmt: skip
        assert run("shuffle", "east", "--no-wait", "--dry-run")[1].startswith("loadbalancingsession/shuffle-east-")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("eats",), 3, 'no cluster "eats" in fleet default. Did you mean "east"?'),
        (("e-0",), 3, "Clusters: east, west."),
        (("west",), 4, "cluster west has no policy, so its edges keep no profiles to plan from"),
        (("east", "--with", "west"), 4, "cluster west has no policy"),
        (("east", "--with", "east"), 2, "both clusters are east: name two different clusters, or one"),
    ],
)
def test_what_cannot_be_shuffled_is_said_at_once(
    run: Run, home: Path, arguments: tuple[str, ...], code: int, message: str
):
    for folder in with_policies(home):
        found, _, err = run("shuffle", *arguments, "--no-wait")
        assert (found, asked.sessions(folder)) == (code, {})
        assert message in err


def test_two_clusters_are_shuffled_together(run: Run, home: Path):
    text = asked.TEXT.replace("edges: [{name: ", "policy: {type: Padres}, edges: [{name: ")
    assert home.exists()
    for folder in asked.fleet(text):
        assert run("shuffle", "east", "--with", "west", "--no-wait", "--name", "both")[0] == 0
        spec = asked.sessions(folder)["both"]
        assert (spec["scope"], spec["source"], spec["target"]) == ("Global", {"name": "east"}, {"name": "west"})


def test_draining_cordons_first(run: Run, folder: FleetFolder):
    code, out, _ = run("drain", "e-0", "--no-wait", "--name", "away")
    assert (code, out) == (0, "edgebroker/e-0 cordoned\nloadbalancingsession/away created\n")
    assert asked.item(folder, "e-0", "EdgeBroker")["spec"]["cordoned"] is True
    assert asked.sessions(folder)["away"] == {
        "scope": "Global", "source": {"name": "e-0"}, "action": "Drain", "mode": "Execute",
    }  # fmt: skip
    assert run("drain", "e-0", "--no-wait", "--name", "more")[1] == "loadbalancingsession/more created\n"


def test_a_dry_run_of_a_drain_cordons_nothing(run: Run, folder: FleetFolder):
    assert run("drain", "e-0", "--no-wait", "--dry-run", "--name", "away")[0] == 0
    assert "cordoned" not in asked.item(folder, "e-0", "EdgeBroker")["spec"]
    assert asked.sessions(folder)["away"].get("mode", "DryRun") == "DryRun"


def test_what_a_program_reads_stands_alone_on_standard_output(
    run: Run, folder: FleetFolder, monkeypatch: pytest.MonkeyPatch
):
    clock = asked.Clock(lambda: asked.becomes(folder, "away", **asked.ended("Succeeded", True)))
    monkeypatch.setattr(session_wait, "time", clock)
    monkeypatch.setattr(local_backend, "time", clock)
    code, out, err = run("drain", "e-0", "--name", "away", "-o", "json")
    assert (code, json.loads(out)["status"]["phase"]) == (0, "Succeeded")
    assert err.splitlines()[:2] == ["edgebroker/e-0 cordoned", "loadbalancingsession/away created"]


def test_the_last_edge_is_not_drained(run: Run, home: Path):
    assert home.exists()
    text = asked.TEXT.replace(", replicas: 2", "").replace(", neighbors: [{name: west}]", "")
    for folder in asked.fleet("---".join(text.split("---")[:2])):
        code, _, err = run("drain", "e")
        assert (code, err) == (
            4,
            "plimsoll: e is the only edge of fleet default: there is no other edge\n",
        )
        assert (asked.sessions(folder), run("drain", "f")[0]) == ({}, 3)


def test_cordoning_says_what_it_changed(run: Run, folder: FleetFolder):
    for command, done in (("cordon", "cordoned"), ("uncordon", "uncordoned")):
        assert run(command, "e-0") == (0, f"edgebroker/e-0 {done}\n", "")
        assert run(command, "e-0") == (0, f"edgebroker/e-0 already {done}\n", "")
        assert asked.item(folder, "e-0", "EdgeBroker")["spec"].get("cordoned", False) == (command == "cordon")
        assert run(command, "zz")[0] == 3


def planned(run: Run, folder: FleetFolder) -> None:
    rebalance(run, "--subscribers", "1", "--dry-run")
    asked.becomes(folder, "one", **asked.ended("Planned", True, planHash=HASH))


def test_a_plan_is_approved_and_followed_to_its_end(run: Run, folder: FleetFolder, monkeypatch: pytest.MonkeyPatch):
    planned(run, folder)
    clock = asked.Clock(
        lambda: asked.becomes(folder, "one", phase="Preparing"),
        lambda: asked.becomes(folder, "one", **asked.ended("Succeeded", True)),
    )
    monkeypatch.setattr(session_wait, "time", clock)
    monkeypatch.setattr(local_backend, "time", clock)
    code, out, err = run("approve", "one", "--hash", HASH[:6])
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"plan {HASH} of one approved"
    assert [line.split()[2] for line in out.splitlines()[1:]] == ["Planned", "Preparing", "Succeeded"]
    spec = asked.item(folder, "one")["spec"]
    assert (spec["mode"], spec["approval"]["planHash"]) == ("Execute", HASH)


def test_another_plan_is_not_approved(run: Run, folder: FleetFolder):
    planned(run, folder)
    code, out, err = run("approve", "one", "--hash", "999999", "--no-wait")
    assert (code, out) == (4, "")
    assert f"the plan of session one is {HASH}, not 999999" in err
    assert "mode" not in asked.sessions(folder)["one"]
    assert run("approve", "one", "--no-wait") == (0, f"plan {HASH} of one approved\n", "")


def test_stopping(run: Run, folder: FleetFolder):
    rebalance(run, "--subscribers", "1")
    code, out, err = run("stop", "one")
    assert (code, err) == (0, "")
    assert out == "loadbalancingsession/one is stopping: it finishes the current batch and starts no other\n"
    assert asked.sessions(folder)["one"]["stop"] is True
    asked.becomes(folder, "one", **asked.ended("Failed", False))
    code, _, err = run("stop", "one")
    assert (code, err) == (4, "plimsoll: session one is over: Failed, so it is\n")


@pytest.mark.parametrize("command", ["approve", "stop"])
def test_a_session_that_is_not_there(run: Run, folder: FleetFolder, command: str):
    code, _, err = run(command, "one")
    assert (code, err) == (
        3,
        'plimsoll: no session "one" in fleet default. `plimsoll get lbs` lists them.\n',
    )
    rebalance(run, "--subscribers", "1")
    assert 'Did you mean "one"?' in run(command, "onne")[2]
    assert "stop" not in asked.sessions(folder)["one"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("rebalance", "--from", "e-0", "--subscribers", "1"),
        ("drain", "e-0"),
        ("shuffle", "east"),
        ("approve", "one"),
        ("stop", "one"),
    ],
)
def test_a_fleet_that_does_not_run_moves_no_subscriber(run: Run, home: Path, arguments: tuple[Any, ...]):
    assert home.exists()
    for _ in asked.fleet():
        pass
    code, _, err = run(*arguments)
    assert (code, err) == (
        3,
        "plimsoll: fleet default is not running: start it with `plimsoll up -f FILE`\n",
    )
    assert run("cordon", "e-0")[0] == 0, "that is only said, and heeded when it runs"


def test_a_cluster_is_named_if_its_policy_plans_for_all_of_it(run: Run, home: Path):
    assert home.exists()
    for folder in asked.fleet(asked.TEXT.replace("edges: [{name: e,", "policy: {type: Bad}, edges: [{name: e,")):
        assert run("rebalance", "--from", "east", "--no-wait", "--name", "whole", "--dry-run")[0] == 0
        assert asked.sessions(folder)["whole"] == {"scope": "Local", "source": {"name": "east"}}, "the rest is default"
        code, _, err = run("rebalance", "--from", "e-0", "--no-wait")
        assert (code, "policy Bad plans for all edges of east: name the cluster with --from" in err) == (2, True)
        assert run("rebalance", "--from", "east", "--subscribers", "2", "--no-wait")[0] != 0
