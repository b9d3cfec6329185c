"""Starting, changing and stopping local fleets: what the command line does, as functions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType

from plimsoll.core.spec import Document, InvalidResourcesError, Problem, Resource, Resources, parse
from plimsoll.core.spec.changing import refusals
from plimsoll.core.spec.kinds import AnySpec
from plimsoll.core.spec.parsing import flat
from plimsoll.local import ports
from plimsoll.local.home import FleetFolder, Lock
from plimsoll.local.processes import Command, broker_command
from plimsoll.local.store import MissingError, Object, Store
from plimsoll.local.supervisor import StartError, Supervisor
from plimsoll.local.times import now_text
from plimsoll.mediator import desired, evacuation
from plimsoll.mediator.sessions import KIND as SESSION


class RefusedError(InvalidResourcesError):
    """The resources are valid, but a running fleet cannot be changed in this way."""


Announce = Callable[[str], None]
POLL_SECONDS = 0.1


def up(resources: Resources, announce: Announce, command: Command = broker_command) -> None:
    """Run a fleet in this process until SIGINT or SIGTERM.

    Raises:
        FleetBusyError: another process runs it.
        InvalidResourcesError: a port or address cannot be used.
        StartError: a broker did not come up; nothing is left running.

    """
    folder = FleetFolder.of(resources.fleet.name)
    folder.make()
    with Lock(folder):
        ports.check(resources)
        prepare(folder, resources)
        supervise(folder, announce, command)


def up_detached(resources: Resources, announce: Announce) -> int:
    """Run a fleet in a process of its own, and return its process id when the fleet is ready; raises as `up` does."""
    folder = FleetFolder.of(resources.fleet.name)
    folder.make()
    with Lock(folder):
        ports.check(resources)
        prepare(folder, resources)
    log = folder.path / "supervisor.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll.local", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while process.poll() is None:
        if _is_ready(folder, process.pid):
            announce(f"fleet {folder.fleet} is ready (process {process.pid}, log {log})")
            process.returncode = 0  # it is left to itself: nobody here waits for its end
            return process.pid
        time.sleep(POLL_SECONDS)
    words = log.read_text(errors="replace").strip().splitlines()
    raise StartError(words[-1] if words else f"the supervisor ended with code {process.returncode}")


def prepare(folder: FleetFolder, resources: Resources) -> None:
    """Make the store hold exactly these objects; those of an earlier run keep their history.

    Sessions stay, as what was done; so do edges that somebody has cordoned, if their clusters still make them.
    """
    wanted = {(item.kind, item.name): item for item in resources}
    with Store(folder.store) as store, store.transaction():
        for item in store.objects()[1]:
            key = (item["kind"], item["metadata"]["name"])
            if key not in wanted and _stays(item):
                continue
            if key not in wanted or "deletionTimestamp" in item["metadata"]:
                store.delete(*key)
        for resource in wanted.values():
            store.apply(resource.mapping(), now_text())


def _stays(item: Object) -> bool:
    if item["kind"] == SESSION:
        return not evacuation.is_stale(item)
    cordoned = item["kind"] == "EdgeBroker" and item["spec"].get("cordoned", False)
    return cordoned and desired.made_by_cluster(item) is not None and "deletionTimestamp" not in item["metadata"]


def supervise(folder: FleetFolder, announce: Announce, command: Command = broker_command) -> None:
    """Run what a fleet's store asks for; the caller holds the lock, and this is the main thread."""
    with Store(folder.store) as store:
        supervisor = Supervisor(folder, store, os.getpid(), command, announce)

        def stop(number: int, frame: FrameType | None) -> None:
            supervisor.stop()

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            supervisor.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def down(folder: FleetFolder, seconds: float = 60.0) -> bool:
    """Stop a fleet and wait until nothing of it runs; False if it did not run. Raises TimeoutError."""
    pid = folder.running_pid()
    if not pid:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while folder.running_pid() == pid:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} still runs after {seconds:g} s; its brokers may be evacuating")
        time.sleep(POLL_SECONDS)
    return True


def apply(folder: FleetFolder, documents: Iterable[Document]) -> list[tuple[str, Resource[AnySpec]]]:
    """Store changed objects of a fleet, all or none; says for each `created`, `configured` or `unchanged`.

    Raises:
        InvalidResourcesError: the objects are not valid together with the fleet's.
        RefusedError: they cannot be had while it runs.

    """
    given = list(flat(documents))
    with Store(folder.store) as store, store.transaction():
        objects = [item for item in store.objects(*desired.KINDS)[1] if "deletionTimestamp" not in item["metadata"]]
        named = {_key(document) for document in given}
        kept = [Document(item, "<store>") for item in objects if _key(Document(item)) not in named]
        wanted = parse([*given, *kept])
        if folder.running_pid():
            _refuse(refusals(desired.resources(objects), wanted))
        chosen = [item for item in wanted if (item.kind, item.name) in named]
        return [(store.apply(item.mapping(), now_text())[0], item) for item in chosen]


def delete(folder: FleetFolder, kind: str, name: str) -> None:
    """Delete an object of a fleet; what runs for it leaves first.

    Raises:
        MissingError: there is none.
        InvalidResourcesError: others need it.
        RefusedError: it is not for users to delete, or not while the fleet runs.

    """
    with Store(folder.store) as store, store.transaction():
        item = store.get(kind, name)
        cluster = desired.made_by_cluster(item)
        if cluster is not None:
            found = f"this edge was made by BrokerCluster/{cluster}"
            raise RefusedError([_stored(item, found, "Change that cluster's `edges` and apply it.")])
        if kind == "BrokerFleet":
            found = "a fleet is not deleted as an object"
            raise RefusedError([_stored(item, found, f"Stop it with `plimsoll down {name}`.")])
        if kind == SESSION and folder.running_pid() is not None:
            store.mark_deleted(kind, name, now_text())
            return
        objects = [other for other in store.objects(*desired.KINDS)[1] if "deletionTimestamp" not in other["metadata"]]
        rest = [other for other in objects if (other["kind"], other["metadata"]["name"]) != (kind, name)]
        wanted = desired.resources(rest)
        running = folder.running_pid() is not None
        if running:
            _refuse(refusals(desired.resources(objects), wanted))
        if running and kind in ("EdgeBroker", "BrokerCluster"):
            store.mark_deleted(kind, name, now_text())
        else:
            store.delete(kind, name)


def shown(folder: FleetFolder, items: Iterable[Object]) -> list[Object]:
    """Objects as they may be shown: what no supervisor observes is unknown."""
    running = folder.running_pid() is not None
    return [item if running else desired.unsupervised(item) for item in items]


def _is_ready(folder: FleetFolder, pid: int) -> bool:
    with Store(folder.store) as store:
        try:
            status = store.get("BrokerFleet", folder.fleet).get("status", {})
        except MissingError:
            return False
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", []))
    return ready and status.get("supervisor", {}).get("pid") == pid


def _key(document: Document) -> tuple[str, str]:
    content = document.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        return "", ""
    return str(content.get("kind")), str(content["metadata"].get("name"))


def _stored(item: Object, found: str, remedy: str) -> Problem:
    return Problem("<store>", None, f"{item['kind']}/{item['metadata']['name']}", (), found, remedy)


def _refuse(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise RefusedError(found)
