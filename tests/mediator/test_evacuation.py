"""The session before an edge leaves."""

from tests.local.conftest import FLEET

from plimsoll.core.spec import parse
from plimsoll.local.manifests import parse_text
from plimsoll.mediator import evacuation, session_objects

UID = "12345678-1234-5678"


def edge(name="e-1"):
    spec = {"clusterRef": {"name": "east"}, "profile": "small"}
    return {"kind": "EdgeBroker", "metadata": {"name": name, "uid": UID}, "spec": spec}


def made(item, **status):
    return {**item, "metadata": {**item["metadata"], "uid": "s", "generation": 1}, "status": status}


def test_the_session_drains_the_edge_and_belongs_to_it():
    item = evacuation.evacuation_session(edge())
    request = session_objects.session_request(made(item))
    assert (request.name, request.parent) == ("evacuate-e-1-12345678", "")
    assert request.spec.source is not None
    assert (request.spec.source.name, request.spec.action, request.spec.mode) == ("e-1", "Drain", "Execute")
    assert request.spec.limits.queue_for.seconds + request.spec.deadline.seconds < evacuation.LONGEST_SECONDS
    assert item["metadata"]["ownerReferences"][0]["uid"] == UID
    assert evacuation.evacuation_session(edge()) == item
    assert len(evacuation.evacuation_session(edge("x" * 63))["metadata"]["name"]) <= 63


def test_there_must_be_somewhere_to_go():
    resources = parse(parse_text(FLEET, "f.yaml"))
    assert evacuation.has_drain_target(resources, "e-9", "east")
    assert not evacuation.has_drain_target(resources, "e-9", "west")  # its cluster goes as a whole
    alone = parse(parse_text(FLEET.replace("replicas: 2", "replicas: 1"), "f.yaml"))
    assert not evacuation.has_drain_target(alone, "e-0", "east")
    assert evacuation.has_drain_target(alone, "e-1", "east")


def test_what_a_stopped_fleet_left_open_is_stale():
    item = made(evacuation.evacuation_session(edge()), phase="Requested")
    assert evacuation.is_stale(item)
    assert not evacuation.is_stale(made(item, endedAt="now"))
    assert not evacuation.is_stale({**item, "metadata": {**item["metadata"], "labels": {}}})


def test_who_takes_no_newcomers():
    cordoned = {**edge("e-1"), "spec": {"cordoned": True}}
    fleet = {"kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": {}, "status": {"draining": ["e-2"]}}
    assert evacuation.cordoned_edges([edge("e-0"), cordoned, fleet]) == {"e-1", "e-2"}
    assert evacuation.cordoned_edges([{**fleet, "status": {}}]) == set()


def test_what_no_links_lead_to_is_nowhere_to_go():
    east, west = (
        FLEET.replace("replicas: 2", "replicas: 1"),
        """
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: small}
  neighbors: [{name: east}]
  edges: [{name: w, profile: small}]
""",
    )
    linked = parse(parse_text(east + west, "f.yaml"))
    apart = parse(parse_text(east + west.replace("  neighbors: [{name: east}]\n", ""), "f.yaml"))
    assert evacuation.has_drain_target(linked, "e-0", "east")
    assert evacuation.has_drain_target(linked, "w", "west")
    assert not evacuation.has_drain_target(apart, "e-0", "east")
    assert evacuation.has_other_head(linked, "east")
    assert not evacuation.has_other_head(apart, "east")
