"""Whether a node meets the node affinity that a pod requires. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from plimsoll.operator.names import Object

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_TESTS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda found, values: found in values,
    "NotIn": lambda found, values: found not in values,
    "Exists": lambda found, _: found is not None,
    "DoesNotExist": lambda found, _: found is None,
    "Gt": lambda found, values: _is_above(found, _first(values)),
    "Lt": lambda found, values: _is_above(_first(values), found),
}


def meets_node_affinity(node: Object, affinity: Mapping[str, Any]) -> bool:
    """Whether a pod with this affinity may be placed on a node; preferences and other pods are not looked at."""
    required = affinity.get("nodeAffinity", {}).get(REQUIRED)
    if required is None:
        return True
    labels = node.get("metadata", {}).get("labels") or {}
    fields = {"metadata.name": node.get("metadata", {}).get("name")}
    return any(_holds(term, labels, fields) for term in required.get("nodeSelectorTerms", []))


def _holds(term: Mapping[str, Any], labels: Mapping[str, str], fields: Mapping[str, str | None]) -> bool:
    """Whether all tests of a term hold; an empty term holds for no node."""
    tests: list[tuple[Mapping[str, str | None], Any]] = [
        ({**labels}, each) for each in term.get("matchExpressions", [])
    ]
    tests += [(fields, each) for each in term.get("matchFields", [])]
    return bool(tests) and all(
        _TESTS[each["operator"]](found.get(each["key"]), each.get("values", [])) for found, each in tests
    )


def _first(values: Sequence[str]) -> str | None:
    return values[0] if values else None


def _is_above(larger: str | None, smaller: str | None) -> bool:
    """Whether both are whole numbers, and the first is larger."""
    try:
        return int(larger or "") > int(smaller or "")
    except ValueError:  # as in Kubernetes: a text that is no whole number meets no comparison
        return False
