"""The schemas of the definitions: structural, described, bounded, and what the reader reads."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crds.structural import defaulted, definitions, faults, nodes, schema_of

from plimsoll.core.spec import KINDS, SourceDocument
from plimsoll.core.spec.kinds import WRITTEN_KINDS
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.resources import to_mapping

KIND_NAMES = sorted(KINDS)
ALL_NAMES = sorted({**KINDS, **WRITTEN_KINDS})


def spec_nodes(kind: str) -> list[tuple[str, dict[str, Any]]]:
    return list(nodes(schema_of(kind)["properties"]["spec"], "spec"))


def test_there_is_a_definition_of_each_kind():
    assert sorted(definitions()) == ALL_NAMES


@pytest.mark.parametrize("kind", ALL_NAMES)
def test_every_part_has_a_type_and_is_described(kind):
    for path, node in nodes(schema_of(kind)):
        is_free = path in ("status.record", "status.policyMemory")
        assert is_free or "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert node.get("type") != "number", f"{path}: floating-point numbers are not compared safely"
        if path in ("", "apiVersion", "kind", "metadata", "metadata.name") or path.endswith(("[]", "{}")):
            continue
        assert node["description"].endswith("."), path
        assert node["description"][0].isupper(), path


@pytest.mark.parametrize("kind", ALL_NAMES)
def test_everything_that_is_asked_for_is_bounded(kind):
    """So that the cost of rules can be estimated, and no single object fills the store."""
    for path, node in spec_nodes(kind):
        if node.get("type") == "string":
            assert {"maxLength", "enum"} & node.keys(), path
        if node.get("type") == "array":
            assert "maxItems" in node, path
            assert node["x-kubernetes-list-type"] in ("map", "set", "atomic"), path
        if node.get("type") == "integer":
            assert {"minimum", "maximum"} <= node.keys(), path
        if path.endswith(".matchLabels"):  # Kubernetes' own form
            assert "maxProperties" in node, path
        else:
            assert "additionalProperties" not in node, f"{path}: lists of named objects, not maps"


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_named_lists_are_maps_by_their_key(kind):
    for path, node in spec_nodes(kind):
        items = node.get("items", {}).get("properties", {})
        if "name" in items and not path.endswith("candidates"):  # they have an order
            assert node["x-kubernetes-list-map-keys"] == ["name"], path
            assert "name" in node["items"]["required"], path


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_defaults_are_valid_and_are_the_readers(kind):
    schema = schema_of(kind)
    spec = schema["properties"]["spec"]
    for path, node in spec_nodes(kind):
        if "default" in node:
            assert not list(faults(node, defaulted(node, node["default"]))), path
    least = LEAST[kind]
    assert defaulted(spec, least) == written_with_defaults(kind, least)


LEAST: dict[str, dict[str, Any]] = {
    "BrokerFleet": {},
    "BrokerCluster": {"head": {"profile": "p"}, "policy": {"type": "Padres", "padres": {}}},
    "EdgeBroker": {"clusterRef": {"name": "c"}, "profile": "p"},
    "HardwareProfile": {"emulation": {}},
    "LoadBalancingSession": {"scope": "Local", "candidates": [{"name": "e", "metric": "Input"}]},
    "Feed": {"subscription": "[class,=,'STOCK']"},
    "Channel": {
        "parameters": [{"name": "symbol", "type": "String"}],
        "query": "SELECT symbol FROM parameters",
        "feeds": [{"name": "quotes", "feed": "stocks"}],
    },
}


def written_with_defaults(kind: str, spec: dict[str, Any]) -> Any:
    """The reader's result, with defaults, without empty lists, which may be absent."""
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    [resource], problems = parse_each([SourceDocument(document)])
    assert not problems
    return without_empty_lists(to_mapping(resource.spec, defaults=True))


def without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_empty_lists(part) for key, part in value.items() if part != []}
    return [without_empty_lists(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_descriptions_say_what_an_explanation_does_not_show(kind):
    for path, node in spec_nodes(kind):
        if node.get("default") not in (None, "", []) and not isinstance(node["default"], dict):
            shown = node["default"]
            words = ", ".join(shown) if isinstance(shown, list) else str(shown).lower()
            assert f"Default: {words}." in node["description"].replace(str(shown), words), path


def test_units_bounds_and_defaults_read_as_sentences():
    fleet = dict(nodes(schema_of("BrokerFleet")))
    assert fleet["spec.defaults.subscribers.queueSize"]["description"] == (
        "Limit of the queue of one subscriber at its edge. More than 0 bytes. Default: 1Mi."
    )
    assert fleet["spec.telemetry.reportInterval"]["description"] == (
        "Interval of a broker's load reports. At least 1 s, at most 300 s. Default: 1s."
    )
    cluster = dict(nodes(schema_of("BrokerCluster")))
    assert cluster["spec.head.profile"]["description"] == "Its hardware profile. Names a HardwareProfile."
    assert cluster["status.load.cpuPercent"]["description"] == (
        "CPU time / the profile's limit. In percent."
    )  # fmt: skip


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_names_columns_and_subresources(kind):
    definition = definitions()[kind]
    spec, [version] = definition["spec"], definition["spec"]["versions"]
    assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert spec["names"]["shortNames"] == [KINDS[kind].short]
    assert spec["names"]["categories"] == ["plimsoll"]
    assert ("scale" in version["subresources"]) == (kind == "BrokerCluster")
    assert "status" in version["subresources"]
    columns = version["additionalPrinterColumns"]
    assert columns[-1]["name"] == "Age"
    assert len({column["name"] for column in columns}) == len(columns)
    known = {path.replace("[]", "") for path, _ in nodes(version["schema"]["openAPIV3Schema"])}
    for column in columns[:-1]:
        path = column["jsonPath"].lstrip(".")
        if "[?" not in path:
            assert path in known, f"{column['name']} shows nothing: there is no {path}"
        assert column["description"].endswith(".")


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_rules_say_what_to_do(kind):
    for path, node in nodes(schema_of(kind)):
        for rule in node.get("x-kubernetes-validations", []):
            assert 0 < len(rule["message"]) < 200, path
            assert "\n" not in rule["rule"], path


def test_long_lists_are_no_sets_as_the_owner_of_each_item_would_be_noted():
    session = dict(nodes(schema_of("LoadBalancingSession")))
    assert session["spec.select.names"]["x-kubernetes-list-type"] == "atomic"
    assert session["spec.exclusions.subscribers"]["x-kubernetes-list-type"] == "atomic"
    assert session["spec.exclusions.brokers"]["x-kubernetes-list-type"] == "set"


YAML_BOOLEANS = {"y", "n", "yes", "no", "on", "off", "true", "false"}
"""Words that YAML 1.1 reads as true or false where they are not quoted."""


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_no_field_is_a_boolean_of_yaml(kind):
    """`required: [x, y]` in a definition, or `y: 2` in an object, would reach an API server as true."""
    names = {path.rpartition(".")[2].rstrip("[]{}").lower() for path, _ in nodes(schema_of(kind))}
    assert "spec" in names
    assert not names & YAML_BOOLEANS
