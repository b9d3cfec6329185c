"""The sessions that moved bundles: which, when, by Transfer or by Lookup, and what asked for it.

Everything comes from the objects in the fleet's store. A session that the planned one has made for a pair of edges is a
part of it, and does not count apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.core.session import decode
from plimsoll.demo.analysis.bundle_pauses import MovedBundles, Waits

Unloading = Literal["Transfer", "Lookup"]


@dataclass(frozen=True, slots=True)
class BundleSession:
    """One session. Times in seconds of the traffic; `bundles`: where each went; `reasons`: why they moved.

    `is_shedding`: an edge was above the average; otherwise a split or a hand asked for it, or units were late.
    """

    name: str
    at_seconds: float
    end_seconds: float | None
    by: Unloading
    is_shedding: bool
    bundles: Mapping[str, str]
    reasons: Sequence[str]
    moved: int
    state: str
    message: str

    def plain(self) -> dict[str, Any]:
        """The entry of the report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def bundle_sessions(objects: Iterable[Mapping[str, Any]], began_at: float) -> list[BundleSession]:
    """The sessions with a plan, in the order of their requests. `began_at`: of the traffic, Unix."""
    found = []
    for item in objects:
        record = item.get("status", {}).get("record")
        session = None if record is None else decode(record)
        if session is None or session.parent or session.plan is None:
            continue
        plan = session.plan
        ended = None if session.ended_at is None else round(session.ended_at - began_at, 3)
        found.append(
            BundleSession(
                session.name, round(session.requested_at - began_at, 3), ended,
                "Lookup" if plan.handover == "lookup" else "Transfer", plan.stop.startswith("Shed"),
                dict(plan.bundles), [move.reason for move in plan.moves], session.counts()["moved"], session.phase,
                session.message,
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: (each.at_seconds, each.name))


def moves_before(sessions: Iterable[BundleSession], until: float, start: float) -> dict[str, MovedBundles]:
    """What sessions moved that ended before `until`, on the clock of the journals; `start`: of the traffic."""
    return {
        each.name: MovedBundles(tuple(each.bundles), start + each.at_seconds, start + each.end_seconds)
        for each in sessions
        if each.moved and each.end_seconds is not None and each.end_seconds < until
    }


def longest_wait(sessions: Iterable[BundleSession], waits: Mapping[str, Waits], by: Unloading) -> float | None:
    """The longest wait in all sessions that moved bundles in this way; None without one."""
    each = [waits[one.name].longest_seconds for one in sessions if one.by == by and one.name in waits]
    return max((seconds for seconds in each if seconds is not None), default=None)
