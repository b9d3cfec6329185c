"""Objects and the mediator's values."""

from typing import Any

import pytest

from plimsoll.core.session import Asked, Create, Mediator, Save
from plimsoll.core.spec import API_VERSION, InvalidResourcesError
from plimsoll.mediator import sessions

ITEM: dict[str, Any] = {
    "apiVersion": API_VERSION, "kind": "LoadBalancingSession",
    "metadata": {"name": "one", "uid": "u1", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"scope": "Local", "source": {"name": "a"}, "select": {"count": 2}, "mode": "Execute"},
}  # fmt: skip
OWNER = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "name": "p", "uid": "u0", "controller": True}


def changed(**metadata):
    return {**ITEM, "metadata": {**ITEM["metadata"], **metadata}}


def test_an_object_as_a_request():
    request = sessions.request(ITEM)
    assert (request.name, request.uid, request.generation, request.parent) == ("one", "u1", 3, "")
    assert request.spec.select is not None
    assert (request.spec.select.count, request.deleting) == (2, False)
    assert sessions.request(changed(deletionTimestamp="2026-01-01T00:00:00Z")).deleting


def test_only_a_session_is_the_parent_of_a_session():
    assert sessions.request(changed(ownerReferences=[OWNER])).parent == "u0"
    assert sessions.request(changed(ownerReferences=[{**OWNER, "kind": "EdgeBroker"}])).parent == ""
    assert sessions.request(changed(ownerReferences=[{**OWNER, "controller": False}])).parent == ""


def test_what_cannot_be_read_says_so():
    with pytest.raises(InvalidResourcesError, match=r"spec\.scope"):
        sessions.request({**ITEM, "spec": {}})
    with pytest.raises(TypeError, match="HardwareProfile is not"):
        sessions.request({**ITEM, "kind": "HardwareProfile", "spec": {}})


def test_a_session_comes_back_from_its_object():
    effects = Mediator(1).handle(Asked(sessions.request(ITEM)), 100.0)
    [save] = [effect for effect in effects if isinstance(effect, Save)]
    item = {**ITEM, "status": sessions.stored(save.session, 100.0)}
    assert sessions.record(item) == save.session
    assert sessions.record(ITEM) is None
    assert item["status"]["phase"] == "Requested"
    assert not sessions.is_over(item)
    assert not sessions.is_over(ITEM)
    assert sessions.is_over({**item, "status": {**item["status"], "endedAt": "now"}})


def test_a_child_is_owned_by_its_session():
    item = sessions.child(Create("c", "u0", "p", dict(ITEM["spec"])))
    assert sessions.parent(item) == "u0"
    made = {**item["metadata"], "uid": "u2", "generation": 1}
    assert sessions.request({**item, "metadata": made}).parent == "u0"
