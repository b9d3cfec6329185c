"""A World of recorded objects: specifications as they are, load as measured, and every reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.spec import SourceDocument, parse
from plimsoll.mediator.world.fleet_world import FleetWorld, FleetWorldError, fleet_world
from plimsoll.mediator.world.traffic_survey import SurveyedHead, SurveyedPublisher, TrafficSurvey
from plimsoll.simulator.worlds.world_spec import parse_world
from plimsoll.simulator.worlds.world_traffic import faults

AT = "2026-11-23T22:47:13Z"


def of(items: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(each for each in items if (each["kind"], each["metadata"]["name"]) == (kind, name))


def documents(found: FleetWorld) -> dict[str, Mapping[str, Any]]:
    """Specifications by kind and name; the World can be simulated with its fleet."""
    world, *fleet = found.documents
    resources = parse([SourceDocument(each, "<test>") for each in fleet])
    assert faults(parse_world(world["spec"]), resources) == []
    return {f"{each['kind']}/{each['metadata']['name']}": each["spec"] for each in found.documents}


def test_specifications_are_copied_and_loads_are_measured(recorded, surveyed):
    found = fleet_world(recorded, surveyed, at=AT, duration="5m")
    specs = documents(found)
    assert list(specs) == [
        "World/trial", "BrokerFleet/trial", "HardwareProfile/head", "HardwareProfile/large", "HardwareProfile/small",
        "BrokerCluster/quotes",
    ]  # fmt: skip
    for kind, name in (("BrokerFleet", "trial"), ("BrokerCluster", "quotes"), ("HardwareProfile", "small")):
        assert specs[f"{kind}/{name}"] == of(recorded, kind, name)["spec"]
    world = specs["World/trial"]
    assert (world["duration"], world["measured"]["at"]) == ("5m", AT)
    loads = {each["name"]: each for each in world["measured"]["brokers"]}
    assert list(loads) == ["quotes-head", "large", "small"]
    assert loads["large"]["inputUtilizationPercent"] == 11
    assert loads["large"]["subscribers"] == 38
    assert [each["name"] for each in world["publishers"]] == ["p", "q"]
    assert len(world["subscribers"]) == 3


def test_links_on_one_machine_are_taken_to_be_short(recorded, surveyed):
    assert documents(fleet_world(recorded, surveyed, at=AT))["World/trial"]["links"]["toClients"] == "200us"
    of(recorded, "EdgeBroker", "small")["status"]["endpoints"]["data"] = "tcp://small.ships.svc:7410"
    found = fleet_world(recorded, surveyed, at=AT)
    assert documents(found)["World/trial"]["links"]["toClients"] == "1ms"
    assert any("assumed: links take 1ms" in note for note in found.notes)


def test_links_take_half_of_a_round_trip(recorded, surveyed):
    found = fleet_world(recorded, replace(surveyed, round_trip_seconds=0.0031), at=AT)
    links = documents(found)["World/trial"]["links"]
    assert links == {"betweenBrokers": "1550us", "toClients": "1550us"}
    assert any("measured: a question to a head and its answer take 3.1 ms" in note for note in found.notes)


def test_connections_of_clients_come_along(recorded, surveyed):
    assert "clients" not in documents(fleet_world(recorded, surveyed, at=AT))["World/trial"]["links"]
    found = fleet_world(recorded, replace(surveyed, clients=2), at=AT)
    assert documents(found)["World/trial"]["links"]["clients"] == 2
    assert any("measured: 2 connections of clients" in note for note in found.notes)


def test_without_a_survey_it_is_made_up_from_statuses(recorded):
    found = fleet_world(recorded, None, at=AT)
    world = documents(found)["World/trial"]
    assert sum(each["edge"] == "large" for each in world["subscribers"]) == 38
    assert any("are made up" in note for note in found.notes)


def test_one_cluster_stands_alone(recorded, surveyed):
    other = {
        "kind": "BrokerCluster", "metadata": {"name": "west"},
        "spec": {"head": {"profile": "head"}, "neighbors": [{"name": "quotes"}]},
    }  # fmt: skip
    of(recorded, "BrokerCluster", "quotes")["spec"]["neighbors"] = [{"name": "west"}]
    far = SurveyedPublisher("far", 8.0, ({"class": "STOCK", "high": 99}, {"class": "BOND"}), 0)
    heads = {**surveyed.heads, "west-head": SurveyedHead((far,), 2, 10.0)}
    found = fleet_world([*recorded, other], TrafficSurvey(heads, surveyed.subscribers), at=AT, cluster="quotes")
    specs = documents(found)
    assert "BrokerCluster/west" not in specs
    assert "neighbors" not in specs["BrokerCluster/quotes"]
    entry = of_name(specs["World/quotes"]["publishers"], "far")
    assert (entry["cluster"], entry["rates"]) == ("quotes", [{"perSecond": "4.000"}])
    assert len(entry["publications"]) == 1
    assert any("stands alone" in note for note in found.notes)


def of_name(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in entries if each["name"] == name)


def test_an_edge_that_a_user_has_added_comes_along(recorded, surveyed):
    extra = {**of(recorded, "EdgeBroker", "small")}
    extra["metadata"] = {"name": "extra"}
    extra["spec"] = {**extra["spec"], "cordoned": True}
    found = fleet_world([*recorded, extra], surveyed, at=AT)
    assert documents(found)["EdgeBroker/extra"]["clusterRef"] == {"name": "quotes"}
    assert any("extra is not cordoned" in note for note in found.notes)


def test_nothing_of_the_fleet_and_no_cluster(recorded, surveyed):
    with pytest.raises(FleetWorldError, match="no BrokerCluster: start a fleet"):
        fleet_world([], surveyed, at=AT)
    with pytest.raises(FleetWorldError, match='no BrokerCluster "quote"\\. Did you mean "quotes"'):
        fleet_world(recorded, surveyed, at=AT, cluster="quote")


def test_a_broker_that_is_not_ready_is_named(recorded, surveyed):
    conditions = of(recorded, "EdgeBroker", "small")["status"]["conditions"]
    next(each for each in conditions if each["type"] == "Ready").update(status="False", message="process 7 is dead")
    with pytest.raises(FleetWorldError, match=r"edge small is N/A \(process 7 is dead\): wait until .* get eb"):
        fleet_world(recorded, surveyed, at=AT)


def test_a_head_that_is_not_ready_is_named(recorded, surveyed):
    of(recorded, "BrokerCluster", "quotes")["status"]["head"]["state"] = "N/A"
    with pytest.raises(FleetWorldError, match="head quotes-head is N/A"):
        fleet_world(recorded, surveyed, at=AT)
    del of(recorded, "BrokerCluster", "quotes")["status"]
    with pytest.raises(FleetWorldError, match=r"head quotes-head is N/A \(it has no status yet\)"):
        fleet_world(recorded, surveyed, at=AT)


def test_no_report_yet_and_old_reports(recorded, surveyed):
    edge = of(recorded, "EdgeBroker", "large")
    fresh = next(each for each in edge["status"]["conditions"] if each["type"] == "LoadDataFresh")
    fresh.update(status="False", message="no load report for 15 s from large")
    with pytest.raises(FleetWorldError, match="edge large: no load report for 15 s from large"):
        fleet_world(recorded, surveyed, at=AT)
    edge["status"]["load"] = {}
    with pytest.raises(FleetWorldError, match="edge large has not reported its load yet: repeat"):
        fleet_world(recorded, surveyed, at=AT)


def test_an_edge_that_lags_has_no_load_in_its_status(recorded, surveyed):
    of(recorded, "EdgeBroker", "small")["status"]["state"] = "N/A"
    documents(fleet_world(recorded, surveyed, at=AT))  # a survey does not need it
    with pytest.raises(FleetWorldError, match="edge small is N/A: it has fallen behind"):
        fleet_world(recorded, None, at=AT)


def test_a_fleet_without_load(recorded, surveyed):
    with pytest.raises(FleetWorldError, match="nothing is published"):
        fleet_world(recorded, TrafficSurvey({"quotes-head": SurveyedHead((), 0, 0.0)}, surveyed.subscribers), at=AT)
    with pytest.raises(FleetWorldError, match="no edge serves a subscriber"):
        fleet_world(recorded, TrafficSurvey(surveyed.heads, {}), at=AT)


def test_a_world_too_large_for_a_file(recorded, surveyed):
    lists = {f"s{number}": (f"[n,=,{number}]",) for number in range(15_000)}
    with pytest.raises(FleetWorldError, match="a file has at most 200,000: name one --cluster"):
        fleet_world(recorded, TrafficSurvey(surveyed.heads, {"small": lists}), at=AT)


@pytest.mark.parametrize("is_default", [False, True])
def test_a_fleet_with_bundles_names_its_topics(recorded, surveyed, is_default):
    policy = {"type": "Pulsar", "pulsar": {"topicAttribute": "class"}}
    cluster, (fleet,) = of(recorded, "BrokerCluster", "quotes"), [x for x in recorded if x["kind"] == "BrokerFleet"]
    cluster["spec"].pop("policy", None)
    (fleet["spec"].setdefault("defaults", {}) if is_default else cluster["spec"])["policy"] = policy
    units = {"large": {"a#0000000f": ("[class,=,'STOCK']",), "b#0000000f": ("[class,=,'STOCK']",)}, "small": {}}
    found = fleet_world(recorded, replace(surveyed, subscribers=units), at=AT)
    world = documents(found)["World/trial"]
    assert world["topicAttribute"] == "class"
    assert [(each["edge"], each["count"]) for each in world["subscribers"]] == [("large", 2)]
    assert any("bundles begin as the policy divides" in note for note in found.notes)
