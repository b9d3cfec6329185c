"""Starting, changing and stopping local fleets: the functions behind the command line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING

from plimsoll.core.printable import printable
from plimsoll.core.spec import InvalidResourcesError, Resource, ResourceProblem, Resources, SourceDocument, parse
from plimsoll.core.spec.kinds import AnySpec
from plimsoll.core.spec.parser import flattened
from plimsoll.core.spec.validation.updates import refused_changes
from plimsoll.feeds.checks import check_feeds
from plimsoll.local import ports
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock
from plimsoll.local.storage.object_store import Object, ObjectMissingError, ObjectStore
from plimsoll.local.storage.state_files import file_faults, is_write_fault
from plimsoll.local.supervision.broker_reconciler import FleetStartError
from plimsoll.local.supervision.child_process import BrokerCommand, broker_command
from plimsoll.local.supervision.collector_processes import TELEMETRY_FOLDER
from plimsoll.local.supervision.spark_process import kill_leftovers
from plimsoll.local.supervision.supervisor import Supervisor
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import evacuation, fleet_resources
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION

if TYPE_CHECKING:
    from plimsoll.local.supervision.metrics_page import MetricsPage


class FleetChangeRefusedError(InvalidResourcesError):
    """The resources are valid, but a running fleet cannot be changed in this way."""


Announce = Callable[[str], None]
POLL_SECONDS = 0.1
BUSY = 4
"""The exit code of a supervisor that found its fleet running; that of `plimsoll` for a conflict."""


def up(resources: Resources, announce: Announce, command: BrokerCommand = broker_command, metrics: str = "") -> None:
    """Run a fleet in this process until SIGINT or SIGTERM. `metrics`: tcp://HOST:PORT of its metrics; empty: none.

    Raises:
        FleetBusyError: another process runs it.
        InvalidResourcesError: a port or address cannot be used.
        FleetStartError: a broker did not come up; nothing is left running.
        StateWriteError: the fleet's folder cannot be written; nothing is left running.

    """
    check_feeds(resources)
    folder = FleetFolder.of(resources.fleet.name)
    _check_path(folder)
    folder.make()
    with FleetLock(folder):
        ports.check_ports(resources)
        prepare_store(folder, resources)
        supervise(folder, announce, command, metrics)


def up_detached(resources: Resources, announce: Announce, metrics: str = "") -> int:
    """Run a fleet in a process of its own, and return its process id when the fleet is ready; raises as `up` does."""
    check_feeds(resources)
    if metrics:
        _metrics_page()  # what it needs is missing here, or nowhere
    folder = FleetFolder.of(resources.fleet.name)
    _check_path(folder)
    folder.make()
    with FleetLock(folder):
        ports.check_ports(resources)
        prepare_store(folder, resources)
    log = folder.path / "supervisor.log"
    with file_faults(log):
        opened = log.open("wb")
    with opened as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll.local", str(folder.path), metrics],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while process.poll() is None:
        if _is_ready(folder, process.pid):
            announce(f"fleet {folder.fleet} is ready (process {process.pid}, log {log})")
            process.returncode = 0  # detached: this process does not wait for its exit
            return process.pid
        time.sleep(POLL_SECONDS)
    words = log.read_text(errors="replace").strip().splitlines()
    cause = words[-1] if words else f"the supervisor ended with code {process.returncode}"
    if process.returncode == BUSY:
        # Another `up` took the lock after this one had let it go: its fleet runs, and nothing was stopped.
        raise FleetBusyError(cause)
    raise FleetStartError(cause)


def _check_path(folder: FleetFolder) -> None:
    """Raises FleetStartError for a path that this process could not write into configurations."""
    try:
        str(folder.path).encode()
    except UnicodeEncodeError:
        raise FleetStartError(
            f"{printable(folder.path)} has characters that this locale does not know: "
            "use one with UTF-8, such as LC_ALL=C.UTF-8, or set PYTHONUTF8=1"
        ) from None


def prepare_store(folder: FleetFolder, resources: Resources) -> None:
    """Make the store hold exactly these objects; those of an earlier run keep their history.

    Sessions stay as history, and so do cordoned edges that their clusters still create.
    """
    wanted = {(item.kind, item.name): item for item in resources}
    with ObjectStore(folder.store) as store, store.transaction():
        for item in store.objects()[1]:
            key = (item["kind"], item["metadata"]["name"])
            if key not in wanted and _is_retained(item):
                continue
            if key not in wanted or "deletionTimestamp" in item["metadata"]:
                store.delete(*key)
        for resource in wanted.values():
            store.apply(resource.mapping(), rfc3339_now())


def _is_retained(item: Object) -> bool:
    if item["kind"] == SESSION:
        return not evacuation.is_stale(item)
    cordoned = item["kind"] == "EdgeBroker" and item["spec"].get("cordoned", False)
    return cordoned and fleet_resources.owning_cluster(item) is not None and "deletionTimestamp" not in item["metadata"]


def supervise(
    folder: FleetFolder, announce: Announce, command: BrokerCommand = broker_command, metrics: str = ""
) -> None:
    """Run the fleet of a store; the caller holds the lock, and this is the main thread. `metrics`: as in `up`."""
    with ObjectStore(folder.store) as store, contextlib.ExitStack() as opened:
        page = opened.enter_context(contextlib.closing(_metrics_page()(metrics))) if metrics else None
        supervisor = Supervisor(folder, store, os.getpid(), command, _tolerant(announce), page)

        def stop(number: int, frame: FrameType | None) -> None:
            supervisor.stop()

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            supervisor.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _metrics_page() -> type[MetricsPage]:
    """A fleet without this page needs no prometheus-client."""
    from plimsoll.local.supervision.metrics_page import MetricsPage

    return MetricsPage


def _tolerant(announce: Announce) -> Announce:
    """Lines for people, as far as their file can be written: a fleet does not end because its log is on a full disk."""

    def write(line: str) -> None:
        try:
            announce(line)
        except OSError as error:
            if not is_write_fault(error):
                raise

    return write


def down(folder: FleetFolder, seconds: float = 60.0) -> bool:
    """Stop a fleet and wait until all its processes have exited; False if it did not run. Raises TimeoutError."""
    pid = folder.running_pid()
    if not pid:
        kill_leftovers(folder.path / TELEMETRY_FOLDER)  # of a supervisor that was killed
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while folder.running_pid() == pid:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} still runs after {seconds:g} s; its brokers may be evacuating")
        time.sleep(POLL_SECONDS)
    return True


def apply(folder: FleetFolder, documents: Iterable[SourceDocument]) -> list[tuple[str, Resource[AnySpec]]]:
    """Store changed objects of a fleet, all or none; returns `created`, `configured` or `unchanged` for each.

    Raises:
        InvalidResourcesError: the objects are not valid together with the fleet's.
        FleetChangeRefusedError: they cannot be applied while it runs.
        StateWriteError: they cannot be stored.

    """
    with ObjectStore(folder.store) as store, store.transaction():
        return apply_to_store(store, folder, documents)


def apply_to_store(
    store: ObjectStore, folder: FleetFolder, documents: Iterable[SourceDocument]
) -> list[tuple[str, Resource[AnySpec]]]:
    """What `apply` does, in the transaction of the caller."""
    given = list(flattened(documents))
    objects = [
        item for item in store.objects(*fleet_resources.FLEET_KINDS)[1] if "deletionTimestamp" not in item["metadata"]
    ]
    named = {_key(document) for document in given}
    kept = [SourceDocument(item, "<store>") for item in objects if _key(SourceDocument(item)) not in named]
    wanted = parse([*given, *kept])
    check_feeds(wanted)
    if folder.running_pid():
        _raise_refusals(refused_changes(fleet_resources.fleet_resources(objects), wanted))
    chosen = [item for item in wanted if (item.kind, item.name) in named]
    stored = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    new = [fleet_resources.with_head_cordon_of(item.mapping(), stored.get((item.kind, item.name))) for item in chosen]
    return [(store.apply(mapping, rfc3339_now())[0], item) for mapping, item in zip(new, chosen, strict=True)]


def delete(folder: FleetFolder, kind: str, name: str) -> None:
    """Delete an object of a fleet, after its brokers have left.

    Raises:
        ObjectMissingError: there is none.
        InvalidResourcesError: other objects need it.
        FleetChangeRefusedError: users may not delete it, or not while the fleet runs.
        StateWriteError: its deletion cannot be stored.

    """
    with ObjectStore(folder.store) as store, store.transaction():
        item = store.get(kind, name)
        cluster = fleet_resources.owning_cluster(item)
        if cluster is not None:
            found = f"this edge was made by BrokerCluster/{cluster}"
            raise FleetChangeRefusedError([_stored_problem(item, found, "Change that cluster's `edges` and apply it.")])
        if kind == "BrokerFleet":
            found = "a fleet is not deleted as an object"
            raise FleetChangeRefusedError([_stored_problem(item, found, f"Stop it with `plimsoll down {name}`.")])
        if kind == SESSION and folder.running_pid() is not None:
            store.mark_deleted(kind, name, rfc3339_now())
            return
        objects = [
            other
            for other in store.objects(*fleet_resources.FLEET_KINDS)[1]
            if "deletionTimestamp" not in other["metadata"]
        ]
        rest = [other for other in objects if (other["kind"], other["metadata"]["name"]) != (kind, name)]
        wanted = fleet_resources.fleet_resources(rest)
        running = folder.running_pid() is not None
        if running:
            _raise_refusals(refused_changes(fleet_resources.fleet_resources(objects), wanted))
        if running and kind in ("EdgeBroker", "BrokerCluster"):
            store.mark_deleted(kind, name, rfc3339_now())
        else:
            store.delete(kind, name)


def _is_ready(folder: FleetFolder, pid: int) -> bool:
    with ObjectStore(folder.store) as store:
        try:
            status = store.get("BrokerFleet", folder.fleet).get("status", {})
        except ObjectMissingError:  # the supervisor has not stored the fleet yet
            return False
    told: Object = next((item for item in status.get("conditions", []) if item["type"] == "Ready"), {})
    # A fleet may get its clusters later; but a supervisor that fails at its start has neither brokers nor a mediator.
    is_empty = told.get("reason") == "NoBrokers" and "pid" in status.get("mediator", {})
    ready = told.get("status") == "True" or is_empty
    return ready and status.get("supervisor", {}).get("pid") == pid


def _key(document: SourceDocument) -> tuple[str, str]:
    content = document.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        return "", ""
    return str(content.get("kind")), str(content["metadata"].get("name"))


def _stored_problem(item: Object, found: str, remedy: str) -> ResourceProblem:
    return ResourceProblem("<store>", None, f"{item['kind']}/{item['metadata']['name']}", (), found, remedy)


def _raise_refusals(problems: Iterable[ResourceProblem]) -> None:
    found = list(problems)
    if found:
        raise FleetChangeRefusedError(found)
