"""The mediator's view of the fleet."""

from typing import Any

import pytest

from plimsoll.mediator.fleet_view import (
    HEAD_SILENT_SECONDS,
    REPORT_INTERVALS,
    FleetReadings,
    TelemetryLoads,
    build_view,
    cluster_neighbors,
    head_peers,
)

ENDS = {"data": "tcp://h:1", "control": "tcp://h:2", "publicKey": "k"}
CLUSTER: dict[str, Any] = {
    "kind": "BrokerCluster", "metadata": {"name": "east"}, "spec": {},
    "status": {"head": {"name": "east-head", "endpoints": ENDS}},
}  # fmt: skip
PROFILE = {
    "kind": "HardwareProfile", "metadata": {"name": "small"}, "spec": {"bandwidth": {"outputBytesPerSecond": "600k"}},
}  # fmt: skip
FREE = {"kind": "HardwareProfile", "metadata": {"name": "free"}, "spec": {}}
STATUS = {"epoch": 7, "ready": True, "edges": ["a", "b"]}


def edge(name, profile="small", **metadata):
    spec = {"clusterRef": {"name": "east"}, "profile": profile}
    return {"kind": "EdgeBroker", "metadata": {"name": name, **metadata}, "spec": spec}


def known():
    found = FleetReadings(report_seconds=1.0)
    assert found.note_answer("east-head", STATUS, 10.0)
    for name in ("a", "c", "east-head"):
        found.note_report(name, {"epoch": 1, "seq": 1, "subscribers": 5}, 10.0)
    return found


def test_how_heads_are_dialled():
    [peer] = head_peers([CLUSTER, PROFILE, {**CLUSTER, "status": {}}])
    assert (peer.name, peer.control, peer.public_key) == ("east-head", "tcp://h:2", "k")


@pytest.mark.parametrize("head", [{}, {"endpoints": {}}, {"endpoints": {"data": "tcp://a:1"}}])
def test_a_status_that_someone_has_changed_names_no_head(head: dict[str, Any]):
    assert list(head_peers([{**CLUSTER, "status": {"head": head}}])) == []


def test_a_fleet_as_it_is():
    cordoned = {**edge("c"), "spec": {**edge("c")["spec"], "cordoned": True}}
    shown = build_view([CLUSTER, PROFILE, FREE, edge("a"), edge("b", "free"), cordoned], known(), 10.5)
    head = shown.heads["east-head"]
    assert (head.cluster, head.epoch, head.reachable, head.report["seq"]) == ("east", 7, True, 1)
    a, b, c = (shown.edges[name] for name in "abc")
    assert (a.ready, a.head, a.subscribers, a.output_bytes_per_second) == (True, "east-head", 5, 600_000.0)
    assert (b.ready, b.report, b.subscribers, b.output_bytes_per_second) == (False, {}, 0, None)  # no report
    assert (c.ready, c.cordoned) == (False, True)  # its head has no link to it


def test_an_edge_on_its_way_out():
    shown = build_view([CLUSTER, PROFILE, edge("a", deletionTimestamp="now")], known(), 10.5)
    assert (shown.edges["a"].leaving, shown.edges["a"].ready) == (True, True)


def test_silence_makes_a_head_unreachable_and_its_edges_not_ready():
    shown = build_view([CLUSTER, PROFILE, edge("a")], known(), 10.1 + HEAD_SILENT_SECONDS)
    assert (shown.heads["east-head"].reachable, shown.heads["east-head"].epoch) == (False, 7)
    assert not shown.edges["a"].ready
    never = build_view([CLUSTER, PROFILE, edge("a")], FleetReadings(), 0.0)
    assert (never.heads["east-head"].reachable, never.heads["east-head"].epoch) == (False, 0)


def test_a_head_that_is_starting_is_not_reachable():
    found = known()
    assert found.note_answer("east-head", {**STATUS, "ready": False}, 11.0)
    assert not build_view([CLUSTER], found, 11.0).heads["east-head"].reachable


def test_only_what_is_new_is_new():
    found = known()
    assert not found.note_answer("east-head", dict(STATUS), 11.0)
    assert found.note_answer("east-head", {**STATUS, "epoch": 8}, 11.0)
    assert found.note_answer("east-head", {**STATUS, "epoch": 8, "edges": ["a"]}, 11.0)


def test_a_report_that_is_repeated_grows_old_all_the_same():
    found = known()
    found.note_answer("east-head", STATUS, 10.0 + REPORT_INTERVALS)
    found.note_report("a", {"epoch": 1, "seq": 1, "subscribers": 5}, 10.0 + REPORT_INTERVALS)
    assert found.fresh_report("a", 10.0 + REPORT_INTERVALS)["seq"] == 1
    assert found.fresh_report("a", 10.1 + REPORT_INTERVALS) == {}
    found.note_report("a", {"epoch": 1, "seq": 2, "subscribers": 6}, 10.1 + REPORT_INTERVALS)
    assert found.fresh_report("a", 10.1 + REPORT_INTERVALS)["subscribers"] == 6


def cluster(name, *near):
    return {"kind": "BrokerCluster", "metadata": {"name": name}, "spec": {"neighbors": [{"name": n} for n in near]}}


def test_neighbors_are_so_on_both_sides():
    found = cluster_neighbors([cluster("a", "b"), cluster("b"), cluster("c", "b", "gone")])
    assert found == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}


def test_clusters_are_looked_at_where_the_fleet_wants_it():
    fleet = {"kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": {}}
    assert build_view([fleet, cluster("a")], known(), 10.5).overview is None
    fleet = {**fleet, "spec": {"globalBalancing": {"enabled": True, "interval": "7s"}}}
    overview = build_view([fleet, cluster("a")], known(), 10.5).overview
    assert overview is not None
    assert (overview.seconds, overview.source, overview.loads) == (7.0, "heads", {})
    overview = build_view(
        [fleet, cluster("a")], known(), 10.5, TelemetryLoads("fold", {"a": {"input_utilization": 0.5}})
    ).overview
    assert overview is not None
    assert (overview.source, overview.loads) == ("fold", {"a": {"input_utilization": 0.5}})


def test_windows_of_clusters_that_have_some():
    night = {"name": "night", "schedule": "0 2 * * *", "duration": "2h"}
    windowed = {**cluster("a"), "spec": {"maintenanceWindows": [night]}}
    shown = build_view([windowed, cluster("b")], known(), 10.5)
    assert list(shown.windows) == ["a"]
    [window] = shown.windows["a"]
    assert (window.name, window.schedule, window.duration.seconds) == ("night", "0 2 * * *", 7200.0)


def test_what_policies_remember_comes_with_the_view():
    stored = {"policy": "Bad", "memory": {"looks": 1}}
    remembering = {**CLUSTER, "status": {**CLUSTER["status"], "policyMemory": stored}}
    assert build_view([remembering, PROFILE], known(), 10.0).memories == {"east": stored}
    assert build_view([CLUSTER, PROFILE], known(), 10.0).memories == {}


def test_the_engine_sees_a_report_after_a_quarter_of_an_interval():
    assert [FleetReadings(seconds).view_seconds for seconds in (0.2, 1.0, 4.0, 300.0)] == [0.05, 0.25, 1.0, 1.0]
