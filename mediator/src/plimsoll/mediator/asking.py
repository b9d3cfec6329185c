"""What people ask of a session or an edge, as changes of its specification, wherever they are kept: pure functions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from plimsoll.core.spec import API_VERSION
from plimsoll.mediator.sessions import KIND, is_over

Object = dict[str, Any]


class NotAskableError(RuntimeError):
    """The object is there, but this cannot be asked of it now; the message says why, and what can."""


def session(name: str, spec: dict[str, Any]) -> Object:
    """The object that asks for a session."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def stopped(item: Object) -> dict[str, Any]:
    """A session that is to begin nothing more. Raises `NotAskableError` for one that is over."""
    if is_over(item):
        status = item["status"]
        name = item["metadata"]["name"]
        raise NotAskableError(f"session {name} is over: {status['phase']}, {status['message']}")
    return {**item["spec"], "stop": True}


def approved(item: Object, plan_hash: str = "") -> tuple[dict[str, Any], str]:
    """A session whose plan may run, and the plan's hash; a dry run is carried out.

    Raises:
        NotAskableError: it has no plan, another plan, or does not wait for approval.

    """
    name, status = item["metadata"]["name"], item.get("status", {})
    phase, found = status.get("phase", "Requested"), str(status.get("planHash", ""))
    if phase != "Planned":
        raise NotAskableError(f"session {name} does not wait for approval: it is {phase}")
    if plan_hash and not (len(plan_hash) >= 6 and found.startswith(plan_hash)):
        raise NotAskableError(f"the plan of session {name} is {found}, not {plan_hash}: look at it again")
    spec: dict[str, Any] = deepcopy(item["spec"])
    spec["mode"] = "Execute"
    spec["approval"] = {**spec.get("approval", {}), "planHash": found}
    return spec, found


def cordoned(item: Object, *, cordoned: bool) -> dict[str, Any] | None:
    """An edge that takes newcomers or not; None if it is so already."""
    if bool(item["spec"].get("cordoned", False)) == cordoned:
        return None
    spec = {key: value for key, value in item["spec"].items() if key != "cordoned"}
    return {**spec, "cordoned": True} if cordoned else spec
