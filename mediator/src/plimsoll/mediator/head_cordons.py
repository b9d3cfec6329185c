"""Heads that take no new publishers, and where they send them: pure functions of the objects.

A cordon names an epoch, so it ends by itself when the head is replaced: the next one has a later epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from plimsoll.core.protocol.messages import HeadAddress
from plimsoll.core.spec import head_name

Object = dict[str, Any]


@dataclass(frozen=True)
class HeadCordonView:
    """Up to which epoch a head takes no new publishers, and the heads that do."""

    epoch: int = 0
    heads: tuple[HeadAddress, ...] = ()


NOT_CORDONED = HeadCordonView()


def head_epoch(cluster: Object) -> int:
    """The epoch of a cluster's head, as it has last reported; 0 before it has."""
    return max(0, int(cluster.get("status", {}).get("head", {}).get("epoch", 0)))


def cordoned_epoch(cluster: Object, draining: Collection[str] = ()) -> int:
    """Up to which epoch the head of a cluster is cordoned, by its specification or while it is drained."""
    written = int(cluster["spec"].get("head", {}).get("cordonedEpoch", 0))
    is_drained = head_name(cluster["metadata"]["name"]) in draining
    return max(written, head_epoch(cluster)) if is_drained else written


def is_cordoned(cluster: Object, draining: Collection[str] = ()) -> bool:
    """Whether the present head of a cluster takes no new publishers."""
    return 0 < head_epoch(cluster) <= cordoned_epoch(cluster, draining)


def head_cordons(objects: Iterable[Object], draining: Collection[str] = ()) -> dict[str, HeadCordonView]:
    """What each head is told. `draining`: the heads that publishers are moved from now."""
    clusters = [item for item in objects if item["kind"] == "BrokerCluster"]
    open_heads = {
        head_name(item["metadata"]["name"]): address
        for item in clusters
        if not is_cordoned(item, draining) and (address := _address(item)) is not None
    }
    found = {}
    for item in clusters:
        name = head_name(item["metadata"]["name"])
        others = tuple(address for other, address in sorted(open_heads.items()) if other != name)
        found[name] = HeadCordonView(cordoned_epoch(item, draining), others)
    return found


def _address(cluster: Object) -> HeadAddress | None:
    """Where clients reach the head of a cluster; None if it is not ready, or on its way out."""
    head = cluster.get("status", {}).get("head", {})
    ends = head.get("endpoints")
    if not ends or not head.get("ready", False) or "deletionTimestamp" in cluster["metadata"]:
        return None
    if not {"data", "publicKey"} <= ends.keys():
        return None  # someone has changed the status; its next one is whole
    return HeadAddress(head_name(cluster["metadata"]["name"]), ends["data"], ends["publicKey"])
