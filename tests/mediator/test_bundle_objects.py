"""Objects of bundles: their names, their owner, and what is worth a write."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plimsoll.core.spec.field_info import NAME
from plimsoll.mediator.bundle_objects import BUNDLES_AT_MOST, bundle_objects, is_notable, object_name

LOAD: dict[str, Any] = {
    "topics": 2, "sessions": 6, "publicationsPerSecond": 100, "deliveriesPerSecond": 1000, "bytesPerSecond": 72000,
}  # fmt: skip
CLUSTER = {"metadata": {"name": "east", "namespace": "ns", "uid": "u-1"}}


def test_a_bundle_is_an_object_that_its_cluster_owns():
    [found] = bundle_objects(CLUSTER, [{"name": "0x00000000_0x80000000", "edge": "e-0", **LOAD}])
    assert (found["kind"], found["metadata"]["name"]) == ("Bundle", "east-00000000-80000000")
    assert found["metadata"]["namespace"] == "ns"
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("BrokerCluster", "east", "u-1", True)
    assert found["spec"] == {"clusterRef": {"name": "east"}, "range": "0x00000000_0x80000000"}
    assert found["status"] == {"edge": "e-0", **LOAD}


def test_there_is_a_bound_of_objects():
    rows = [{"name": f"0x{n:08x}_0x{n + 1:08x}", **LOAD} for n in range(2 * BUNDLES_AT_MOST)]
    assert len(bundle_objects(CLUSTER, rows)) == BUNDLES_AT_MOST
    assert len(bundle_objects(CLUSTER, rows, at_most=len(rows))) == len(rows)


def test_names_are_names_of_objects_and_differ():
    clusters = ["e", "east-" * 9 + "x", "c" * 58, "c" * 57 + "d"]
    names = {object_name(cluster, f"0x{n:08x}_0x{n + 1:08x}") for cluster in clusters for n in range(5)}
    assert len(names) == 20
    assert all(len(name) <= 63 and re.fullmatch(NAME, name) for name in names), names


@pytest.mark.parametrize(
    ("change", "notable"),
    [
        ({}, False),
        ({"edge": "e-1"}, True),
        ({"topics": 3}, True),
        ({"sessions": 7}, True),
        ({"publicationsPerSecond": 120}, False),
        ({"publicationsPerSecond": 130}, True),
        ({"deliveriesPerSecond": 760}, False),
        ({"deliveriesPerSecond": 740}, True),
        ({"bytesPerSecond": 0}, True),
    ],
)
def test_only_what_says_something_new_is_worth_a_write(change: dict[str, Any], notable: bool):
    assert is_notable({"edge": "e-0", **LOAD}, {"edge": "e-0", **LOAD, **change}) is notable


def test_an_owner_that_has_gone_is_notable_and_a_small_rate_is_not():
    assert is_notable({"edge": "e-0", **LOAD}, LOAD)
    assert not is_notable({**LOAD, "publicationsPerSecond": 0}, {**LOAD, "publicationsPerSecond": 4})
