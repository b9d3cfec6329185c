"""Which hand-overs a head begins, and which of their members can take part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Protocol

from plimsoll.core.head.handover.outcomes import ABORTING, OutcomeHistory
from plimsoll.core.head.handover.session import Handover, HandoverMember
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import AWAY, LEFT, departure

SESSIONS_AT_MOST = 1024
"""Open sessions per head; more are refused."""

MEMBERS_AT_MOST = 1024
"""Members per session."""

MEMBERS_IN_ALL = 65_536
"""Members of all open sessions together."""


class AdmissionContext(Protocol):
    """What admission needs of a head."""

    name: str
    owners: OwnershipTable


class ReachableEdges(Protocol):
    """Edges here, and heads that can be reached."""

    def has_edge(self, edge: str) -> bool: ...
    def reaches(self, head: str) -> bool: ...
    def edge_of(self, owner: OwnerEntry) -> str: ...


class SessionAdmission:
    """`is_busy`: whether a subscriber is in a session that is not done; `is_leaving`: and has been cut in it."""

    def __init__(
        self,
        host: AdmissionContext,
        links: ReachableEdges,
        sessions: Mapping[str, Handover],
        archive: OutcomeHistory,
        is_busy: Callable[[str], bool],
        is_leaving: Callable[[str], bool],
    ) -> None:
        self.host, self.links, self.sessions, self.archive = host, links, sessions, archive
        self.is_busy, self.is_leaving = is_busy, is_leaving

    def forgotten(self, session_id: str) -> str:
        """Why a session is refused that may have ended here; an empty string if it cannot have."""
        if self.archive.get(session_id) is None and self.archive.has_forgotten(session_id):
            return "forgotten: its number is older than what this head remembers; begin a new one"
        return ""

    def refusal(self, session_id: str, plan: msg.HandoverPlan) -> str:
        """Why this session cannot begin, as "code: reason"; an empty string if it can."""
        host, here = self.host, plan.target_head == self.host.name
        if why := self.forgotten(session_id):
            return why
        if len(plan.members) > MEMBERS_AT_MOST:
            return (
                f"large: {len(plan.members)} members, of at most {MEMBERS_AT_MOST} in one session; move them in parts"
            )
        if not all(isfinite(s) and s > 0 for s in (plan.prepare_seconds, plan.drain_seconds)):
            return "seconds: prepare_seconds and drain_seconds are positive numbers"
        if len(self.sessions) >= SESSIONS_AT_MOST:
            return f"full: {SESSIONS_AT_MOST} sessions are under way here"
        if sum(len(session.members) for session in self.sessions.values()) + len(plan.members) > MEMBERS_IN_ALL:
            return f"full: sessions with {MEMBERS_IN_ALL} members are under way here"
        if plan.replay and not here:
            return "replay: only within a cluster; another head has another log"
        if not self.links.has_edge(plan.source):
            return f"source: {plan.source} is not an edge of {host.name}, or is down"
        if not (self.links.has_edge(plan.target) if here else self.links.reaches(plan.target_head)):
            return f"target: {plan.target} of {plan.target_head} cannot be reached from {host.name}"
        return "same: source and target are one edge" if plan.source == plan.target else ""

    def member(self, x: str, plan: msg.HandoverPlan) -> HandoverMember:
        """A member as it enters the session: preparing; or, if it cannot be moved, with its outcome or asked for it."""
        owner = self.host.owners.entries.get(x)
        if owner is None or owner.edge != plan.source:
            return _refused(f"{LEFT}: is not served by the source", owner or OwnerEntry("", (0, 0), (0, 0)))
        if self.links.edge_of(owner) != plan.source:
            return _refused(f"{AWAY}: has not come back since the source was lost", owner)
        if self.is_leaving(x):
            return _refused(f"{LEFT}: leaves the source in another session", owner)
        if self.is_busy(x):
            return _refused("is in another session", owner)
        return HandoverMember("preparing", owner)


def _refused(reason: str, owner: OwnerEntry) -> HandoverMember:
    outcome, why = departure(reason)
    return HandoverMember(outcome or ABORTING, owner, why=why)
