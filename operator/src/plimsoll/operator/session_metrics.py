"""Sessions in numbers, as Prometheus reads them: how they end, how long they take, and how far promises were off.

Every status that is stored goes through a checker of law I5, the same as in tests; what it finds is counted, too. No
label is a session, a subscriber or a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from plimsoll.core.session import Session, seen
from plimsoll.core.session.record import FINAL, OUTCOMES, PHASES, Audit, summed
from plimsoll.core.session.status import drain_seconds, utilization_error
from plimsoll.core.verify.sessions import SessionChecker

SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
RATIOS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ON_THE_WAY: Final = tuple(phase for phase in PHASES if phase not in FINAL)
KINDS: Final = ("lost", "duplicated", "reordered", "suppressed")
LATE_SECONDS: Final = 60.0
"""So much later than its deadline an end may be stored: the API server may have been away."""


class SessionMetrics:
    """Takes every status that is stored: the counters of a process, and what a checker knows of one fleet."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._checker = SessionChecker(LATE_SECONDS)
        self._told = 0
        self._counted: dict[str, int] = {}
        self._audits: dict[str, Audit] = {}
        self.ended = Counter(
            "plimsoll_sessions_ended", "Attempts of sessions that have ended, by how.", ["result", "reason"],
            registry=registry,
        )  # fmt: skip
        self.subscribers = Counter(
            "plimsoll_session_subscribers", "Subscribers of attempts that have ended, by what became of them.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self.audited = Counter(
            "plimsoll_session_audited_subscribers",
            "Moved subscribers that have counted their deliveries; of other moved ones nothing is known.",
            registry=registry,
        )
        self.deliveries = Counter(
            "plimsoll_session_deliveries",
            "Deliveries that went wrong for audited subscribers while they moved: lost, duplicated and reordered are "
            "always 0; suppressed came again between clusters, and were not given again.",
            ["kind"], registry=registry,
        )  # fmt: skip
        self.phases = Histogram(
            "plimsoll_session_phase_duration_seconds", "Time of a session in a phase, in all attempts.", ["phase"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.drains = Histogram(
            "plimsoll_session_drain_duration_seconds", "From the cut of a batch to its end.", buckets=SECONDS,
            registry=registry,
        )  # fmt: skip
        self.errors = Histogram(
            "plimsoll_session_prediction_error_ratio",
            "How far an edge's measured utilisation was from the predicted one, as a part of its capacity.",
            buckets=RATIOS, registry=registry,
        )  # fmt: skip
        self.violations = Counter(
            "plimsoll_session_law_violations", "What a checker found wrong with stored sessions: always 0.", ["law"],
            registry=registry,
        )  # fmt: skip
        self.malformed = Counter(
            "plimsoll_malformed_answers", "What brokers said of themselves and cannot be, by field; it is ignored.",
            ["field"], registry=registry,
        )  # fmt: skip
        for outcome in OUTCOMES:
            self.subscribers.labels(outcome)
        for phase in ON_THE_WAY:
            self.phases.labels(phase)
        for kind in KINDS:
            self.deliveries.labels(kind)
        for law in ("I4", "I5", "I8"):
            self.violations.labels(law)

    def of_one_fleet(self) -> SessionMetrics:
        """The same counters, for one mediator: fleets may call their edges alike, and end with sessions open."""
        one = copy(self)
        one._checker, one._told = SessionChecker(LATE_SECONDS), 0
        return one

    def stored(self, session: Session, now: float) -> None:
        """A session, as it has been stored."""
        self._checker.see(seen(session, now))
        found = self._checker.judge(now)
        for violation in found[self._told :]:
            self.violations.labels(violation.law).inc()
        self._told = len(found)
        self._audit(session)
        counted = self._counted.setdefault(
            session.uid, len(session.history)
        )  # what another process has seen is its own
        for attempt in session.history[counted:]:
            self._attempt(attempt.phase, attempt.reason, attempt.counts)
        if session.is_over and counted < session.attempt:
            self._attempt(session.phase, session.reason, {} if session.children else session.counts())
            self._end(session)
        self._counted[session.uid] = session.attempt if session.is_over else len(session.history)

    def forget(self, uid: str) -> None:
        """Its object has gone."""
        self._checker.forget(uid)
        self._counted.pop(uid, None)
        self._audits.pop(uid, None)

    def _audit(self, session: Session) -> None:
        """What has been counted since the last time; it may come after the end. Children count for their parents."""
        if session.children:
            return
        audit = summed((session.audit(), *(one.audit for one in session.history)))
        before = self._audits.setdefault(session.uid, audit)  # what another process has seen is its own
        self._audits[session.uid] = audit
        self.audited.inc(max(0, audit.subscribers - before.subscribers))
        for kind in KINDS:
            self.deliveries.labels(kind).inc(max(0, getattr(audit, kind) - getattr(before, kind)))

    def _attempt(self, phase: str, reason: str, counts: Mapping[str, int]) -> None:
        """An attempt has ended. Members of a parent count with its children alone."""
        self.ended.labels(phase, reason).inc()
        for outcome, number in counts.items():
            self.subscribers.labels(outcome).inc(number)

    def _end(self, session: Session) -> None:
        for phase, seconds in session.spent.items():
            if phase in ON_THE_WAY:
                self.phases.labels(phase).observe(seconds)
        for seconds in drain_seconds(session):
            self.drains.observe(seconds)
        for forecast in session.plan.forecasts if session.plan is not None else ():
            if forecast.utilization_measured is not None:
                self.errors.observe(utilization_error(forecast))
