"""Consumer groups of a cluster: what is read, what is refused, what cannot change, and what heads are started with."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.spec import InvalidResourcesError, Resources, SourceDocument, parse
from plimsoll.core.spec.broker_config import BrokerEndpoints, broker_configs, declared_groups
from plimsoll.core.spec.validation.updates import refused_changes

SENSORS = {"count": 10, "function": "Modulo", "by": "sensor"}
READINGS = {"name": "readings", "filter": "[class,=,'R']", "slices": SENSORS}


def fleet(*groups: dict[str, Any], west: tuple[dict[str, Any], ...] = ()) -> Resources:
    def make(kind: str, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}

    objects = [
        make("BrokerFleet", "f", security={"plain": True}),
        make("HardwareProfile", "p", memory="512Mi"),
        make("BrokerCluster", "east", head={"profile": "p"}, consumerGroups=list(groups)),
        make(
            "BrokerCluster", "west", head={"profile": "p"}, edges=[{"name": "w", "profile": "p"}],
            neighbors=[{"name": "east"}], consumerGroups=list(west),
        ),
    ]  # fmt: skip
    return parse(SourceDocument(each, f"{i}.yaml") for i, each in enumerate(objects))


def group(**slices: Any) -> dict[str, Any]:
    return {"name": "g", "slices": {"count": 4, **slices}}


def test_defaults() -> None:
    (found,) = fleet(group(by="k")).clusters["east"].spec.consumer_groups
    assert (found.filter, found.balancing) == ("", "Rates")
    assert (found.slices.function, found.slices.unassigned) == ("Hash", "Drop")


@pytest.mark.parametrize(
    ("slices", "said"),
    [
        ({}, "Hash needs to know which attribute"),
        ({"function": "Modulo"}, "Modulo needs to know"),
        ({"function": "Publisher", "by": "k"}, "reads no attribute"),
        ({"function": "Range", "by": "k"}, "a Range has two ends"),
        ({"function": "Range", "by": "k", "low": 2, "high": 1}, "not below `high`"),
        ({"by": "k", "low": 1}, "a bound of a Range"),
        ({"count": 0, "by": "k"}, "at least 1"),
        ({"count": 10_001, "by": "k"}, "at most 10000"),
        ({"function": "Mod"}, "Modulo"),
    ],
)
def test_each_fault_is_said(slices: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidResourcesError) as raised:
        fleet(group(**slices))
    assert said in str(raised.value)
    assert "consumerGroups[0].slices" in str(raised.value)


def test_a_name_is_one_groups_in_the_fleet() -> None:
    with pytest.raises(InvalidResourcesError, match="a stamp names its group alone"):
        fleet(READINGS, west=(READINGS,))
    with pytest.raises(InvalidResourcesError, match="lower case letters"):
        fleet({**READINGS, "name": "Readings"})


def test_slices_and_filter_stay_balancing_may_change_and_groups_come_and_go() -> None:
    before = fleet(READINGS)
    assert list(refused_changes(before, fleet({**READINGS, "balancing": "Pairing"}))) == []
    assert list(refused_changes(before, fleet())) == []
    assert list(refused_changes(fleet(), before)) == []
    for change in ({"filter": ""}, {"slices": {**SENSORS, "count": 9}}):
        assert len(list(refused_changes(before, fleet({**READINGS, **change})))) == 1


def test_every_head_has_the_groups_of_the_fleet_and_edges_have_none() -> None:
    resources = fleet(READINGS, west=(group(function="Range", by="k", low=-1, high="1500m"),))
    addresses = {
        name: BrokerEndpoints(f"tcp://{name}:1", f"tcp://{name}:2") for name in ("east-head", "west-head", "w")
    }
    found = {config.name: config.groups for config in broker_configs(resources, addresses)}
    assert found["east-head"] == found["west-head"] == declared_groups(resources)
    assert found["w"] == ()
    first, second = declared_groups(resources)
    assert (first.cluster, first.name, first.count, first.function, first.by) == (
        "east",
        "readings",
        10,
        "Modulo",
        "sensor",
    )
    assert (second.cluster, second.low, second.high) == ("west", -1.0, 1.5)
