"""Node affinity against nodes, operator by operator."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.operator.reconcile.node_affinity import REQUIRED, meets_node_affinity

NODE = {"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}}


def meets(*terms: dict[str, Any]) -> bool:
    return meets_node_affinity(NODE, {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ["a", "b"], True), ("zone", "In", ["b"], False), ("disk", "In", ["a"], False),
        ("zone", "NotIn", ["a"], False), ("disk", "NotIn", ["a"], True),
        ("zone", "Exists", [], True), ("disk", "Exists", [], False),
        ("zone", "DoesNotExist", [], False), ("disk", "DoesNotExist", [], True),
        ("cores", "Gt", ["7"], True), ("cores", "Gt", ["8"], False), ("cores", "Lt", ["9"], True),
        ("cores", "Lt", ["8"], False), ("zone", "Gt", ["1"], False), ("disk", "Lt", ["1"], False),
        ("cores", "Gt", [], False),
    ],
)  # fmt: skip
def test_each_operator(key, operator, values, expected):
    assert meets({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}) is expected


def test_all_tests_of_one_term_hold():
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    other = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    assert meets(other, named)
    assert not meets({**named, **other})
    assert not meets({})
    assert not meets()


def test_without_a_requirement_each_node_will_do():
    assert meets_node_affinity(NODE, {})
    assert meets_node_affinity({}, {"podAffinity": {REQUIRED: [{}]}})
