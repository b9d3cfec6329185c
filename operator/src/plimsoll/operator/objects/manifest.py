"""Kubernetes objects as plain mappings: their names, their owners, and whether they are as desired.

An object is written only if it differs: its annotation has another hash of the desired object, or another client has
changed it so that it no longer contains all desired fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.core.spec import head_name
from plimsoll.core.spec.quantities import Quantity
from plimsoll.operator.names import DESIRED_HASH, MANAGER, Object

Ref = tuple[str, str]
"""Kind and name."""


def ref(item: Mapping[str, Any]) -> Ref:
    """Kind and name of an object."""
    return str(item["kind"]), str(item["metadata"]["name"])


def uid(item: Mapping[str, Any]) -> str:
    """The uid of an object; empty if it was never stored."""
    return str(item["metadata"].get("uid", ""))


def annotation(item: Mapping[str, Any], key: str) -> str:
    """The text of an annotation; empty if there is none."""
    return str((item["metadata"].get("annotations") or {}).get(key, ""))


def is_leaving(item: Mapping[str, Any]) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether a pod will never run again, as those of drivers that an operator for Spark keeps."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def digest(value: object) -> str:
    """A short hash of a value that is written as JSON; the same for equal values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def owner(item: Mapping[str, Any]) -> Object:
    """The owner reference of a child, which is garbage-collected after its owner."""
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": item["metadata"]["name"],
        "uid": uid(item),
        "controller": True,
    }


def tolerations(lost_node_after_seconds: float) -> list[Object]:
    """Tolerations that keep a pod on a lost node for this long."""
    return [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": round(lost_node_after_seconds),
        }
        for trouble in ("not-ready", "unreachable")
    ]


def pod_basics(user: int, grace_seconds: int, *, has_large_volume: bool) -> Object:
    """What every pod has: no account of its own, a user without rights, and its time to end.

    `has_large_volume`: the files of its volume are not looked through at each start.
    """
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            **({"fsGroupChangePolicy": "OnRootMismatch"} if has_large_volume else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def container_basics(ready_seconds: int) -> Object:
    """The probes of a container that serves `/livez` and `/readyz`, and the least privileges that it can run with.

    `ready_seconds`: how often it is asked whether it is ready.
    """
    live, ready = ({"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 5} for path in ("/livez", "/readyz"))
    return {
        "startupProbe": {**live, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {**ready, "periodSeconds": ready_seconds, "failureThreshold": 2},
        "livenessProbe": {**live, "periodSeconds": 10, "failureThreshold": 6},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


_POD_SPECS = {
    "Pod": ("spec",),
    "StatefulSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}


def used_objects(item: Object) -> Iterator[Ref]:
    """The Service of a StatefulSet, and what is mounted by the pods of an object, or by a pod."""
    spec: Any = item
    for part in _POD_SPECS.get(item.get("kind", ""), ()):
        spec = spec.get(part, {})
    if spec is item:
        return
    if item["kind"] == "StatefulSet":
        yield "Service", item["spec"]["serviceName"]
    for volume in spec.get("volumes", []):
        if "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"]
        elif "secret" in volume:
            yield "Secret", volume["secret"]["secretName"]


def pulled_with(item: Object, secrets: Sequence[str]) -> Object:
    """An object whose pods pull images with these Secrets; a change of them restarts no broker."""
    if not secrets or item["kind"] not in _POD_SPECS:
        return item
    return _with_at(item, _POD_SPECS[item["kind"]], {"imagePullSecrets": [{"name": name} for name in secrets]})


def _with_at(item: Object, path: Sequence[str], more: Object) -> Object:
    if not path:
        return {**item, **more}
    return {**item, path[0]: _with_at(item[path[0]], path[1:], more)}


def with_desired_hash(item: Object) -> Object:
    """A desired object, annotated with its own hash."""
    metadata = item["metadata"]
    annotations = {**metadata.get("annotations", {}), DESIRED_HASH: digest(item)}
    return {**item, "metadata": {**metadata, "annotations": annotations}}


def is_ours(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a stored object may be written: it has the same owner, whatever its labels are.

    The label decides of what has no controller, as an object that was restored from a backup.
    """
    owners = {each["uid"] for each in wanted["metadata"].get("ownerReferences", [])}
    controllers = {each["uid"] for each in live["metadata"].get("ownerReferences", []) if each.get("controller")}
    if owners and controllers:
        return bool(owners & controllers)
    return (live["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by") == MANAGER


def needs_write(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a stored object differs from the desired one."""
    return annotation(live, DESIRED_HASH) != annotation(wanted, DESIRED_HASH) or not is_subset(live, wanted)


def is_subset(live: object, wanted: object) -> bool:
    """Whether a stored value contains all of the desired one; anything else was added by defaults or other clients."""
    if live == wanted:
        return True
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            is_subset(live.get(key), value) for key, value in wanted.items() if not _is_empty(value) or key in live
        )
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not isinstance(live, Sequence) or isinstance(live, str):
            return False
        return all(each in live or any(is_subset(there, each) for there in live) for each in wanted)
    return _same_amount(live, wanted)


def by_ref(items: Iterable[Object]) -> dict[Ref, Object]:
    """Objects by kind and name."""
    return {ref(item): item for item in items}


def object_of_broker(items: Iterable[Object], broker: str, cluster: str = "") -> Object | None:
    """The object that stands for a broker in Events: an edge's own, a head's cluster, or else the fleet.

    `cluster`: the cluster of an edge that may have no object yet.
    """
    known = by_ref(items)
    edge = known.get(("EdgeBroker", broker))
    clusters = (item for (kind, name), item in known.items() if kind == "BrokerCluster" and head_name(name) == broker)
    found = edge or next(clusters, None) or known.get(("BrokerCluster", cluster))
    return found or next((item for (kind, _), item in known.items() if kind == "BrokerFleet"), None)


_BEGINS_AMOUNTS = tuple("+-.0123456789")


def _is_empty(value: Any) -> bool:
    return value is None or value in ({}, [], "")


def _same_amount(live: Any, wanted: Any) -> bool:
    """Whether two quantities are equal: the API server normalizes them, and 1000m comes back as 1."""
    if not isinstance(live, str) and not isinstance(wanted, str):
        return False
    if not all(str(each).startswith(_BEGINS_AMOUNTS) for each in (live, wanted)):
        return False
    try:
        return Quantity.parse(str(live)).value == Quantity.parse(str(wanted)).value
    except ValueError:  # text that begins like an amount, and is none
        return False
