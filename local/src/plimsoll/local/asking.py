"""Asking the mediator of a local fleet for something: each makes or changes an object, as applying YAML does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.core.spec import Document
from plimsoll.local import runtime
from plimsoll.local.home import FleetFolder
from plimsoll.local.store import ConflictError, Object, Store
from plimsoll.mediator import asking
from plimsoll.mediator.asking import NotAskableError as NotAskableError
from plimsoll.mediator.sessions import KIND

COMMAND = "<command>"


def begin(folder: FleetFolder, name: str, spec: Mapping[str, Any]) -> str:
    """Ask for a session; returns its object's name. Raises as `runtime.apply` does, and `ConflictError`."""
    with Store(folder.store) as store:
        known = {item["metadata"]["name"] for item in store.objects(KIND)[1]}
    if name in known:
        raise ConflictError(f"there is already a session {name}: choose another name")
    runtime.apply(folder, [Document(asking.session(name, dict(spec)), COMMAND)])
    return name


def stop(folder: FleetFolder, name: str) -> None:
    """Ask a session to begin nothing more; raises `MissingError`, and as `asking.stopped` does."""
    _amend(folder, name, asking.stopped)


def approve(folder: FleetFolder, name: str, plan_hash: str = "") -> str:
    """Approve the plan of a session, by its hash or as it is now. Returns the hash.

    Raises `MissingError`, and as `asking.approved` does.
    """
    found = ""

    def change(item: Object) -> dict[str, Any]:
        nonlocal found
        spec, found = asking.approved(item, plan_hash)
        return spec

    _amend(folder, name, change)
    return found


def _amend(folder: FleetFolder, name: str, change: Callable[[Object], dict[str, Any]]) -> None:
    with Store(folder.store) as store, store.transaction():
        item = store.get(KIND, name)
        store.update({**item, "spec": change(item)})


def cordon(folder: FleetFolder, edge: str, *, cordoned: bool) -> bool:
    """Let an edge take newcomers or not; whether that changed anything. Raises `MissingError`."""
    with Store(folder.store) as store, store.transaction():
        item = store.get("EdgeBroker", edge)
        spec = asking.cordoned(item, cordoned=cordoned)
        if spec is not None:
            store.update({**item, "spec": spec})
        return spec is not None
