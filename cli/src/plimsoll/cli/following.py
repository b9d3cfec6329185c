"""Waiting for a session: a line whenever it has come further, and an exit code that says how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli.codes import FAILED, OK, CommandError
from plimsoll.cli.columns import duration
from plimsoll.cli.output import complain, objects_text, say
from plimsoll.cli.places import Place
from plimsoll.core.session.record import OUTCOMES
from plimsoll.local.store import MissingError, Object
from plimsoll.mediator.sessions import KIND, is_over


def follow(place: Place, name: str, form: str = "table", *, approved: bool = False) -> int:
    """Wait for the end of a session; 0 only if it succeeded, or a dry run has its plan.

    `approved`: it has just been, so a plan that waited until now is not its end.
    """
    began, last = time.monotonic(), ""
    tell = say if form == "table" else complain
    for item in _states(place, name):
        text = line(item)
        is_news, last = text != last, text
        if is_news:
            tell(f"{time.monotonic() - began:6.1f} s  {text}")
        if is_over(item) and not (approved and _is_old(item)):
            break
        if not is_news and place.why_not_running():
            raise CommandError(FAILED, f"{place.title} was stopped; {name} goes on when it is started again")
    if form != "table":
        say(objects_text([item], form, single=True))
    elif not succeeded(item):
        complain(f"plimsoll: {name} has not succeeded; `plimsoll describe lbs {name}` says more")
    return OK if succeeded(item) else FAILED


def _states(place: Place, name: str) -> Iterator[Object]:
    try:
        yield from place.states(KIND, name)
    except MissingError as error:
        raise CommandError(FAILED, f"session {name} was deleted") from error


def _is_old(item: Mapping[str, Any]) -> bool:
    return bool(item["status"]["observedGeneration"] != item["metadata"]["generation"])


def succeeded(item: Mapping[str, Any]) -> bool:
    """Whether the session's end is what was asked for."""
    found = item.get("status", {}).get("conditions", [])
    return any(one["type"] == "Succeeded" and one["status"] == "True" for one in found)


def line(item: Mapping[str, Any]) -> str:
    """How far a session has come."""
    status = item.get("status", {})
    phase = status.get("phase")
    if phase is None:
        return "Requested    the mediator has not seen it yet"
    progress = status.get("progress", {})
    parts = [f"{phase:<11}"]
    if progress.get("planned"):
        parts.append(f"{progress['moved']}/{progress['planned']} moved")
        parts += [f"{progress[state]} {state}" for state in OUTCOMES if state != "moved" and progress[state]]
    if "etaSeconds" in progress:
        parts.append(f"{duration(progress['etaSeconds'])} left")
    if status.get("message") and not (phase == "Succeeded" and progress.get("planned")):
        parts.append(f"{status['reason']}: {status['message']}")
    return "  ".join(parts)
