"""Commands of users on sessions and edges, as edits of their specs: pure functions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from plimsoll.core.spec import API_VERSION
from plimsoll.mediator import head_cordons
from plimsoll.mediator.session_objects import SESSION_KIND, is_over

Object = dict[str, Any]


class EditRefusedError(RuntimeError):
    """The object exists, but cannot be edited this way now; the message says why, and what to do instead."""


def session_object(name: str, spec: dict[str, Any]) -> Object:
    """The object of a new session."""
    return {"apiVersion": API_VERSION, "kind": SESSION_KIND, "metadata": {"name": name}, "spec": spec}


def stopped_spec(item: Object) -> dict[str, Any]:
    """Stop a session after its current batch. Raises `EditRefusedError` if it is over."""
    if is_over(item):
        status = item["status"]
        name = item["metadata"]["name"]
        raise EditRefusedError(f"session {name} is over: {status['phase']}, {status['message']}")
    return {**item["spec"], "stop": True}


def approved_spec(item: Object, plan_hash: str = "") -> tuple[dict[str, Any], str]:
    """Approve a session's plan; returns the object and the plan's hash. A dry run is then executed.

    Raises:
        EditRefusedError: it has no plan, another plan, or does not wait for approval.

    """
    name, status = item["metadata"]["name"], item.get("status", {})
    phase, found = status.get("phase", "Requested"), str(status.get("planHash", ""))
    if phase != "Planned":
        raise EditRefusedError(f"session {name} does not wait for approval: it is {phase}")
    if plan_hash and not (len(plan_hash) >= 6 and found.startswith(plan_hash)):
        raise EditRefusedError(f"the plan of session {name} is {found}, not {plan_hash}: look at it again")
    spec: dict[str, Any] = deepcopy(item["spec"])
    spec["mode"] = "Execute"
    spec["approval"] = {**spec.get("approval", {}), "planHash": found}
    return spec, found


def cordoned_spec(item: Object, *, cordoned: bool) -> dict[str, Any] | None:
    """Cordon or uncordon an edge; None if it is so already."""
    if bool(item["spec"].get("cordoned", False)) == cordoned:
        return None
    spec = {key: value for key, value in item["spec"].items() if key != "cordoned"}
    return {**spec, "cordoned": True} if cordoned else spec


def cordoned_head_spec(cluster: Object, *, cordoned: bool) -> Object | None:
    """Cordon or uncordon the head of a cluster, for as long as it runs; None if it is so already.

    Raises:
        EditRefusedError: the head has not reported its epoch, by which it is cordoned.

    """
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    if head_cordons.is_cordoned(cluster) == cordoned:
        return None
    head = {key: value for key, value in spec["head"].items() if key != "cordonedEpoch"}
    if not cordoned:
        return {**spec, "head": head}
    if not (epoch := head_cordons.head_epoch(cluster)):
        raise EditRefusedError(f"the head of {name} has not reported yet: try again once it is ready")
    return {**spec, "head": {**head, "cordonedEpoch": epoch}}
