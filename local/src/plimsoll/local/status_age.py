"""How old the stored statuses of a fleet are: whether its supervisor runs, and when it last wrote.

The supervisor touches the lock file each second once all that it sees is stored. So readers notice a supervisor that is
frozen, or whose disk is full. Sessions are written by the mediator, and do not count here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import Object
from plimsoll.mediator import fleet_resources

OLD_SECONDS = 5.0
"""Statuses older than this are shown as old."""


def staleness_note(folder: FleetFolder) -> str:
    """A line for people if statuses may be out of date; else empty."""
    age = _age(folder)
    pid = folder.running_pid()
    if age is None or (pid and age <= OLD_SECONDS):
        return ""
    if not pid:
        return f"fleet {folder.fleet} does not run; its status is {age} s old: start it with `plimsoll up -f FILE`"
    return (
        f"the supervisor of fleet {folder.fleet} has written nothing for {age} s, so its status is that old: "
        f"free space if its disk is full, or continue it with `kill -CONT {pid}` if it was stopped"
    )


def with_current_status(folder: FleetFolder, items: Iterable[Object]) -> list[Object]:
    """Objects ready to display: what only a supervisor knows is unknown while none runs, or none writes."""
    age = _age(folder)
    if folder.running_pid() is None:
        return [_aged(fleet_resources.unsupervised(item), age) for item in items]
    if age is None or age <= OLD_SECONDS:
        return list(items)
    message = f"the supervisor has written nothing for {age} s"
    return [
        _aged(fleet_resources.with_unknown_conditions(item, "NotWritten", message), age)
        if item["kind"] in fleet_resources.FLEET_KINDS
        else item
        for item in items
    ]


def _age(folder: FleetFolder) -> int | None:
    written = folder.written_at()
    return None if written is None else max(0, int(time.time() - written))


def _aged(item: Object, age: int | None) -> Object:
    """An object whose status says how old it is, in `writtenSecondsAgo`."""
    return item if age is None or item["kind"] not in fleet_resources.FLEET_KINDS else fleet_resources.aged(item, age)
