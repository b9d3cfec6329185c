"""Objects of the kind Bundle: the bundles that the status of a cluster shows, each as an object that the cluster owns.

The operator writes them into the API. A local store keeps no copy: commands derive them from the status.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from plimsoll.core.spec.kinds import API_VERSION

BUNDLE_KIND: Final = "Bundle"
BUNDLES_AT_MOST: Final = 256
"""Objects of one cluster; the status of the cluster has all of its bundles."""

NOTABLE_SHARE: Final = 0.25
"""A rate that has changed by less is no reason to write an object."""
NOTABLE_RATE: Final = 5
_RATES: Final = ("publicationsPerSecond", "deliveriesPerSecond", "bytesPerSecond")


def bundle_objects(
    cluster: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], at_most: int = BUNDLES_AT_MOST
) -> list[dict[str, Any]]:
    """The objects of a cluster for its rows in `status.bundles`, in the order of their ranges."""
    return [_bundle_object(cluster, row) for row in rows[:at_most]]


def object_name(cluster: str, bundle: str) -> str:
    """The name of the object of a bundle: its cluster and the ends of its range, as far as they fit into a name."""
    name = f"{cluster}-{bundle.replace('0x', '').replace('_', '-')}"
    if len(name) <= 63:
        return name
    return f"{cluster[:30].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _bundle_object(cluster: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    metadata, name = cluster["metadata"], cluster["metadata"]["name"]
    owner = {
        "apiVersion": API_VERSION, "kind": "BrokerCluster", "name": name, "uid": metadata.get("uid", ""),
        "controller": True, "blockOwnerDeletion": False,
    }  # fmt: skip
    place = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    return {
        "apiVersion": API_VERSION,
        "kind": BUNDLE_KIND,
        "metadata": {"name": object_name(name, str(row["name"])), **place, "ownerReferences": [owner]},
        "spec": {"clusterRef": {"name": name}, "range": row["name"]},
        "status": {key: value for key, value in row.items() if key != "name"},
    }


def is_notable(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a status says something new: owner, topics or sessions, or a rate that is a quarter higher or lower."""
    if any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()) - set(_RATES)):
        return True
    return any(_is_other_rate(int(old.get(key, 0)), int(new.get(key, 0))) for key in _RATES)


def _is_other_rate(old: int, new: int) -> bool:
    return abs(new - old) > max(NOTABLE_RATE, NOTABLE_SHARE * old)
