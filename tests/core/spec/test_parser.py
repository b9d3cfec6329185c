"""Each way in which resources can be wrong, one by one: where it is reported, and in which words."""

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.spec import (
    InvalidResourcesError,
    ResourceProblem,
    SourceDocument,
    declared_brokers,
    edge_brokers,
    parse,
)
from plimsoll.core.spec.problems import path_text
from plimsoll.core.spec.resources import to_mapping


def make(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def fleet() -> dict[str, dict[str, Any]]:
    """A valid fleet of two clusters; each test breaks one thing in it."""
    return {
        "fleet": make("BrokerFleet", "quotes"),
        "big": make("HardwareProfile", "big", cpu="2", memory="512Mi"),
        "small": make("HardwareProfile", "small", cpu="250m", bandwidth={"outputBytesPerSecond": "600k"}),
        "east": make("BrokerCluster", "east", head={"profile": "big"}, edges=[{"name": "e", "profile": "small"}]),
        "west": make(
            "BrokerCluster", "west", head={"profile": "big"}, edges=[{"name": "w", "profile": "small", "replicas": 2}],
            neighbors=[{"name": "east"}],
        ),
    }  # fmt: skip


def documents(objects: dict[str, Any]) -> list[SourceDocument]:
    return [SourceDocument(content, f"{name}.yaml", lambda path: 10 + len(path)) for name, content in objects.items()]


def put(objects: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set `object.spec.edges[0].profile` to a value; None removes it."""
    objects = copy.deepcopy(objects)
    *ways, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
    place: Any = objects
    for way in ways:
        if isinstance(place, dict) and way not in place:
            place[way] = {}
        place = place[way]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return objects


def problems(objects: dict[str, Any]) -> list[Any]:
    with pytest.raises(InvalidResourcesError) as caught:
        parse(documents(objects))
    return list(caught.value.problems)


def test_a_valid_fleet_is_parsed():
    resources = parse(documents(fleet()))
    assert resources.fleet.name == "quotes"
    assert sorted(resources.clusters) == ["east", "west"]
    assert resources.clusters["west"].spec.edges[0].replicas == 2
    assert resources.profiles["small"].spec.cpu.milli == 250


def test_the_fleet_object_may_be_left_out():
    objects = fleet()
    del objects["fleet"]
    assert parse(documents(objects)).fleet.name == "default"


EDGE = "east.spec.edges[0]"
SESSION = "session.spec"
WINDOWS = "east.spec.maintenanceWindows"


@pytest.mark.parametrize(
    ("path", "value", "found", "remedy"),
    [
        # the envelope
        ("east.apiVersion", "plimsoll.dev/v1", "is not known", "plimsoll.dev/v1alpha1"),
        ("east.kind", "BrokerClutser", "is not a kind", 'Did you mean "BrokerCluster"?'),
        ("east.metadata.name", "East", "is not a name", "lower-case"),
        ("east.metadata.name", 123, "123 is a number, not text", 'in quotes: "123"'),
        ("east.metadata.name", True, "True is a boolean, not text", "in quotes"),
        ("east.metadata.nmae", "x", "unknown", 'Did you mean "name"?'),
        ("east.metadata.labels", "x", "not a block", "key:"),
        ("east.metadata.labels.a", 1, "not text", "quotes"),
        ("east.speck", {}, "unknown", 'Did you mean "spec"?'),
        # unknown and missing fields, wrong types
        ("east.spec.edge", [], "unknown", 'Did you mean "edges"?'),
        (f"{EDGE}.profil", "small", "unknown", 'Did you mean "profile"?'),
        (f"{EDGE}.Replicas", 1, "unknown", 'Did you mean "replicas"?'),
        ("east.spec.head.profile", None, "missing", "Add `profile`"),
        ("east.spec.head", "big", "a block of fields belongs", "profile"),
        ("east.spec.edges", {"name": "e"}, "a list belongs", "- "),
        (f"{EDGE}.replicas", "two", "not a whole number", "whole number"),
        (f"{EDGE}.replicas", True, "not a whole number", "whole number"),
        (f"{EDGE}.replicas", -1, "too small", "at least 0"),
        (f"{EDGE}.replicas", 5000, "too large", "at most 1000"),
        (f"{EDGE}.profile", 7, "not text", "quotes"),
        ("fleet.spec.security.plain", "yes", "not true or false", "without quotes"),
        ("fleet.spec.defaults.subscribers.whenSlow", "Wait", "not a choice", "Block, Disconnect, DropOldest"),
        ("fleet.spec.defaults.subscribers.whenSlow", "block", "not a choice", 'Did you mean "Block"?'),
        # quantities and durations
        ("small.spec.cpu", 0.5, "floating-point", '"500m"'),
        ("small.spec.cpu", 1e-101, "floating-point", '"1m"'),
        ("small.spec.cpu", float("inf"), "floating-point", '"0m"'),
        ("small.spec.cpu", float("nan"), "floating-point", '"0m"'),
        ("small.kind", [], "not a kind", "Known kinds"),
        ("small.spec.cpu", "250x", "not readable", "unknown suffix"),
        ("small.spec.cpu", "0", "too small", "more than 0 cores"),
        ("small.spec.cpu", [], "not a quantity", "250m"),
        ("small.spec.memory", "1Mi", "too small", "at least"),
        ("small.spec.bandwidth.outputBytesPerSecond", "0", "too small", "more than 0 bytes/s"),
        ("small.spec.bandwidth.inputBytesPerSecond", 0, "too small", "more than 0 bytes/s"),
        ("small.spec.emulation.base", "500", "not readable", "500us"),
        ("small.spec.emulation.base", 500, "has no unit", "500ms"),
        ("fleet.spec.telemetry.reportInterval", "10ms", "too small", "at least 1s"),
        # references
        (f"{EDGE}.profile", "smal", 'no HardwareProfile "smal"', 'Did you mean "small"?'),
        ("east.spec.head.profile", "huge", 'no HardwareProfile "huge"', "big, small"),
        ("west.spec.neighbors[0].name", "eats", 'no BrokerCluster "eats"', 'Did you mean "east"?'),
        ("west.spec.neighbors[0].name", "west", "its own neighbor", "Remove"),
        # policy unions
        ("east.spec.policy.type", "padres", "not a choice", 'Did you mean "Padres"?'),
        # ports
        ("east.spec.listeners.brokers", [{"name": "e", "dataPort": 70000}], "too large", "65535"),
        ("east.spec.listeners.brokers", [{"name": "e", "dataPort": -1}], "too small", "at least 0"),
        ("east.spec.listeners.brokers", [{"name": "e0"}], 'no broker "e0"', "Did you mean"),
        ("east.spec.listeners.bindAddress", "127.0.0.1:80", "not of the right form", "an address"),
        # maintenance windows
        (WINDOWS, [{"name": "n", "schedule": "0 2 * *", "duration": "1h"}], "not of the right form", "five cron"),
        (WINDOWS, [{"name": "n", "schedule": "0 9-2 * * *", "duration": "1h"}], "0 9-2 * * *", "two ranges"),
        (WINDOWS, [{"name": "n", "schedule": "0 0 30 2 *", "duration": "1h"}], "0 0 30 2 *", "no month"),
        (WINDOWS, [{"name": "n", "schedule": "0 2 * * *", "duration": "1s"}], "too small", "at least 60s"),
        (WINDOWS, [{"name": "n", "schedule": "0 2 * * *", "duration": "745h"}], "too large", "at most 2678400s"),
        # sizes
        ("fleet.spec.security.clients", [{"name": f"c{n}"} for n in range(257)], "has 257 items", "at most 256"),
        ("fleet.spec.security.clients", [{"name": "c", "roles": ["Publish"] * 2}], "in this list already", "Remove"),
        ("fleet.spec.timeScalePercent", 10_001, "too large", "at most 10000"),
        ("small.spec.cpu", "1" * 33, "has 33 characters", "at most 32"),
        ("small.spec.cpu", " 1", "has spaces", "Remove"),
        ("small.spec.cpu", "\N{ARABIC-INDIC DIGIT TWO}", "not readable", "not a quantity"),
        ("small.spec.emulation.base", "1s\n", "has spaces", "Remove"),
        # scale
        ("east.spec.scale", {"replicas": 2}, "no group to scale", "its `replicas`"),
        ("west.spec.scale", {"group": "ww", "replicas": 2}, 'no group "ww"', 'Did you mean "w"?'),
        ("west.spec.scale", {}, "missing", "Add `replicas`"),
        ("west.spec.scale.replicas", 1001, "too large", "at most 1000"),
        # what only Kubernetes acts on
        ("fleet.spec.pods.image", "no spaces", "not of the right form", "registry/name:tag"),
        ("fleet.spec.pods.lostNodeAfter", "2h", "too large", "at most 3600s"),
        ("fleet.spec.security.clients", [{"name": "a"}, {"name": "a"}], "already the name", "Rename"),
        ("fleet.spec.security.clients", [{"name": "a", "roles": ["Own"]}], "not a choice", "Publish, Read"),
        ("fleet.spec.security.clients", [{"name": "w-0"}], 'a broker of this fleet is called "w-0"', "another name"),
        ("fleet.spec.security.clients", [{"name": "a", "namePrefixes": ["a.", "channel.f"]}],
         'names that begin with "channel." are those of the driver of channels', "another prefix"),
        ("fleet.spec.telemetry.spark.launcher", "Yarn", "not a choice", "Kubernetes"),
        ("fleet.spec.datasets.spark.launcher", "None", "not a choice", "Kubernetes, Process"),
        ("fleet.spec.datasets.spark.executors", 0, "too small", "at least 1"),
        ("fleet.spec.datasets.spark.image", "no spaces", "not of the right form", "registry/name:tag"),
        ("fleet.spec.globalBalancing.interval", "10ms", "too small", "at least 1s"),
        ("small.spec.nodeSelector", [{"name": "a b", "value": "c"}], "not of the right form", "a label's key"),
        # logs
        ("fleet.spec.defaults.logSize", "400Mi", "a log of 400Mi leaves", "at most 256Mi"),
        ("big.spec.bandwidth.inputBytesPerSecond", "100M", "needs a log", "Raise memory to"),
        ("east.spec.head.log.memory", "400Mi", "a log of 400Mi leaves", "at most 256Mi"),
        ("east.spec.head.log.sync", "Interval", "nothing to sync without a disk", "add `disk`"),
        ("east.spec.head.standby", 2, "too large", "at most 1"),
        ("east.spec.head.confirm", "Either", "no choice without both", "add `standby` and `log.disk`"),
        ("east.spec.head.log.sync", "Never", "not a choice", "Always, Interval"),
        ("east.spec.head.log.disk", {}, "missing", "Add `size`"),
        ("east.spec.head.log.disk", {"size": "1Mi"}, "too small to be divided", "at least 8192Ki"),
    ],
)  # fmt: skip
def test_one_fault_is_one_located_problem(path, value, found, remedy):
    [*report] = problems(put(fleet(), path, value))
    shown = [p for p in report if found in p.found and remedy in p.remedy]
    assert shown, [str(p) for p in report]
    first = shown[0]
    if "log" not in found:
        assert len(report) == 1
        assert first.file == path.split(".")[0] + ".yaml"
        assert path_text(first.path).startswith(path.split(".", 1)[1])
    assert first.line == 10 + len(first.path)


def test_a_text_shows_file_line_subject_path_finding_and_remedy():
    [problem] = problems(put(fleet(), f"{EDGE}.profile", "smal"))
    assert str(problem) == (
        'east.yaml:14: BrokerCluster/east spec.edges[0].profile: there is no HardwareProfile "smal"\n'
        '    Did you mean "small"?'
    )


def test_all_faults_are_reported_at_once():
    broken = put(put(fleet(), f"{EDGE}.profil", "x"), "small.spec.cpu", "0")
    assert [p.file for p in problems(broken)] == ["small.yaml", "east.yaml"]


def test_a_log_that_is_too_small_says_what_the_memory_allows():
    broken = put(fleet(), "big.spec.bandwidth.inputBytesPerSecond", "10M")
    [first, _] = problems(broken)
    assert "BrokerCluster/east: the head needs a log of 572Mi = 2 x reattachWithin 30s x inputBytesPerSecond 10M" in (
        first.found
    )
    assert "the 512Mi of profile big allow 256Mi" in first.found
    assert "lower inputBytesPerSecond to 4473924" in first.remedy
    assert "timing.reattachWithin to 13s" in first.remedy
    for change in (("big.spec.bandwidth.inputBytesPerSecond", "4473924"), ("big.spec.memory", "1201Mi")):
        parse(documents(put(broken, *change)))
    parse(documents(put(broken, "fleet.spec.defaults.timing.reattachWithin", "13s")))


def test_a_log_size_that_is_too_small_can_be_raised_within_the_memory():
    broken = put(fleet(), "big.spec.bandwidth.inputBytesPerSecond", "1M")
    broken = put(broken, "east.spec.head.logSize", "10Mi")
    [problem] = problems(broken)
    assert path_text(problem.path) == "spec.head.logSize"
    assert "Raise logSize to 60Mi" in problem.remedy
    parse(documents(put(broken, "east.spec.head.logSize", "60Mi")))


def test_neighbors_of_one_side_suffice_and_of_both_are_no_cycle():
    found = parse(documents(put(fleet(), "east.spec.neighbors", [{"name": "west"}])))
    assert [[each.name for each in cluster.spec.neighbors] for cluster in found.clusters.values()] == [
        ["west"], ["east"],
    ]  # fmt: skip


def test_a_cycle_of_heads_is_named():
    objects = fleet()
    objects["north"] = make("BrokerCluster", "north", head={"profile": "big"}, neighbors=[{"name": "east"}])
    parse(documents(objects))
    objects["north"]["spec"]["neighbors"].append({"name": "west"})
    [problem] = problems(objects)
    assert (problem.file, path_text(problem.path)) == ("west.yaml", "spec.neighbors[0].name")
    assert "cycle of heads: east - north - west - east" in problem.found


def test_a_neighbor_named_twice_is_a_duplicate():
    [problem] = problems(put(fleet(), "west.spec.neighbors", [{"name": "east"}, {"name": "east"}]))
    assert "already the name of item [0]" in problem.found


def test_duplicate_objects_and_fleets():
    objects = fleet()
    objects["again"] = copy.deepcopy(objects["east"])
    [problem] = problems(objects)
    assert "already defined at east.yaml:12" in problem.found
    objects = fleet()
    objects["other"] = make("BrokerFleet", "other")
    [problem] = problems(objects)
    assert "a second fleet beside BrokerFleet/quotes" in problem.found


def test_duplicate_broker_names():
    found = problems(put(fleet(), "west.spec.edges[0]", {"name": "e", "profile": "small"}))
    assert [(p.file, path_text(p.path)) for p in found] == [
        ("east.yaml", "spec.edges[0].name"),
        ("west.yaml", "spec.edges[0].name"),
    ]
    objects = fleet()
    objects["edge"] = make("EdgeBroker", "w-1", clusterRef={"name": "east"}, profile="small")
    assert {p.file for p in problems(objects)} == {"west.yaml", "edge.yaml"}


def test_broker_names_that_grow_too_long():
    [problem, *_] = problems(put(fleet(), "west.spec.edges[0].name", "w" * 51))
    assert "has 53 characters" in problem.found


def test_one_namespace():
    found = problems(put(put(fleet(), "east.metadata.namespace", "a"), "west.metadata.namespace", "b"))
    assert '"b", while BrokerCluster/east is in "a"' in found[0].found


def test_parameters_of_another_policy():
    [problem] = problems(put(fleet(), "east.spec.policy", {"type": "Padres", "random": {}}))
    assert path_text(problem.path) == "spec.policy.random"
    assert "`padres:`" in problem.remedy


def test_a_listener_may_be_of_an_edge_that_its_group_does_not_have_now():
    """Otherwise a group whose edges have ports could not be scaled, nor could ports be given in advance."""
    listeners = [{"name": name} for name in ("w-0", "w-7", "w-x", "h-7")]
    found = problems(put(fleet(), "west.spec.listeners.brokers", listeners))
    assert [path_text(each.path) for each in found] == [
        "spec.listeners.brokers[2].name", "spec.listeners.brokers[3].name",
    ]  # fmt: skip


def test_a_port_is_given_once():
    listeners = [{"name": "e", "dataPort": 7000, "controlPort": 7001}, {"name": "east-head", "dataPort": 7001}]
    [problem] = problems(put(fleet(), "east.spec.listeners.brokers", listeners))
    assert path_text(problem.path) == "spec.listeners.brokers[1].dataPort"
    assert "already e's controlPort" in problem.found


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, "missing"),
        ({"scope": "Local", "source": {"name": "x"}}, 'no EdgeBroker "x"'),
        ({"scope": "Global", "source": {"name": "x"}}, 'no BrokerCluster or EdgeBroker "x"'),
        ({"scope": "Local", "source": {"name": "e"}, "target": {"name": "e"}}, "target is source"),
        ({"scope": "Local", "source": {"name": "e"}, "target": {"name": "w-0"}}, "different clusters"),
        ({"scope": "Local", "action": "Drain"}, "missing"),
        ({"scope": "Local", "approval": {"planHash": "xyz"}}, "not of the right form"),
        ({"scope": "Local", "exclusions": {"brokers": ["A B"]}}, "not of the right form"),
        ({"scope": "Local", "source": {"name": "e"}, "exclusions": {"brokers": ["e"]}}, "is in exclusions.brokers"),
        ({"scope": "Local", "select": {}}, "nothing is selected"),
        ({"scope": "Local", "select": {"count": 1, "sharePercent": 5}}, "more than one way"),
        ({"scope": "Local", "select": {"sharePercent": 101}}, "too large"),
        ({"scope": "Local", "select": {"names": ["x" * 257]}}, "has 257 characters"),
        ({"scope": "Local", "action": "Drain", "source": {"name": "e"}, "select": {"count": 1}}, "selects by itself"),
        ({"scope": "Global", "handover": "Replay"}, "within a cluster only"),
        ({"scope": "Local", "action": "Shuffle"}, "missing"),
        ({"scope": "Local", "action": "Shuffle", "source": {"name": "e"}}, 'no BrokerCluster "e"'),
        ({"scope": "Global", "action": "Shuffle", "source": {"name": "east"}}, "of two clusters"),
    ],
)
def test_sessions(spec, found):
    objects = fleet()
    objects["session"] = make("LoadBalancingSession", "s", **spec)
    [problem] = problems(objects)
    assert found in problem.found


def test_a_session_may_name_a_cluster_whose_policy_plans_for_all_of_it():
    objects = put(fleet(), "east.spec.policy", {"type": "Bad"})
    objects["session"] = make("LoadBalancingSession", "s", scope="Local", source={"name": "east"})
    assert "s" in parse(documents(objects)).sessions
    for spec, found in (
        ({"source": {"name": "west"}}, 'no EdgeBroker "west"'),
        ({"source": {"name": "east"}, "select": {"count": 1}}, 'no EdgeBroker "east"'),
    ):
        objects["session"] = make("LoadBalancingSession", "s", scope="Local", **spec)
        assert any(found in problem.found for problem in problems(objects))


def test_locations_are_coordinates():
    objects = put(fleet(), "east.spec.edges[0].location", {"east": "33.5", "north": "-117800m"})
    [edge] = [place for place in declared_brokers(parse(documents(objects))) if place.name == "e"]
    assert edge.location is not None
    assert (float(edge.location.east.value), float(edge.location.north.value)) == (33.5, -117.8)
    assert problems(put(fleet(), "east.spec.edges[0].location", {"east": "far", "north": 1}))


def test_a_valid_session():
    objects = fleet()
    objects["session"] = make(
        "LoadBalancingSession", "s", scope="Local", source={"name": "w-0"}, target={"name": "w-1"}, action="Drain",
        mode="Execute", approval={"policy": "Manual"}, limits={"maxMoves": 5}, exclusions={"subscribers": ["a b"]},
        deadline="5m", ttl="1h",
    )  # fmt: skip
    assert parse(documents(objects)).sessions["s"].spec.limits.max_moves == 5


@pytest.mark.parametrize(("source", "target"), [("e", "w-0"), ("east", "west"), ("e", "west")])
def test_a_global_session_names_clusters_or_edges(source, target):
    objects = fleet()
    objects["session"] = make(
        "LoadBalancingSession", "s", scope="Global", source={"name": source}, target={"name": target},
        select={"names": ["a", "b c"]}, stop=True, retries=2,
    )  # fmt: skip
    spec = parse(documents(objects)).sessions["s"].spec
    assert spec.select is not None
    assert (spec.select.names, spec.stop, spec.retries) == (("a", "b c"), True, 2)


@pytest.mark.parametrize("content", ["text", 7, [1], {}, {"kind": "BrokerFleet"}, {1: 2}])
def test_documents_that_are_no_objects(content):
    assert problems({"x": content})


def test_empty_documents_are_skipped_and_lists_are_unpacked():
    objects = fleet()
    whole = {"apiVersion": "v1", "kind": "List", "items": list(objects.values())}
    assert sorted(parse(documents({"none": None, "all": whole})).clusters) == ["east", "west"]
    objects["east"]["spec"]["bad"] = 1
    [problem] = problems({"all": whole})
    assert problem.line == 14  # items, 3, spec, bad


def test_what_is_written_is_read_again():
    resources = parse(documents(fleet()))
    again = parse([SourceDocument(resource.mapping()) for resource in resources])
    assert again == resources


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, part in parts for deeper in places_of(part, (*path, key)))]


@given(st.data())
def test_any_value_in_any_field_is_read_or_reported(data):
    objects = fleet()
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places_of(objects)[1:]))
        place: Any = objects
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = data.draw(JSON)
    assert all(problem.file and problem.found and problem.remedy for problem in judged(documents(objects)))


@given(JSON)
def test_any_document_is_read_or_reported(content):
    assert all(problem.file and problem.found and problem.remedy for problem in judged([SourceDocument(content)]))


def judged(given_documents: list[SourceDocument]) -> tuple[ResourceProblem, ...]:
    """The problems of documents; any other exception is a fault of the reader."""
    try:
        parse(given_documents)
    except InvalidResourcesError as error:
        return error.problems or pytest.fail("refused without a problem")
    return ()


def test_a_client_may_do_all_if_nothing_is_said_and_nothing_if_that_is_said():
    objects = put(fleet(), "fleet.spec.security.clients", [{"name": "a"}, {"name": "b", "roles": []}])
    first, second = parse(documents(objects)).fleet.spec.security.clients
    assert (first.roles, second.roles) == (("Publish", "Subscribe", "Group", "Read"), ())
    assert to_mapping(parse(documents(objects)).fleet.spec.security.clients) == [
        {"name": "a"},
        {"name": "b", "roles": []},
    ]


@pytest.mark.parametrize(
    ("scale", "names"),
    [
        (None, ["east-head", "west-head", "e", "v-0", "w-0", "w-1"]),
        ({"replicas": 2}, ["east-head", "west-head", "e", "v-0", "v-1", "w-0", "w-1"]),
        ({"replicas": 0}, ["east-head", "west-head", "e", "w-0", "w-1"]),
        ({"group": "w", "replicas": 1}, ["east-head", "west-head", "e", "v-0", "w-0"]),
    ],
)
def test_scale_overrides_the_replicas_of_one_group(scale, names):
    objects = put(fleet(), "west.spec.edges[0]", {"name": "v", "profile": "small", "replicas": 1})
    objects["west"]["spec"]["edges"].append({"name": "w", "profile": "big", "replicas": 2})
    if scale is not None:
        objects = put(objects, "west.spec.scale", scale)
    resources = parse(documents(objects))
    assert [place.name for place in declared_brokers(resources)] == names
    assert [edge.name for edge in edge_brokers(resources)] == [name for name in names if not name.endswith("head")]


def test_a_long_list_may_name_a_subscriber_twice():
    objects = fleet()
    objects["session"] = make("LoadBalancingSession", "s", scope="Local", exclusions={"subscribers": ["a", "a"]})
    assert parse(documents(objects)).sessions["s"].spec.exclusions.subscribers == ("a", "a")
    [problem] = problems(put(objects, "session.spec.exclusions", {"brokers": ["e", "e"]}))
    assert "in this list already" in problem.found
