"""Affinity in a profile: read and written as Kubernetes has it, and refused where a pod with it would be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crds.corpus import AFFINITY, FULL, changed, documents

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse


def read(affinity: dict[str, Any]) -> Any:
    profile = changed(FULL["HardwareProfile"], ("spec", "affinity"), affinity)
    [found] = parse([SourceDocument(content) for content in documents(profile)]).profiles.values()
    return found


def test_affinity_is_given_back_as_it_was_written():
    assert read(AFFINITY).mapping()["spec"]["affinity"] == AFFINITY
    assert read(AFFINITY) == read(AFFINITY)


@pytest.mark.parametrize(
    ("affinity", "place", "found"),
    [
        ({"nodeAfinity": {}}, "affinity.nodeAfinity", 'Did you mean "nodeAffinity"'),
        (
            {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]}},
            "[0].weight", "too large",
        ),
        (
            {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}},
            "[0].topologyKey", "this field is missing",
        ),
        *(
            (
                {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}]}},
                place, found,
            )
            for labels, place, found in (
                ({"a b": "c"}, "matchLabels.a b", "not a label's key"),
                ({"a": "b c"}, "matchLabels.a", "not of the right form"),
                ({"a": 1}, "matchLabels.a", "is not text"),
                ([], "matchLabels", "KEY: VALUE"),
                ({f"a{n}": "b" for n in range(33)}, "matchLabels", "at most 32"),
            )
        ),
        (
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "Is"}]}]}}},
            "matchExpressions[0].operator", "not a choice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_affinity_is_refused_at_its_place(affinity, place, found):
    with pytest.raises(InvalidResourcesError) as raised:
        read(affinity)
    assert place in str(raised.value)
    assert found in str(raised.value)
