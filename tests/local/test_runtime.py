"""Changing and stopping a running fleet of stand-in brokers, as the command line does."""

import contextlib
import errno
import io
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from plimsoll.core.spec import InvalidResourcesError, parse
from plimsoll.local import runtime
from plimsoll.local.__main__ import announce
from plimsoll.local.head_access import HeadAccessError, head_access
from plimsoll.local.manifests import parse_text
from plimsoll.local.runtime import FleetChangeRefusedError, apply, delete, down, prepare_store
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore
from plimsoll.local.supervision.broker_reconciler import FleetStartError

EXTRA = """
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: extra}
spec: {clusterRef: {name: east}, profile: small}
"""


def documents(text):
    return parse_text(text, "new.yaml")


@pytest.mark.sweep
def test_edges_come_and_go_while_the_fleet_runs(fleet):
    fleet.up()
    before = fleet.brokers()
    what = apply(fleet.folder, documents(fleet.TEXT.replace("replicas: 2", "replicas: 3")))
    assert [(item.subject, said) for said, item in what] == [
        ("BrokerFleet/quotes", "unchanged"), ("HardwareProfile/small", "unchanged"),
        ("BrokerCluster/east", "configured"),
    ]  # fmt: skip
    fleet.wait_for(lambda: fleet.condition("EdgeBroker", "e-2", "Ready") == "True")
    assert "e-2" in fleet.folder.authorized_keys.read_text()
    apply(fleet.folder, documents(EXTRA))
    fleet.wait_for(lambda: fleet.condition("EdgeBroker", "extra", "Ready") == "True")
    pids = fleet.brokers()
    assert {name: pids[name] for name in before} == before  # no broker was restarted
    delete(fleet.folder, "EdgeBroker", "extra")
    apply(fleet.folder, documents(fleet.TEXT.replace("replicas: 2", "replicas: 1")))
    fleet.wait_for(lambda: sorted(fleet.brokers()) == ["e-0", "east-head"])
    fleet.wait_for(lambda: not any(fleet.alive(pids[name]) for name in ("e-1", "e-2", "extra")))
    assert fleet.object("EdgeBroker", "extra") == fleet.object("EdgeBroker", "e-2") == {}
    assert not fleet.folder.config("e-2").exists()
    fleet.wait_for(lambda: "e-1" not in fleet.folder.authorized_keys.read_text())
    fleet.wait_for(lambda: fleet.condition("BrokerFleet", "quotes", "Ready") == "True")


def test_the_later_of_two_starts_says_that_the_fleet_runs(fleet, monkeypatch):
    """The lock is free between the check of the command and the start of the supervisor: another start takes it."""
    fleet.folder.make()
    start = subprocess.Popen
    with contextlib.ExitStack() as held:

        def start_second(*args, **options):
            held.enter_context(FleetLock(fleet.folder))
            return start(*args, **options)

        monkeypatch.setattr(subprocess, "Popen", start_second)
        with pytest.raises(FleetBusyError, match="already running"):
            runtime.up_detached(parse(documents(fleet.TEXT)), lambda line: None)


def test_a_home_that_the_locale_does_not_know_is_refused_with_the_remedy(fleet, home, monkeypatch):
    odd = home / os.fsdecode(b"h\xff")
    monkeypatch.setenv("PLIMSOLL_HOME", str(odd))
    for start in (runtime.up, runtime.up_detached):
        with pytest.raises(FleetStartError, match=r"h\\udcff/quotes has characters .* LC_ALL=C.UTF-8"):
            start(parse(documents(fleet.TEXT)), lambda line: None)
    assert not odd.exists()


def test_a_supervisor_that_fails_at_its_start_is_not_ready(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    empty = {"conditions": [{"type": "Ready", "status": "False", "reason": "NoBrokers"}], "supervisor": {"pid": 7}}
    with ObjectStore(folder.store) as store:
        store.create({"kind": "BrokerFleet", "metadata": {"name": "quotes"}, "spec": {}}, "now")
        for mediator, ready in (({"restarts": 0}, False), ({"restarts": 0, "pid": 8}, True)):
            store.set_status("BrokerFleet", "quotes", lambda old, mediator=mediator: {**empty, "mediator": mediator})
            assert runtime._is_ready(folder, 7) is ready


@pytest.mark.sweep
def test_a_broker_that_leaves_keeps_its_key_until_it_has_left(fleet):
    mode = fleet.folder.config("e-1").with_suffix(".mode")
    mode.parent.mkdir(parents=True)
    mode.write_text("stubborn")
    fleet.up()
    apply(fleet.folder, documents(fleet.TEXT.replace("replicas: 2", "replicas: 1")))
    fleet.wait_for(lambda: "deletionTimestamp" in fleet.object("EdgeBroker", "e-1").get("metadata", {}))
    assert "edge e-1" in fleet.folder.authorized_keys.read_text()
    mode.unlink()
    again = apply(fleet.folder, documents(fleet.TEXT))
    assert again[-1][0] == "configured"
    # it is wanted again while it leaves: it goes, and comes back as a new one
    fleet.wait_for(lambda: ("e-1", "Killed") in fleet.reasons())
    fleet.wait_for(lambda: fleet.condition("EdgeBroker", "e-1", "Ready") == "True")
    assert "deletionTimestamp" not in fleet.object("EdgeBroker", "e-1")["metadata"]
    assert "edge e-1" in fleet.folder.authorized_keys.read_text()


def test_what_cannot_change_is_refused_whole(fleet):
    fleet.up()
    version = fleet.object("BrokerCluster", "east")["metadata"]["generation"]
    changed = fleet.TEXT.replace("replicas: 2", "replicas: 4").replace("64Mi", "128Mi")
    with pytest.raises(FleetChangeRefusedError) as caught:
        apply(fleet.folder, documents(changed))
    assert "new.yaml:9: HardwareProfile/small spec: east-head, e-0, e-1 run with this profile" in str(caught.value)
    with pytest.raises(InvalidResourcesError, match="no BrokerCluster"):
        apply(fleet.folder, documents(EXTRA.replace("east", "west")))
    assert fleet.object("BrokerCluster", "east")["metadata"]["generation"] == version
    assert sorted(fleet.brokers()) == ["e-0", "e-1", "east-head"]


def test_deleting_what_others_need(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    text = EXTRA + """
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec: {head: {profile: small}}
"""  # fmt: skip
    prepare_store(folder, parse(documents(text)))
    with pytest.raises(InvalidResourcesError, match='no HardwareProfile "small"'):
        delete(folder, "HardwareProfile", "small")
    with pytest.raises(FleetChangeRefusedError, match="plimsoll down"):
        delete(folder, "BrokerFleet", "default")
    with pytest.raises(ObjectMissingError):
        delete(folder, "EdgeBroker", "missing")
    delete(folder, "EdgeBroker", "extra")
    delete(folder, "BrokerCluster", "east")
    delete(folder, "HardwareProfile", "small")
    with ObjectStore(folder.store) as store:
        assert [item["kind"] for item in store.objects()[1]] == ["BrokerFleet"]


def test_preparing_leaves_exactly_what_is_asked_for(home, fleet):
    folder = fleet.folder
    folder.make()
    prepare_store(folder, parse(documents(fleet.TEXT + "---" + EXTRA)))
    with ObjectStore(folder.store) as store:
        store.set_status("BrokerCluster", "east", lambda old: {"x": 1})
    prepare_store(folder, parse(documents(fleet.TEXT)))
    with ObjectStore(folder.store) as store:
        assert [item["metadata"]["name"] for item in store.objects()[1]] == ["east", "quotes", "small"]
        assert store.get("BrokerCluster", "east")["status"] == {"x": 1}


@pytest.mark.sweep
def test_down_waits_until_nothing_runs(fleet):
    fleet.up()
    pids = fleet.brokers().values()
    assert down(fleet.folder) is True
    assert not any(fleet.alive(pid) for pid in pids)
    assert down(fleet.folder) is False


def test_the_way_in(fleet):
    fleet.folder.make()
    with pytest.raises(HeadAccessError, match="does not run"):
        head_access(fleet.folder)
    fleet.up()
    way = head_access(fleet.folder, "east")
    assert way == head_access(fleet.folder)
    assert way.endpoint == fleet.object("BrokerCluster", "east")["status"]["endpoint"]
    assert len(way.server) == 40
    assert way.secret_key_file is not None
    assert way.secret_key_file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(HeadAccessError, match='Did you mean "east"'):
        head_access(fleet.folder, "eats")


@pytest.mark.sweep
def test_a_cluster_says_whether_it_is_balanced_and_when_a_window_opens(fleet):
    hour = (datetime.now(UTC).hour + 12) % 24
    window = (
        f"  policy: {{type: Greedy}}\n  maintenanceWindows: [{{name: w, schedule: 0 {hour} * * *, duration: 1h}}]\n"
    )
    text = fleet.TEXT.rstrip() + "\n" + window
    fleet.up(text)
    fleet.wait_for(lambda: fleet.condition("BrokerCluster", "east", "Balanced") == "True")
    status = fleet.object("BrokerCluster", "east")["status"]
    assert (status["replicas"], status["imbalancePercent"]) == (2, 0)
    assert status["nextWindow"].endswith(f"T{hour:02}:00:00Z")
    assert fleet.object("HardwareProfile", "small")["status"]["brokers"] == 3
    apply(fleet.folder, documents(text.replace(f"0 {hour} * * *", "'* * * * *'")))
    fleet.wait_for(lambda: "nextWindow" not in fleet.object("BrokerCluster", "east")["status"])


def test_scale_says_how_many_edges_there_are(fleet):
    fleet.up()
    text = fleet.TEXT.rstrip() + "\n  scale: {replicas: 3}\n"
    apply(fleet.folder, documents(text))
    fleet.wait_for(lambda: fleet.condition("EdgeBroker", "e-2", "Ready") == "True")
    fleet.wait_for(lambda: fleet.object("BrokerCluster", "east")["status"]["edges"] == {"desired": 3, "ready": 3})
    apply(fleet.folder, documents(text.replace("replicas: 3", "replicas: 1")))
    fleet.wait_for(lambda: sorted(fleet.brokers()) == ["e-0", "east-head"])


def test_a_supervisor_whose_own_log_is_on_a_full_disk_goes_on(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    announce("east-head: it has ended")
