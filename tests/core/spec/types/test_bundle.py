"""Bundles are written by the fleet: a file with one is refused, and its definition has what users read."""

from __future__ import annotations

import pytest

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.kinds import WRITTEN_KINDS
from plimsoll.core.spec.schemas.crd import all_crds

BUNDLE = {
    "apiVersion": "plimsoll.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": "east-00000000-80000000"},
    "spec": {"clusterRef": {"name": "east"}, "range": "0x00000000_0x80000000"},
}  # fmt: skip


def test_a_user_does_not_write_bundles():
    with pytest.raises(InvalidResourcesError) as refused:
        parse([SourceDocument(BUNDLE, "bundles.yaml")])
    text = str(refused.value)
    assert "bundles.yaml" in text
    assert "a Bundle is written by its fleet" in text
    assert "Leave this document out" in text


def test_it_is_shown_with_range_owner_topics_sessions_and_rates():
    definition = all_crds()["Bundle"]
    [version] = definition["spec"]["versions"]
    assert definition["spec"]["names"]["shortNames"] == [WRITTEN_KINDS["Bundle"].short]
    shown = [column["name"] for column in version["additionalPrinterColumns"]]
    assert shown == ["Cluster", "Range", "Owner", "Topics", "Sessions", "In/s", "Out/s", "Bytes/s", "Age"]
    assert "subresources" not in version, "one write has all of it"
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for column in version["additionalPrinterColumns"][:-1]:
        _, part, *path = column["jsonPath"].split(".")
        assert path[0] in properties[part]["properties"], column
