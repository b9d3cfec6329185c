"""Kubernetes objects as plain mappings: who owns them, whether they say what was asked for, and what names they have.

An object is rewritten only if it must be. Two things tell: the hash of what was asked for, written on the object when
it was; and whether the live object still holds all of it, since others may write, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.core.spec.quantities import Quantity
from plimsoll.operator.names import DESIRED_HASH, MANAGER, Object

Ref = tuple[str, str]
"""Kind and name."""


def ref(item: Mapping[str, Any]) -> Ref:
    """Kind and name of an object."""
    return str(item["kind"]), str(item["metadata"]["name"])


def uid(item: Mapping[str, Any]) -> str:
    """The identity of one life of an object; empty while nobody has stored it."""
    return str(item["metadata"].get("uid", ""))


def annotation(item: Mapping[str, Any], key: str) -> str:
    """The text of an annotation; empty without."""
    return str((item["metadata"].get("annotations") or {}).get(key, ""))


def is_leaving(item: Mapping[str, Any]) -> bool:
    """Whether somebody has asked for its deletion."""
    return "deletionTimestamp" in item["metadata"]


def digest(value: Any) -> str:
    """A short hash of a value that is written as JSON; the same for equal values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def owner(item: Mapping[str, Any]) -> Object:
    """The reference by which a child names its owner; the child goes when the owner has gone."""
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": item["metadata"]["name"],
        "uid": uid(item),
        "controller": True,
    }


def tolerations(lost_node_after_seconds: float) -> list[Object]:
    """How long a pod stays on a node that is not ready or does not answer."""
    return [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": round(lost_node_after_seconds),
        }
        for trouble in ("not-ready", "unreachable")
    ]


_POD_SPECS = {
    "StatefulSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}


def pulled_with(item: Object, secrets: Sequence[str]) -> Object:
    """An object whose pods, if it has any, pull their images with these Secrets. No broker is replaced for that."""
    if not secrets or item["kind"] not in _POD_SPECS:
        return item
    return _with_at(item, _POD_SPECS[item["kind"]], {"imagePullSecrets": [{"name": name} for name in secrets]})


def _with_at(item: Object, path: Sequence[str], more: Object) -> Object:
    if not path:
        return {**item, **more}
    return {**item, path[0]: _with_at(item[path[0]], path[1:], more)}


def asked_for(item: Object) -> Object:
    """A desired object with the hash of itself on it."""
    metadata = item["metadata"]
    annotations = {**metadata.get("annotations", {}), DESIRED_HASH: digest(item)}
    return {**item, "metadata": {**metadata, "annotations": annotations}}


def is_ours(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a live object of a wanted name may be written: it is the operator's, for the same owner."""
    labels = live["metadata"].get("labels") or {}
    if labels.get("app.kubernetes.io/managed-by") != MANAGER:
        return False
    owners = {each["uid"] for each in wanted["metadata"].get("ownerReferences", [])}
    controllers = {each["uid"] for each in live["metadata"].get("ownerReferences", []) if each.get("controller")}
    return not controllers or not owners or bool(owners & controllers)


def differs(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a live object has to be written to say what is wanted."""
    return annotation(live, DESIRED_HASH) != annotation(wanted, DESIRED_HASH) or not holds(live, wanted)


def holds(live: Any, wanted: Any) -> bool:
    """Whether everything wanted is in the live value; what is there besides was added by defaults or by others."""
    if live == wanted:
        return True
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            holds(live.get(key), value) for key, value in wanted.items() if not _is_empty(value) or key in live
        )
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not isinstance(live, Sequence) or isinstance(live, str):
            return False
        return all(each in live or any(holds(there, each) for there in live) for each in wanted)
    return _same_amount(live, wanted)


def by_ref(items: Iterable[Object]) -> dict[Ref, Object]:
    """Objects by kind and name."""
    return {ref(item): item for item in items}


_BEGINS_AMOUNTS = tuple("+-.0123456789")


def _is_empty(value: Any) -> bool:
    return value is None or value in ({}, [], "")


def _same_amount(live: Any, wanted: Any) -> bool:
    """The API server writes quantities in a form of its own: 1000m comes back as 1."""
    if not isinstance(live, str) and not isinstance(wanted, str):
        return False
    if not all(str(each).startswith(_BEGINS_AMOUNTS) for each in (live, wanted)):
        return False
    try:
        return Quantity.parse(str(live)).value == Quantity.parse(str(wanted)).value
    except ValueError:
        return False
