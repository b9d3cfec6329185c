"""The supervisor with stand-in brokers: real processes, real signals, nothing left behind."""

import json
import os
import signal

import pytest

from plimsoll.local import store_edits
from plimsoll.local.storage.object_store import ObjectStore


def mode(fleet, broker, text):
    file = fleet.folder.config(broker).with_suffix(".mode")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def reports(fleet, broker, fields):
    file = fleet.folder.config(broker).with_suffix(".report")
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps(fields))
    whole.rename(file)


def test_a_fleet_comes_up_and_status_shows_it(fleet):
    fleet.up()
    assert sorted(fleet.brokers()) == ["e-0", "e-1", "east-head"]
    assert all(fleet.alive(pid) for pid in fleet.brokers().values())
    fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "LoadDataFresh") == "True")
    status = fleet.object("BrokerFleet", "quotes")["status"]
    assert status["security"] == "Curve"
    assert status["brokers"] == {"desired": 3, "ready": 3}
    edge = fleet.object("EdgeBroker", "e-1")
    assert edge["metadata"]["ownerReferences"][0]["name"] == "east"
    assert edge["status"]["load"] == {"inputUtilizationPercent": 25}
    assert edge["status"]["subscribers"] == 7
    assert fleet.object("BrokerCluster", "east")["status"]["subscribers"] == 14
    reports(fleet, "east-head", {"log_bytes": 5})
    fleet.wait_for(lambda: "LogInMemory" in str(fleet.object("BrokerCluster", "east")["status"]["conditions"]))
    reports(fleet, "east-head", {"log_sync": "Always", "log_fault": "the disk has no room"})
    fleet.wait_for(lambda: "LogFull" in str(fleet.object("BrokerCluster", "east")["status"]["conditions"]))
    assert fleet.condition("BrokerCluster", "east", "LogSafe") == "False"
    fleet.wait_for(lambda: ("east", "LogFull") in fleet.reasons())
    reports(fleet, "east-head", {"log_sync": "Always"})
    fleet.wait_for(lambda: ("east", "LogWritten") in fleet.reasons())
    code, out, err = fleet.end()
    assert (code, err) == (0, "")
    assert "fleet quotes is ready: 3 brokers" in out


def test_secrets_are_for_their_user_alone(fleet):
    fleet.up()
    secrets = list(fleet.folder.keys.glob("*.key"))
    assert len(secrets) == 8  # three brokers, the supervisor, the mediator, local clients, recorders, channels
    assert {file.stat().st_mode & 0o777 for file in [*secrets, fleet.folder.config("e-0")]} == {0o600}
    assert fleet.folder.path.stat().st_mode & 0o777 == 0o700
    lines = [line.split() for line in fleet.folder.authorized_keys.read_text().splitlines()]
    assert [(role, name) for _, role, name, *_ in lines] == [
        ("client", "*"), ("client", "local.channels"), ("client", "local.recorder"), ("edge", "e-0"),
        ("edge", "e-1"), ("head", "east-head"), ("mediator", "local.mediator"), ("mediator", "local.supervisor"),
    ]  # fmt: skip


@pytest.mark.sweep
def test_plain_tcp_is_an_explicit_switch_that_status_shows(fleet):
    fleet.up(
        fleet.TEXT.replace("metadata: {name: quotes}", "metadata: {name: quotes}\nspec: {security: {plain: true}}")
    )
    assert fleet.object("BrokerFleet", "quotes")["status"]["security"] == "Plain"
    assert list(fleet.folder.keys.iterdir()) == []


def test_edges_leave_before_heads(fleet):
    fleet.up()
    fleet.end()
    left = {name: float(fleet.folder.config(name).with_suffix(".left").read_text()) for name in fleet.brokers()}
    assert left == {}  # no process, so no pid in status
    times = {n: float(fleet.folder.config(n).with_suffix(".left").read_text()) for n in ("e-0", "e-1", "east-head")}
    assert max(times["e-0"], times["e-1"]) < times["east-head"]
    assert fleet.condition("BrokerFleet", "quotes", "Ready") == "False"


@pytest.mark.sweep
def test_a_broker_that_dies_is_started_again_with_growing_delays(fleet):
    fleet.up()
    first = fleet.brokers()["e-1"]
    mode(fleet, "e-1", "crash")
    os.kill(first, signal.SIGKILL)
    fleet.wait_for(lambda: fleet.object("EdgeBroker", "e-1").get("status", {}).get("restarts", 0) >= 2)
    with_delays = [e for e in fleet.events("e-1") if e.reason == "Exited"]
    assert "was ended by SIGKILL; starts again after 1 s" in with_delays[0].message
    assert "exited with code 3: cannot go on: told to crash; starts again after 2 s" in with_delays[1].message
    assert fleet.condition("BrokerCluster", "east", "Degraded") == "True"
    assert fleet.condition("BrokerFleet", "quotes", "Ready") == "False"
    mode(fleet, "e-1", "")
    fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "Ready") == "True")
    assert fleet.brokers()["e-1"] != first
    assert fleet.condition("BrokerCluster", "east", "Degraded") == "False"
    assert fleet.brokers()["e-0"] in fleet.pids


def test_nothing_is_left_when_the_supervisor_is_killed(fleet):
    fleet.up()
    pids = fleet.brokers().values()
    assert fleet.process is not None
    fleet.process.send_signal(signal.SIGKILL)
    fleet.process.wait()
    fleet.wait_for(lambda: not any(fleet.alive(pid) for pid in pids))
    assert fleet.folder.running_pid() is None  # the lock went with it


@pytest.mark.sweep
def test_a_broker_that_fails_at_the_start_stops_everything(fleet):
    mode(fleet, "e-1", "crash")
    process = fleet.start()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "broker e-1 exited with code 3: cannot go on: told to crash" in err
    assert str(fleet.folder.log("e-1")) in err
    assert fleet.brokers() == {}
    assert ("e-0", "Started") in fleet.reasons()
    fleet.wait_for(lambda: not any(fleet.alive(pid) for pid in fleet.pids))


@pytest.mark.sweep
def test_a_broker_that_does_not_leave_is_ended_after_the_grace_period(fleet):
    mode(fleet, "e-0", "stubborn")
    fleet.up()
    code, _, _ = fleet.end()
    assert code == 0
    assert ("e-0", "Killed") in fleet.reasons()


@pytest.mark.sweep
def test_a_second_signal_ends_everything_at_once(fleet):
    mode(fleet, "e-0", "stubborn")
    fleet.up()
    assert fleet.process is not None
    fleet.process.send_signal(signal.SIGINT)
    fleet.wait_for(lambda: fleet.folder.config("e-1").with_suffix(".left").exists())
    fleet.process.send_signal(signal.SIGINT)
    assert fleet.process.wait(timeout=300) == 0
    assert ("e-0", "Killed") not in fleet.reasons()


def test_one_supervisor_per_fleet(fleet):
    fleet.up()
    second = type(fleet)(fleet.home)
    process = second.start()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"fleet quotes is already running (process {fleet.process.pid})" in err
    assert fleet.condition("BrokerFleet", "quotes", "Ready") == "True"


@pytest.mark.sweep
def test_a_broker_that_stops_answering_is_not_ready(fleet):
    fleet.up()
    os.kill(fleet.brokers()["e-0"], signal.SIGSTOP)
    try:
        # its head's stand-in goes on reporting for it: only answers are missed
        os.kill(fleet.brokers()["east-head"], signal.SIGSTOP)
        fleet.wait_for(lambda: fleet.condition("EdgeBroker", "e-0", "Ready") == "False")
        fleet.wait_for(lambda: fleet.condition("EdgeBroker", "e-1", "LoadDataFresh") == "False")
        assert fleet.condition("EdgeBroker", "e-1", "Ready") == "True"
    finally:
        for name in ("e-0", "east-head"):
            os.kill(fleet.brokers()[name], signal.SIGCONT)
    fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "Ready") == "True")
    fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "LoadDataFresh") == "True")


@pytest.mark.sweep
def test_ports_stay_the_same_over_restarts_of_the_fleet(fleet):
    fleet.up()
    before = fleet.object("EdgeBroker", "e-0")["status"]["endpoints"]
    fleet.wait_for(lambda: fleet.object("BrokerFleet", "quotes")["status"]["mediatorEpoch"] == 1)
    fleet.end()
    fleet.up()
    assert fleet.object("EdgeBroker", "e-0")["status"]["endpoints"] == before
    fleet.wait_for(lambda: fleet.object("BrokerFleet", "quotes")["status"]["mediatorEpoch"] == 2)


def members(fleet):
    """The head's list of its edges: all of them, and those that take no newcomers."""
    file = fleet.folder.config("east-head").with_suffix(".members")
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # not yet, or half written
        return None


def test_a_head_learns_which_edges_take_no_newcomers(fleet):
    fleet.up()
    fleet.wait_for(lambda: members(fleet) == [["e-0", "e-1"], []])
    assert store_edits.set_cordoned(fleet.folder, "e-1", cordoned=True)
    fleet.wait_for(lambda: members(fleet) == [["e-0", "e-1"], ["e-1"]])
    with ObjectStore(fleet.folder.store) as store:

        def drained():
            """As the mediator stores it while it drains an edge; the one running here first stores that none is."""
            store.set_status("BrokerFleet", "quotes", lambda item: {**item["status"], "draining": ["e-0"]})
            return members(fleet) == [["e-0", "e-1"], ["e-0", "e-1"]]

        fleet.wait_for(drained)
    fleet.end()
    fleet.up()  # a cordon outlives the fleet, a drain does not
    fleet.wait_for(lambda: members(fleet) == [["e-0", "e-1"], ["e-1"]])
    assert store_edits.set_cordoned(fleet.folder, "e-1", cordoned=False)
    fleet.wait_for(lambda: members(fleet) == [["e-0", "e-1"], []])
    for edge in ("e-0", "e-1"):
        assert store_edits.set_cordoned(fleet.folder, edge, cordoned=True)
    for kind, name in (("BrokerCluster", "east"), ("BrokerFleet", "quotes")):
        fleet.wait_for(lambda kind=kind, name=name: degraded(fleet, kind, name) == "NoTarget")


def degraded(fleet, kind, name):
    """The reason of the condition."""
    conditions = fleet.object(kind, name).get("status", {}).get("conditions", [])
    return next((each["reason"] for each in conditions if each["type"] == "Degraded"), "")


def test_a_mediator_that_dies_is_started_again_and_told_of(fleet):
    fleet.up()
    pid = fleet.wait_for(lambda: fleet.object("BrokerFleet", "quotes")["status"]["mediator"].get("pid"))
    fleet.wait_for(lambda: fleet.object("BrokerFleet", "quotes")["status"]["mediatorEpoch"] == 1)
    os.kill(pid, signal.SIGKILL)
    fleet.wait_for(lambda: fleet.object("BrokerFleet", "quotes")["status"]["mediatorEpoch"] == 2)
    assert ("quotes", "MediatorExited") in fleet.reasons()
    fleet.end()
    assert not fleet.alive(pid)
