"""A fault concerns the object that has it: what each kind of fault leaves of a fleet, also after a restart."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.spec import declared_brokers
from plimsoll.core.spec.usable import Content, Key, UsableFleet, key_of, usable_fleet

_uids = itertools.count(1)
Objects = dict[Key, dict[str, Any]]


def make(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u{next(_uids)}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def changed(item: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {**item["metadata"], "generation": item["metadata"]["generation"] + 1}
    return {**item, "metadata": metadata, "spec": {**item["spec"], **spec}}


def healthy() -> Objects:
    found = [
        make("BrokerFleet", "stocks"),
        make("HardwareProfile", "small", memory="128Mi"),
        make("BrokerCluster", "east", head={"profile": "small"},
             edges=[{"name": "edge", "profile": "small", "replicas": 2}]),
        make("BrokerCluster", "south", head={"profile": "small"}, neighbors=[{"name": "east"}]),
    ]  # fmt: skip
    return {key_of(item): item for item in found}


def late(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "creationTimestamp": "2026-02-02T00:00:00Z"}}


def brokers(found: UsableFleet) -> list[str]:
    assert found.resources is not None
    return sorted(place.name for place in declared_brokers(found.resources))


HEALTHY = ["east-head", "edge-0", "edge-1", "south-head"]
SMALL = {"profile": "small"}
NEW_FAULTS: dict[str, tuple[list[dict[str, Any]], dict[Key, tuple[str, str]]]] = {
    "missing profile of a head": (
        [make("BrokerCluster", "bad", head={"profile": "absent"})],
        {("BrokerCluster", "bad"): ("InvalidSpec", 'spec.head.profile: there is no HardwareProfile "absent"')},
    ),
    "missing profile of a group": (
        [make("BrokerCluster", "bad", head=SMALL, edges=[{"name": "x", "profile": "absent"}])],
        {("BrokerCluster", "bad"): ("InvalidSpec", 'spec.edges[0].profile: there is no HardwareProfile "absent"')},
    ),
    "missing neighbour": (
        [make("BrokerCluster", "bad", head=SMALL, neighbors=[{"name": "absent"}])],
        {("BrokerCluster", "bad"): ("InvalidSpec", 'spec.neighbors[0].name: there is no BrokerCluster "absent"')},
    ),
    "its own neighbour": (
        [make("BrokerCluster", "bad", head=SMALL, neighbors=[{"name": "bad"}])],
        {("BrokerCluster", "bad"): ("InvalidSpec", "a cluster cannot be its own neighbor")},
    ),
    "circular neighbours": (
        [late(make("BrokerCluster", "bad", head=SMALL, neighbors=[{"name": "east"}, {"name": "south"}]))],
        {("BrokerCluster", "bad"): ("InvalidSpec", "this closes a cycle of heads")},
    ),
    "unknown policy": (
        [make("BrokerCluster", "bad", head=SMALL, policy={"type": "Best"})],
        {("BrokerCluster", "bad"): ("InvalidSpec", "spec.policy.type")},
    ),
    "thresholds the wrong way round": (
        [make("BrokerCluster", "bad", head=SMALL,
              policy={"detection": {"overload": {"inputUtilization": {"lower": "900m", "higher": "100m"}}}})],
        {("BrokerCluster", "bad"): ("InvalidSpec", "spec.policy.detection.overload")},
    ),
    "nothing to scale": (
        [make("BrokerCluster", "bad", head=SMALL, scale={"replicas": 2})],
        {("BrokerCluster", "bad"): ("InvalidSpec", "there is no group to scale")},
    ),
    "a log that does not fit": (
        [make("BrokerCluster", "bad", head={**SMALL, "logSize": "100Gi"})],
        {("BrokerCluster", "bad"): ("InvalidSpec", "spec.head.logSize")},
    ),
    "a listener of no broker": (
        [make("BrokerCluster", "bad", head=SMALL, listeners={"brokers": [{"name": "other"}]})],
        {("BrokerCluster", "bad"): ("InvalidSpec", 'cluster bad has no broker "other"')},
    ),
    "the name of another edge": (
        [late(make("BrokerCluster", "bad", head=SMALL, edges=[{"name": "edge-0", "profile": "small"}]))],
        {("BrokerCluster", "bad"): ("InvalidSpec", 'the broker name "edge-0" is used 2 times')},
    ),
    "an edge of no cluster": (
        [make("EdgeBroker", "bad", clusterRef={"name": "absent"}, profile="small")],
        {("EdgeBroker", "bad"): ("NoCluster", 'there is no BrokerCluster "absent"')},
    ),
    "an edge without its profile": (
        [make("EdgeBroker", "bad", clusterRef={"name": "east"}, profile="absent")],
        {("EdgeBroker", "bad"): ("InvalidSpec", 'there is no HardwareProfile "absent"')},
    ),
    "a profile that cannot be read": (
        [make("HardwareProfile", "bad", memory="much")],
        {("HardwareProfile", "bad"): ("InvalidSpec", "spec.memory")},
    ),
    "a cluster and its edge that need such a profile": (
        [make("HardwareProfile", "bad", memory="much"), make("BrokerCluster", "worse", head={"profile": "bad"}),
         make("EdgeBroker", "worst", clusterRef={"name": "worse"}, profile="small")],
        {("HardwareProfile", "bad"): ("InvalidSpec", "spec.memory"),
         ("BrokerCluster", "worse"): ("DependsOnFault", "HardwareProfile/bad has a fault of its own"),
         ("EdgeBroker", "worst"): ("DependsOnFault", "BrokerCluster/worse has a fault of its own")},
    ),
    "a second fleet": (
        [late(make("BrokerFleet", "another"))],
        {("BrokerFleet", "another"): ("SecondFleet", "a second fleet beside stocks")},
    ),
}  # fmt: skip


def assert_faults(found: UsableFleet, wanted: dict[Key, tuple[str, str]]) -> None:
    assert found.faults.keys() == wanted.keys()
    for key, (reason, part) in wanted.items():
        assert found.faults[key].reason == reason
        assert part in found.faults[key].message
        assert len(found.faults[key].message) < 500


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("kind", NEW_FAULTS)
def test_a_new_object_with_a_fault_is_left_out_alone(kind: str, remembered: bool):
    objects, (bad, wanted) = healthy(), NEW_FAULTS[kind]
    before = usable_fleet(objects.values()).used.values() if remembered else ()
    found = usable_fleet([*copy.deepcopy(bad), *objects.values()], before)
    assert_faults(found, wanted)
    assert brokers(found) == HEALTHY
    assert found.dropped == wanted.keys()
    assert found.incomplete == {}


CHANGES: dict[str, tuple[Key, dict[str, Any], str]] = {
    "profile of the head": (("BrokerCluster", "east"), {"head": {"profile": "absent"}}, "spec.head.profile"),
    "neighbour": (("BrokerCluster", "east"), {"neighbors": [{"name": "absent"}]}, "spec.neighbors[0].name"),
    "cycle": (("BrokerCluster", "north"), {"neighbors": [{"name": "east"}, {"name": "south"}]}, "closes a cycle"),
    "policy": (("BrokerCluster", "east"), {"policy": {"type": "Best"}}, "spec.policy.type"),
    "memory of the profile": (("HardwareProfile", "small"), {"memory": "much"}, "spec.memory"),
    "memory below the log": (("HardwareProfile", "small"), {"memory": "32Mi"}, "spec: "),
    "log of the fleet": (("BrokerFleet", "stocks"), {"defaults": {"logSize": "100Gi"}}, "spec.defaults.logSize"),
    "heartbeat of the fleet": (
        ("BrokerFleet", "stocks"),
        {"defaults": {"timing": {"heartbeat": "20s"}}},
        "spec.defaults.timing.heartbeat",
    ),
    "a client with the name of an edge": (
        ("BrokerFleet", "stocks"),
        {"security": {"clients": [{"name": "edge-0"}]}},
        "spec.security.clients[0].name",
    ),
    "a client with names of recorders": (
        ("BrokerFleet", "stocks"),
        {"security": {"clients": [{"name": "a", "namePrefixes": ["recorder."]}]}},
        "spec.security.clients[0].namePrefixes[0]",
    ),
    "policy of the fleet": (("BrokerFleet", "stocks"), {"defaults": {"policy": {"type": "Best"}}}, "spec.defaults"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_an_object_that_is_changed_to_have_a_fault_stays_as_it_was_accepted(kind: str):
    objects = healthy()
    objects["BrokerCluster", "north"] = make("BrokerCluster", "north", head={**SMALL, "logSize": "60Mi"})
    before = usable_fleet(objects.values())
    assert before.faults == {}
    key, change, part = CHANGES[kind]
    objects[key] = changed(objects[key], **change)
    scaled = changed(objects["BrokerCluster", "south"], edges=[{"name": "new", "profile": "small"}])
    objects["BrokerCluster", "south"] = scaled
    found = usable_fleet(objects.values(), before.used.values())
    assert_faults(found, {key: ("InvalidSpec", part)})
    assert brokers(found) == ["east-head", "edge-0", "edge-1", "new", "north-head", "south-head"]
    assert found.used[key] == before.used[key]
    assert (found.used[key]["metadata"]["generation"], found.dropped) == (1, frozenset())
    assert found.used["BrokerCluster", "south"]["metadata"]["generation"] == 2
    again = usable_fleet(objects.values(), found.used.values())
    assert (again.used, again.faults) == (found.used, found.faults), "what is stored gives the same after a restart"


def test_a_profile_that_is_deleted_under_running_brokers_keeps_its_values():
    objects = healthy()
    before = usable_fleet(objects.values())
    del objects["HardwareProfile", "small"]
    new = make("BrokerCluster", "late", head=SMALL)
    groups = [{"name": "edge", "profile": "small", "replicas": 3}]
    objects["BrokerCluster", "east"] = changed(objects["BrokerCluster", "east"], edges=groups)
    found = usable_fleet([*objects.values(), new], before.used.values())
    assert brokers(found) == ["east-head", "edge-0", "edge-1", "edge-2", "south-head"], "it still scales"
    assert found.used["HardwareProfile", "small"] == before.used["HardwareProfile", "small"]
    assert {key for key, fault in found.faults.items() if fault.reason == "InvalidSpec"} == {
        ("BrokerCluster", "east"), ("BrokerCluster", "south"), ("BrokerCluster", "late"),
    }  # fmt: skip
    assert found.dropped == {("BrokerCluster", "late")}


@pytest.mark.parametrize(
    ("had", "has", "why"),
    [
        ({"volumeClaim": "records"}, {"volumeClaim": "records", "ledgers": "s3a://b/c"}, "channels have their ledgers"),
        ({"ledgers": "s3a://b/c"}, {"ledgers": "s3a://b/d"}, "channels have their ledgers there"),
        ({"ledgers": "s3a://b/c"}, {"ledgers": "s3a://b/c", "storeSecret": "store"}, ""),
        ({}, {"ledgers": "s3a://b/c"}, ""),
        ({"volumeClaim": "records"}, {"volumeClaim": "other"}, "feeds have their datasets and channels have their"),
        ({"volumeClaim": "records"}, {}, "on the volume records"),
        ({"volumeClaim": "records", "ledgers": "s3a://b/c"}, {"ledgers": "s3a://b/c"}, "feeds have their datasets on"),
        ({"volumeClaim": "records"}, {"volumeClaim": "records", "volumeAccess": "ReadWriteMany"}, ""),
        ({}, {"volumeClaim": "records"}, ""),
    ],
)
def test_datasets_and_ledgers_stay_where_they_are_while_they_are_in_use(had: Any, has: Any, why: str):
    fleet = make("BrokerFleet", "stocks", datasets=had)
    feed, reads = make("Feed", "r", subscription="[a,=,1]"), [{"name": "r", "feed": "r"}]
    city = [{"name": "city", "type": "String"}]
    channel = make("Channel", "fires", parameters=city, feeds=reads, query="SELECT city FROM r")
    objects = {key_of(item): item for item in (*healthy().values(), fleet, feed, channel)}
    before = usable_fleet(objects.values())
    assert before.faults == {}
    objects["BrokerFleet", "stocks"] = changed(fleet, datasets=has)
    found = usable_fleet(objects.values(), before.used.values())
    if why:
        assert_faults(found, {("BrokerFleet", "stocks"): ("InvalidSpec", why)})
        assert found.used["BrokerFleet", "stocks"]["spec"]["datasets"] == had, "it goes on as it was"
        again = usable_fleet(objects.values(), found.used.values())
        assert (again.used, again.faults) == (found.used, found.faults)
        del objects["Channel", "fires"], objects["Feed", "r"]
        found = usable_fleet(objects.values(), before.used.values())
    assert found.faults == {}
    assert found.used["BrokerFleet", "stocks"]["spec"]["datasets"] == has


def test_a_neighbour_that_is_deleted_is_left_out():
    objects = healthy()
    before = usable_fleet(objects.values())
    del objects["BrokerCluster", "east"]
    groups = [{"name": "new", "profile": "small"}]
    objects["BrokerCluster", "south"] = changed(objects["BrokerCluster", "south"], edges=groups)
    found = usable_fleet(objects.values(), before.used.values())
    assert brokers(found) == ["new", "south-head"], "it still scales"
    assert_faults(found, {("BrokerCluster", "south"): ("InvalidSpec", 'there is no BrokerCluster "east"')})
    assert found.resources is not None
    assert found.resources.clusters["south"].spec.neighbors == ()
    assert found.used["BrokerCluster", "south"]["spec"]["neighbors"] == [{"name": "east"}]


def test_who_depends_on_an_object_with_a_fault_says_so_by_name_and_goes_on():
    objects = healthy()
    objects["BrokerCluster", "east"]["spec"]["head"] = {"profile": "absent"}
    found = usable_fleet(objects.values())
    assert brokers(found) == ["south-head"]
    assert found.faults.keys() == {("BrokerCluster", "east")}
    told = found.incomplete["BrokerCluster", "south"]
    assert (told.reason, told.message.partition(":")[0]) == ("DependsOnFault", "spec.neighbors[0].name")
    assert "BrokerCluster/east has a fault of its own, so this link is left out" in told.message


def test_a_name_that_another_object_has_taken_is_no_fault_of_one_that_scales():
    objects = healthy()
    before = usable_fleet(objects.values())
    groups = [{"name": "edge", "profile": "small", "replicas": 3}]
    objects["BrokerCluster", "east"] = changed(objects["BrokerCluster", "east"], edges=groups)
    bad = make("BrokerCluster", "bad", head=SMALL, edges=[{"name": "edge-0", "profile": "small"}])
    found = usable_fleet([*objects.values(), bad], before.used.values())
    assert found.faults.keys() == {("BrokerCluster", "bad")}
    assert "edge-2" in brokers(found)


def test_an_object_that_was_created_again_has_no_earlier_version():
    objects = healthy()
    before = usable_fleet(objects.values())
    objects["BrokerCluster", "east"] = make("BrokerCluster", "east", head={"profile": "absent"})
    found = usable_fleet(objects.values(), before.used.values())
    assert found.dropped == {("BrokerCluster", "east")}


def test_a_fleet_that_runs_stays_with_keys_or_without_until_it_is_made_anew():
    objects = healthy()
    before = usable_fleet(objects.values())
    fleet = objects["BrokerFleet", "stocks"]
    objects["BrokerFleet", "stocks"] = changed(fleet, security={"plain": True})
    found = usable_fleet(objects.values(), before.used.values())
    assert found.resources is not None
    assert not found.resources.fleet.spec.security.plain, "its brokers go on as they are"
    assert "delete the fleet, and create it again" in found.faults["BrokerFleet", "stocks"].message
    objects["BrokerFleet", "stocks"] = make("BrokerFleet", "stocks", security={"plain": True})
    found = usable_fleet(objects.values(), before.used.values())
    assert found.resources is not None
    assert (found.resources.fleet.spec.security.plain, dict(found.faults)) == (True, {})


def test_without_a_usable_fleet_there_is_none():
    objects = healthy()
    objects["BrokerFleet", "stocks"]["spec"] = {"defaults": {"logSize": "much"}}
    found = usable_fleet(objects.values())
    assert (found.resources, dict(found.used)) == (None, {})
    assert found.faults.keys() == {("BrokerFleet", "stocks")}
    del objects["BrokerFleet", "stocks"]
    assert usable_fleet(objects.values()).resources is None


def test_edges_that_clusters_have_made_are_not_read_twice():
    objects = healthy()
    made = make("EdgeBroker", "edge-0", clusterRef={"name": "east"}, profile="small")
    made["metadata"]["ownerReferences"] = [{"kind": "BrokerCluster", "name": "east", "controller": True}]
    found = usable_fleet([*objects.values(), made])
    assert brokers(found) == HEALTHY
    assert ("EdgeBroker", "edge-0") not in found.used


Change = Callable[[Objects], None]


def _broken(objects: Objects, kinds: Iterable[str]) -> list[dict[str, Any]]:
    bad = [copy.deepcopy(item) for kind in kinds for item in NEW_FAULTS[kind][0]]
    names: dict[Key, dict[str, Any]] = {}
    for number, item in enumerate(bad):
        item["metadata"]["name"] = f"z{number}-{item['metadata']['name']}"
        names[key_of(item)] = item
    return [*names.values(), *objects.values()]


@given(st.lists(st.sampled_from(sorted(NEW_FAULTS)), max_size=6), st.randoms())
def test_any_number_of_faults_in_any_order_leave_the_healthy_fleet_as_it_is(kinds: list[str], random: Any):
    objects = healthy()
    before: list[Content] = list(usable_fleet(objects.values()).used.values())
    items = _broken(objects, kinds)
    expected = usable_fleet(items, before)
    random.shuffle(items)
    random.shuffle(before)
    found = usable_fleet(items, before)
    assert (found.used, found.faults) == (expected.used, expected.faults)
    assert set(HEALTHY) <= set(brokers(found))
    assert not found.faults.keys() & objects.keys()


def test_an_edge_that_comes_with_the_name_of_a_client_has_the_fault():
    objects = healthy()
    objects["BrokerFleet", "stocks"] = make("BrokerFleet", "stocks", security={"clients": [{"name": "app"}]})
    before = usable_fleet(objects.values())
    objects["EdgeBroker", "app"] = late(make("EdgeBroker", "app", clusterRef={"name": "east"}, profile="small"))
    found = usable_fleet(objects.values(), before.used.values())
    assert_faults(found, {("EdgeBroker", "app"): ("InvalidSpec", 'called "app", too')})
    assert brokers(found) == HEALTHY
