"""Waiting for a session: a line for each progress, and an exit code for its result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli.backend import FleetReader
from plimsoll.cli.exit_codes import FAILED, OK, CommandError
from plimsoll.cli.output import objects_text, print_error, print_line, print_lines
from plimsoll.cli.staleness import StalenessNotes
from plimsoll.cli.tables import duration_text
from plimsoll.core.session.batch import OUTCOMES
from plimsoll.core.session.delivery_verdict import DELIVERY_FAULTS
from plimsoll.local.storage.object_store import Object, ObjectMissingError
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.mediator.session_objects import SESSION_KIND, is_over


def wait_for_session(place: FleetReader, name: str, form: str = "table", *, approved: bool = False) -> int:
    """Wait for the end of a session; 0 only if it succeeded, or a dry run has its plan.

    `approved`: it has just been, so a plan that waited until now is not its end.
    """
    began, last, notes = time.monotonic(), "", StalenessNotes(place)
    write = print_line if form == "table" else print_error
    for item in _session_states(place, name):
        text = progress_line(item)
        is_news, last = text != last, text
        notes.print_changes()
        if is_news:
            write(f"{time.monotonic() - began:6.1f} s  {text}")
        if is_over(item) and not (approved and _is_outdated(item)):
            break
        if not is_news and place.not_running_reason():
            raise CommandError(FAILED, f"{place.title} was stopped; {name} resumes when the fleet starts again")
    if form != "table":
        print_lines(objects_text([item], form, single=True))
    elif not succeeded(item):
        print_error(f"plimsoll: {name} did not succeed; see `plimsoll describe lbs {name}`")
    return OK if succeeded(item) else FAILED


def _session_states(place: FleetReader, name: str) -> Iterator[Object]:
    try:
        yield from place.watch_object(SESSION_KIND, name)
    except ObjectMissingError as error:
        raise CommandError(FAILED, f"session {name} was deleted") from error
    except StateWriteError as error:
        raise CommandError(FAILED, f"{error}; session {name} exists, see `plimsoll describe lbs {name}`") from error


def _is_outdated(item: Mapping[str, Any]) -> bool:
    return bool(item["status"]["observedGeneration"] != item["metadata"]["generation"])


def succeeded(item: Mapping[str, Any]) -> bool:
    """Whether the session ended as requested."""
    found = item.get("status", {}).get("conditions", [])
    return any(one["type"] == "Succeeded" and one["status"] == "True" for one in found)


def progress_line(item: Mapping[str, Any]) -> str:
    """How far a session has come."""
    status = item.get("status", {})
    phase = status.get("phase")
    if phase is None:
        return "Requested    the mediator has not seen it yet"
    progress = status.get("progress", {})
    parts = [f"{phase:<11}"]
    if progress.get("planned"):
        parts.append(f"{progress['moved']}/{progress['planned']} moved")
        others = {state: progress.get(state, 0) for state in OUTCOMES if state != "moved"}
        parts += [f"{number} {state}" for state, number in others.items() if number]
    if "etaSeconds" in progress:
        parts.append(f"{duration_text(progress['etaSeconds'])} left")
    is_plain = phase == "Succeeded" and progress.get("planned") and status.get("reason") != DELIVERY_FAULTS
    if status.get("message") and not is_plain:
        parts.append(f"{status['reason']}: {status['message']}")
    return "  ".join(parts)
