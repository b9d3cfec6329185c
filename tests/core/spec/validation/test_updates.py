"""What may change while a fleet runs, and what is refused, by name."""

from typing import Any

import pytest

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.problems import path_text
from plimsoll.core.spec.validation.updates import refused_changes


def make(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def objects() -> dict[str, dict[str, Any]]:
    return {
        "fleet": make("BrokerFleet", "quotes"),
        "small": make("HardwareProfile", "small"),
        "big": make("HardwareProfile", "big", memory="1Gi"),
        "east": make("BrokerCluster", "east", head={"profile": "big"}, edges=[{"name": "e", "profile": "small"}]),
        "west": make(
            "BrokerCluster", "west", head={"profile": "big"}, neighbors=[{"name": "east"}],
            edges=[{"name": "w", "profile": "small", "replicas": 2}],
        ),
        "alone": make("BrokerCluster", "alone", head={"profile": "small"}),
    }  # fmt: skip


def fleet(changed: dict[str, dict[str, Any]] | None = None, without: tuple[str, ...] = ()) -> Resources:
    wanted = {**objects(), **(changed or {})}
    return parse(SourceDocument(item, f"{name}.yaml") for name, item in wanted.items() if name not in without)


def west(**changes: Any) -> dict[str, dict[str, Any]]:
    return {"west": make("BrokerCluster", "west", **{**objects()["west"]["spec"], **changes})}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        west(edges=[]),
        west(edges=[{"name": "w", "profile": "small", "replicas": 5}, {"name": "x", "profile": "big"}]),
        west(edges=[{"name": "w", "profile": "small"}]),
        west(
            listeners={"brokers": [{"name": "w-2", "dataPort": 9}]},
            edges=[{"name": "w", "profile": "small", "replicas": 3}],
        ),
        {"spare": make("HardwareProfile", "spare")},
        {"fresh": make("BrokerCluster", "fresh", head={"profile": "big"})},
        {"hand": make("EdgeBroker", "hand", clusterRef={"name": "east"}, profile="big", cordoned=True)},
    ],
)  # fmt: skip
def test_edges_and_lone_clusters_come_and_go(changed):
    assert list(refused_changes(fleet(), fleet(changed))) == []
    assert list(refused_changes(fleet(changed), fleet())) == []


def test_neighbors_may_be_named_by_the_other_side():
    changed = west(neighbors=[])
    changed["east"] = make("BrokerCluster", "east", **objects()["east"]["spec"], neighbors=[{"name": "west"}])
    assert list(refused_changes(fleet(), fleet(changed))) == []


def test_clients_come_and_go():
    named = {"fleet": make("BrokerFleet", "quotes", security={"clients": [{"name": "app", "channels": []}]})}
    assert list(refused_changes(fleet(), fleet(named))) == []
    assert list(refused_changes(fleet(named), fleet())) == []


@pytest.mark.parametrize(
    ("changed", "file", "path", "words"),
    [
        ({"fleet": make("BrokerFleet", "other")}, "fleet", "metadata.name", "called quotes"),
        ({"fleet": make("BrokerFleet", "quotes", security={"plain": True})}, "fleet", "spec.security.plain",
         "cannot change"),
        ({"fleet": make("BrokerFleet", "quotes", timeScalePercent=50)}, "fleet", "spec.timeScalePercent", "cannot"),
        ({"fleet": make("BrokerFleet", "quotes", defaults={"timing": {"heartbeat": "2s"}})}, "fleet",
         "spec.defaults.timing", "cannot change"),
        (west(head={"profile": "small"}), "west", "spec.head", "head cannot change"),
        (west(edges=[{"name": "w", "profile": "small", "replicas": 2, "location": {"east": 1, "north": 2}}]), "west",
         "spec.edges[0].name", "cannot change while it runs"),
        (west(listeners={"bindAddress": "127.0.0.2"}), "west", "spec.listeners.bindAddress", "cannot change"),
        (west(listeners={"brokers": [{"name": "w-1", "dataPort": 9}]}), "west", "spec.listeners.brokers", "of w-1"),
        (west(edges=[{"name": "w", "profile": "big", "replicas": 2}]), "west", "spec.edges[0].name", "profile small"),
        ({"small": make("HardwareProfile", "small", cpu="2")}, "small", "spec", "alone-head, e, w-0, w-1 run with"),
        ({"small": make("HardwareProfile", "small", emulation={"base": "1ms"})}, "small", "spec", "cannot change"),
    ],
)  # fmt: skip
def test_what_running_brokers_were_told_stays(changed, file, path, words):
    found = {(p.file, path_text(p.path)): p for p in refused_changes(fleet(), fleet(changed))}
    assert (f"{file}.yaml", path) in found
    assert words in found[f"{file}.yaml", path].found
    assert "plimsoll down" in found[f"{file}.yaml", path].remedy


@pytest.mark.parametrize(
    "changed",
    [
        west(policy={"type": "Padres"}),
        west(policy={"type": "Bad", "bad": {"migration": "SimilarityBased"}}),
        {"fleet": make("BrokerFleet", "quotes", defaults={"policy": {"type": "Random"}})},
    ],
)
def test_a_policy_comes_changes_and_goes(changed):
    assert list(refused_changes(fleet(), fleet(changed))) == []
    assert list(refused_changes(fleet(changed), fleet())) == []


def test_a_head_may_be_cordoned_while_it_runs():
    assert list(refused_changes(fleet(), fleet(west(head={"profile": "big", "cordonedEpoch": 7})))) == []


def test_a_head_may_take_on_a_standby_and_let_it_go_while_it_runs():
    pair = fleet(west(head={"profile": "big", "standby": 1}))
    assert list(refused_changes(fleet(), pair)) == list(refused_changes(pair, fleet())) == []


def test_what_has_to_have_a_publication_may_change_while_a_head_runs():
    head = {"profile": "big", "standby": 1, "log": {"disk": {"size": "1Gi"}}}
    both, either = fleet(west(head=head)), fleet(west(head={**head, "confirm": "Either"}))
    assert list(refused_changes(both, either)) == list(refused_changes(either, both)) == []


def test_links_of_heads_stay():
    [one, two] = refused_changes(fleet(), fleet(west(neighbors=[])))
    assert {one.subject, two.subject} == {"BrokerCluster/east", "BrokerCluster/west"}
    assert "neighbors were east and would be none" in two.found
    assert list(refused_changes(fleet(), fleet(west(neighbors=[{"name": "east"}, {"name": "alone"}]))))


def test_a_linked_cluster_stays_and_a_lone_one_may_go():
    assert list(refused_changes(fleet(), fleet(without=("alone",)))) == []
    [problem] = refused_changes(fleet(), fleet(without=("west",)))
    assert "linked to east" in problem.found
    assert problem.subject == "BrokerCluster/west"


def test_an_edge_stays_in_its_cluster():
    here = {"hand": make("EdgeBroker", "hand", clusterRef={"name": "east"}, profile="big")}
    there = {"hand": make("EdgeBroker", "hand", clusterRef={"name": "west"}, profile="big")}
    [problem] = refused_changes(fleet(here), fleet(there))
    assert "cannot change to west" in problem.found
