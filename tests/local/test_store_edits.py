"""Requesting, approving and stopping sessions, and cordoning edges."""

import pytest
from tests.local.conftest import FLEET

from plimsoll.core.spec import InvalidResourcesError, parse
from plimsoll.local import runtime, store_edits
from plimsoll.local.manifests import parse_text
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectConflictError, ObjectMissingError, ObjectStore
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.mediator.spec_edits import EditRefusedError

MOVE = {"scope": "Local", "source": {"name": "e-0"}, "target": {"name": "e-1"}, "select": {"count": 2}}
HASH = "0123456789abcdef"


@pytest.fixture
def folder(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    runtime.prepare_store(folder, parse(parse_text(FLEET, "f.yaml")))
    return folder


def spec(folder, kind, name):
    with ObjectStore(folder.store) as store:
        return store.get(kind, name)["spec"]


def becomes(folder, name, **status):
    with ObjectStore(folder.store) as store:
        store.set_status("LoadBalancingSession", name, lambda item: status)


def test_a_session_is_asked_for_once(folder):
    assert not store_edits.create_session(folder, "one", MOVE)  # it cordons nothing
    assert spec(folder, "LoadBalancingSession", "one") == MOVE
    with pytest.raises(ObjectConflictError, match="already a session one"):
        store_edits.create_session(folder, "one", MOVE)


def test_what_is_wrong_is_told_as_for_a_file(folder):
    with pytest.raises(InvalidResourcesError, match='Did you mean "e-1"'):
        store_edits.create_session(folder, "one", {**MOVE, "target": {"name": "e-11"}})
    with pytest.raises(InvalidResourcesError, match="target is source"):
        store_edits.create_session(folder, "one", {**MOVE, "target": {"name": "e-0"}})


def test_sessions_do_not_keep_a_fleet_from_changing(folder):
    store_edits.create_session(folder, "one", MOVE)
    runtime.apply(folder, parse_text(FLEET.replace("replicas: 2", "replicas: 1"), "f.yaml"))
    runtime.prepare_store(folder, parse(parse_text(FLEET.replace("replicas: 2", "replicas: 1"), "f.yaml")))
    assert spec(folder, "LoadBalancingSession", "one") == MOVE


def test_stopping(folder):
    store_edits.create_session(folder, "one", MOVE)
    store_edits.stop_session(folder, "one")
    assert spec(folder, "LoadBalancingSession", "one")["stop"] is True
    becomes(folder, "one", phase="Failed", message="stopped as requested", endedAt="now")
    with pytest.raises(EditRefusedError, match="session one is over: Failed, stopped as requested"):
        store_edits.stop_session(folder, "one")
    with pytest.raises(ObjectMissingError):
        store_edits.stop_session(folder, "two")


def test_a_plan_is_approved_by_its_hash(folder):
    store_edits.create_session(folder, "one", MOVE)
    with pytest.raises(EditRefusedError, match="does not wait for approval: it is Requested"):
        store_edits.approve_session(folder, "one")
    becomes(folder, "one", phase="Planned", planHash=HASH)
    with pytest.raises(EditRefusedError, match=f"is {HASH}, not 999999"):
        store_edits.approve_session(folder, "one", "999999")
    with pytest.raises(EditRefusedError, match="not 0123:"):  # too short to mean a plan
        store_edits.approve_session(folder, "one", "0123")
    assert store_edits.approve_session(folder, "one", "012345") == HASH
    found = spec(folder, "LoadBalancingSession", "one")
    assert (found["mode"], found["approval"]) == ("Execute", {"planHash": HASH})
    becomes(folder, "one", phase="Draining", planHash=HASH)
    with pytest.raises(EditRefusedError, match="it is Draining"):
        store_edits.approve_session(folder, "one")


def test_cordoning(folder):
    runtime.apply(folder, parse_text(EXTRA, "x.yaml"))
    assert store_edits.set_cordoned(folder, "extra", cordoned=True)
    assert not store_edits.set_cordoned(folder, "extra", cordoned=True)
    assert spec(folder, "EdgeBroker", "extra")["cordoned"] is True
    assert store_edits.set_cordoned(folder, "extra", cordoned=False)
    assert "cordoned" not in spec(folder, "EdgeBroker", "extra")
    with pytest.raises(ObjectMissingError):
        store_edits.set_cordoned(folder, "missing", cordoned=True)


EXTRA = """
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: extra}
spec: {clusterRef: {name: east}, profile: small}
"""


def test_a_drain_that_cannot_be_stored_cordons_nothing(folder, monkeypatch):
    runtime.apply(folder, parse_text(EXTRA, "x.yaml"))

    def full(*given):
        raise StateWriteError(folder.store, "no space is left on its disk", "free space there")

    monkeypatch.setattr(runtime, "apply_to_store", full)
    drain = {"scope": "Global", "source": {"name": "extra"}, "action": "Drain"}
    with pytest.raises(StateWriteError):
        store_edits.create_session(folder, "one", drain, cordon="extra")
    with ObjectStore(folder.store) as store:
        assert not store.get("EdgeBroker", "extra")["spec"].get("cordoned", False)
    monkeypatch.undo()
    assert store_edits.create_session(folder, "one", drain, cordon="extra")
    with ObjectStore(folder.store) as store:
        assert store.get("EdgeBroker", "extra")["spec"]["cordoned"]


def test_a_head_is_cordoned_as_it_is_now_and_an_apply_keeps_that(folder):
    with pytest.raises(EditRefusedError, match="has not reported yet"):
        store_edits.set_cordoned(folder, "east-head", cordoned=True)
    with ObjectStore(folder.store) as store:
        store.set_status("BrokerCluster", "east", lambda item: {"head": {"epoch": 7}})
    assert store_edits.set_cordoned(folder, "east-head", cordoned=True)
    assert not store_edits.set_cordoned(folder, "east-head", cordoned=True)
    runtime.apply(folder, parse_text(FLEET, "f.yaml"))
    assert spec(folder, "BrokerCluster", "east")["head"]["cordonedEpoch"] == 7
    assert store_edits.set_cordoned(folder, "east-head", cordoned=False)
    assert "cordonedEpoch" not in spec(folder, "BrokerCluster", "east")["head"]
