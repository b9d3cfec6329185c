"""Objects and the mediator's values."""

from typing import Any

import pytest

from plimsoll.core.session import CreateSession, MediatorEngine, SaveSession, SessionUpserted
from plimsoll.core.spec import API_VERSION, InvalidResourcesError
from plimsoll.mediator import session_objects

ITEM: dict[str, Any] = {
    "apiVersion": API_VERSION, "kind": "LoadBalancingSession",
    "metadata": {"name": "one", "uid": "u1", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"scope": "Local", "source": {"name": "a"}, "select": {"count": 2}, "mode": "Execute"},
}  # fmt: skip
OWNER = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "name": "p", "uid": "u0", "controller": True}


def changed(**metadata):
    return {**ITEM, "metadata": {**ITEM["metadata"], **metadata}}


def test_an_object_as_a_request():
    request = session_objects.session_request(ITEM)
    assert (request.name, request.uid, request.generation, request.parent) == ("one", "u1", 3, "")
    assert request.spec.select is not None
    assert (request.spec.select.count, request.deleting) == (2, False)
    assert session_objects.session_request(changed(deletionTimestamp="2026-01-01T00:00:00Z")).deleting


def test_only_a_session_is_the_parent_of_a_session():
    assert session_objects.session_request(changed(ownerReferences=[OWNER])).parent == "u0"
    assert session_objects.session_request(changed(ownerReferences=[{**OWNER, "kind": "EdgeBroker"}])).parent == ""
    assert session_objects.session_request(changed(ownerReferences=[{**OWNER, "controller": False}])).parent == ""


def test_what_cannot_be_read_says_so():
    with pytest.raises(InvalidResourcesError, match=r"spec\.scope"):
        session_objects.session_request({**ITEM, "spec": {}})
    with pytest.raises(TypeError, match="HardwareProfile is not"):
        session_objects.session_request({**ITEM, "kind": "HardwareProfile", "spec": {}})


def test_a_session_comes_back_from_its_object():
    effects = MediatorEngine(1).handle(SessionUpserted(session_objects.session_request(ITEM)), 100.0)
    [save] = [effect for effect in effects if isinstance(effect, SaveSession)]
    item = {**ITEM, "status": session_objects.stored_status(save.session, 100.0)}
    assert session_objects.stored_session(item) == save.session
    assert session_objects.stored_session(ITEM) is None
    assert item["status"]["phase"] == "Requested"
    assert not session_objects.is_over(item)
    assert not session_objects.is_over(ITEM)
    assert session_objects.is_over({**item, "status": {**item["status"], "endedAt": "now"}})


def test_a_child_is_owned_by_its_session():
    item = session_objects.child_object(CreateSession("c", "u0", "p", dict(ITEM["spec"])))
    assert session_objects.parent_uid(item) == "u0"
    made = {**item["metadata"], "uid": "u2", "generation": 1}
    assert session_objects.session_request({**item, "metadata": made}).parent == "u0"
