"""Asking for sessions, approving and stopping them, cordoning edges."""

import pytest
from tests.local.conftest import FLEET

from plimsoll.core.spec import InvalidResourcesError, parse
from plimsoll.local import asking, runtime
from plimsoll.local.home import FleetFolder
from plimsoll.local.manifests import parse_text
from plimsoll.local.store import ConflictError, MissingError, Store

MOVE = {"scope": "Local", "source": {"name": "e-0"}, "target": {"name": "e-1"}, "select": {"count": 2}}
HASH = "0123456789abcdef"


@pytest.fixture
def folder(home):
    folder = FleetFolder.of("quotes")
    folder.make()
    runtime.prepare(folder, parse(parse_text(FLEET, "f.yaml")))
    return folder


def spec(folder, kind, name):
    with Store(folder.store) as store:
        return store.get(kind, name)["spec"]


def becomes(folder, name, **status):
    with Store(folder.store) as store:
        store.set_status("LoadBalancingSession", name, lambda item: status)


def test_a_session_is_asked_for_once(folder):
    assert asking.begin(folder, "one", MOVE) == "one"
    assert spec(folder, "LoadBalancingSession", "one") == MOVE
    with pytest.raises(ConflictError, match="already a session one"):
        asking.begin(folder, "one", MOVE)


def test_what_is_wrong_is_told_as_for_a_file(folder):
    with pytest.raises(InvalidResourcesError, match='Did you mean "e-1"'):
        asking.begin(folder, "one", {**MOVE, "target": {"name": "e-11"}})
    with pytest.raises(InvalidResourcesError, match="target is source"):
        asking.begin(folder, "one", {**MOVE, "target": {"name": "e-0"}})


def test_sessions_do_not_keep_a_fleet_from_changing(folder):
    asking.begin(folder, "one", MOVE)
    runtime.apply(folder, parse_text(FLEET.replace("replicas: 2", "replicas: 1"), "f.yaml"))
    runtime.prepare(folder, parse(parse_text(FLEET.replace("replicas: 2", "replicas: 1"), "f.yaml")))
    assert spec(folder, "LoadBalancingSession", "one") == MOVE


def test_stopping(folder):
    asking.begin(folder, "one", MOVE)
    asking.stop(folder, "one")
    assert spec(folder, "LoadBalancingSession", "one")["stop"] is True
    becomes(folder, "one", phase="Failed", message="stopped as asked for", endedAt="now")
    with pytest.raises(asking.NotAskableError, match="session one is over: Failed, stopped as asked for"):
        asking.stop(folder, "one")
    with pytest.raises(MissingError):
        asking.stop(folder, "two")


def test_a_plan_is_approved_by_its_hash(folder):
    asking.begin(folder, "one", MOVE)
    with pytest.raises(asking.NotAskableError, match="does not wait for approval: it is Requested"):
        asking.approve(folder, "one")
    becomes(folder, "one", phase="Planned", planHash=HASH)
    with pytest.raises(asking.NotAskableError, match=f"is {HASH}, not 999999"):
        asking.approve(folder, "one", "999999")
    with pytest.raises(asking.NotAskableError, match="not 0123:"):  # too short to mean a plan
        asking.approve(folder, "one", "0123")
    assert asking.approve(folder, "one", "012345") == HASH
    found = spec(folder, "LoadBalancingSession", "one")
    assert (found["mode"], found["approval"]) == ("Execute", {"planHash": HASH})
    becomes(folder, "one", phase="Draining", planHash=HASH)
    with pytest.raises(asking.NotAskableError, match="it is Draining"):
        asking.approve(folder, "one")


def test_cordoning(folder):
    runtime.apply(folder, parse_text(EXTRA, "x.yaml"))
    assert asking.cordon(folder, "extra", cordoned=True)
    assert not asking.cordon(folder, "extra", cordoned=True)
    assert spec(folder, "EdgeBroker", "extra")["cordoned"] is True
    assert asking.cordon(folder, "extra", cordoned=False)
    assert "cordoned" not in spec(folder, "EdgeBroker", "extra")
    with pytest.raises(MissingError):
        asking.cordon(folder, "nobody", cordoned=True)


EXTRA = """
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: extra}
spec: {clusterRef: {name: east}, profile: small}
"""
