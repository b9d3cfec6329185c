"""When mediators are sent how a session stands: its state at once, members and audit at most every REPORT_SECONDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plimsoll.core.head.handover.session import Handover
from plimsoll.core.protocol import messages as msg

REPORT_SECONDS = 0.2
"""Least time between two outcomes of a session whose state has not changed."""


class ReportContext(Protocol):
    now: float


class OutcomeReports:
    """`outcome_of`: how a session stands; `broadcast` sends it to every mediator."""

    def __init__(
        self, host: ReportContext, outcome_of: Callable[[str], msg.Outcome], broadcast: Callable[[msg.Outcome], None]
    ) -> None:
        self.host, self.outcome_of, self.broadcast = host, outcome_of, broadcast
        self._audited: dict[str, None] = {}
        self._audits_at = float("inf")

    def audit_changed(self, session_id: str) -> None:
        """More members of a session have been counted; it may be over by now, and known by its outcome only."""
        if not self._audited:
            self._audits_at = self.host.now + REPORT_SECONDS
        self._audited[session_id] = None

    def is_due(self, session: Handover) -> bool:
        if not session.is_changed:
            return False
        return session.state != session.reported_state or self.host.now >= session.reported_at + REPORT_SECONDS

    def report(self, session: Handover) -> None:
        session.is_changed, session.reported_at, session.reported_state = False, self.host.now, session.state
        self.broadcast(self.outcome_of(session.id))

    def report_audits(self) -> None:
        """Send the audits that have changed, once their time has come."""
        if self.host.now < self._audits_at:
            return
        audited, self._audited, self._audits_at = self._audited, {}, float("inf")
        for session_id in audited:
            self.broadcast(self.outcome_of(session_id))

    def wake_at(self, session: Handover) -> float:
        """When a change of this session is due at the latest."""
        return session.reported_at + REPORT_SECONDS if session.is_changed else float("inf")

    def audits_at(self) -> float:
        return self._audits_at
