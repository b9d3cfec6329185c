"""Asking the mediator for something, as functions: each makes or changes an object, as applying YAML does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from plimsoll.core.spec import API_VERSION, Document
from plimsoll.local import runtime
from plimsoll.local.home import FleetFolder
from plimsoll.local.store import ConflictError, Object, Store
from plimsoll.mediator.sessions import KIND, is_over

COMMAND = "<command>"


class NotAskableError(RuntimeError):
    """The object is there, but this cannot be asked of it now; the message says why, and what can."""


def begin(folder: FleetFolder, name: str, spec: Mapping[str, Any]) -> str:
    """Ask for a session; returns its object's name. Raises as `runtime.apply` does, and `ConflictError`."""
    with Store(folder.store) as store:
        known = {item["metadata"]["name"] for item in store.objects(KIND)[1]}
    if name in known:
        raise ConflictError(f"there is already a session {name}: choose another name")
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": dict(spec)}
    runtime.apply(folder, [Document(document, COMMAND)])
    return name


def stop(folder: FleetFolder, name: str) -> None:
    """Ask a session to begin nothing more.

    Raises:
        MissingError: there is none.
        NotAskableError: it is over.

    """

    def change(item: Object) -> dict[str, Any]:
        if is_over(item):
            status = item["status"]
            raise NotAskableError(f"session {name} is over: {status['phase']}, {status['message']}")
        return {**item["spec"], "stop": True}

    _amend(folder, name, change)


def approve(folder: FleetFolder, name: str, plan_hash: str = "") -> str:
    """Approve the plan of a session, by its hash or as it is now; a dry run is carried out. Returns the hash.

    Raises:
        MissingError: there is none.
        NotAskableError: it has no plan, another plan, or does not wait for approval.

    """
    approved = ""

    def change(item: Object) -> dict[str, Any]:
        nonlocal approved
        approved = _approvable(name, item, plan_hash)
        spec: dict[str, Any] = deepcopy(item["spec"])
        spec["mode"] = "Execute"
        spec["approval"] = {**spec.get("approval", {}), "planHash": approved}
        return spec

    _amend(folder, name, change)
    return approved


def _approvable(name: str, item: Object, plan_hash: str) -> str:
    status = item.get("status", {})
    phase, found = status.get("phase", "Requested"), status.get("planHash", "")
    if phase != "Planned":
        raise NotAskableError(f"session {name} does not wait for approval: it is {phase}")
    if plan_hash and not (len(plan_hash) >= 6 and found.startswith(plan_hash)):
        raise NotAskableError(f"the plan of session {name} is {found}, not {plan_hash}: look at it again")
    return str(found)


def _amend(folder: FleetFolder, name: str, change: Callable[[Object], dict[str, Any]]) -> None:
    with Store(folder.store) as store, store.transaction():
        item = store.get(KIND, name)
        store.update({**item, "spec": change(item)})


def cordon(folder: FleetFolder, edge: str, *, cordoned: bool) -> bool:
    """Let an edge take newcomers or not; whether that changed anything. Raises `MissingError`."""
    with Store(folder.store) as store, store.transaction():
        item = store.get("EdgeBroker", edge)
        if bool(item["spec"].get("cordoned", False)) == cordoned:
            return False
        spec = {key: value for key, value in item["spec"].items() if key != "cordoned"}
        store.update({**item, "spec": {**spec, "cordoned": True} if cordoned else spec})
        return True
