"""Requests to the mediator of a local fleet: each creates or edits an object, as applying YAML does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.core.spec import SourceDocument, head_name
from plimsoll.local import runtime
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import Object, ObjectConflictError, ObjectStore
from plimsoll.mediator import spec_edits
from plimsoll.mediator.session_objects import SESSION_KIND

COMMAND_LINE_SOURCE = "<command>"


def create_session(folder: FleetFolder, name: str, spec: Mapping[str, Any], *, cordon: str = "") -> bool:
    """Create a session, and cordon an edge or a head with it if one is named: both or neither.

    Returns whether the broker was not cordoned before. Raises as `runtime.apply` does, and `ObjectConflictError`.
    """
    session = SourceDocument(spec_edits.session_object(name, dict(spec)), COMMAND_LINE_SOURCE)
    with ObjectStore(folder.store) as store, store.transaction():
        if name in {item["metadata"]["name"] for item in store.objects(SESSION_KIND)[1]}:
            raise ObjectConflictError(f"there is already a session {name}: choose another name")
        changed = bool(cordon) and _set_cordoned(store, cordon, cordoned=True)
        runtime.apply_to_store(store, folder, [session])
    return changed


def stop_session(folder: FleetFolder, name: str) -> None:
    """Stop a session after its current batch; raises `ObjectMissingError`, and as `spec_edits.stopped_spec` does."""
    _update_session(folder, name, spec_edits.stopped_spec)


def approve_session(folder: FleetFolder, name: str, plan_hash: str = "") -> str:
    """Approve the plan of a session, by its hash or as it is now. Returns the hash.

    Raises `ObjectMissingError`, and as `spec_edits.approved_spec` does.
    """
    found = ""

    def change(item: Object) -> dict[str, Any]:
        nonlocal found
        spec, found = spec_edits.approved_spec(item, plan_hash)
        return spec

    _update_session(folder, name, change)
    return found


def _update_session(folder: FleetFolder, name: str, change: Callable[[Object], dict[str, Any]]) -> None:
    with ObjectStore(folder.store) as store, store.transaction():
        item = store.get(SESSION_KIND, name)
        store.update({**item, "spec": change(item)})


def set_cordoned(folder: FleetFolder, broker: str, *, cordoned: bool) -> bool:
    """Set whether an edge or a head takes newcomers; whether that changed anything.

    Raises `ObjectMissingError`, and for a head as `spec_edits.cordoned_head_spec` does.
    """
    with ObjectStore(folder.store) as store, store.transaction():
        return _set_cordoned(store, broker, cordoned=cordoned)


def _set_cordoned(store: ObjectStore, broker: str, *, cordoned: bool) -> bool:
    clusters = {head_name(item["metadata"]["name"]): item for item in store.objects("BrokerCluster")[1]}
    if (item := clusters.get(broker)) is not None:
        spec = spec_edits.cordoned_head_spec(item, cordoned=cordoned)
    else:
        item = store.get("EdgeBroker", broker)
        spec = spec_edits.cordoned_spec(item, cordoned=cordoned)
    if spec is not None:
        store.update({**item, "spec": spec})
    return spec is not None
