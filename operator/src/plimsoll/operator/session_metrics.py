"""Prometheus metrics of sessions: their results, their durations, and the errors of their forecasts.

Every stored status goes through the checker of law I5 that tests use, too; its findings are counted. No label is a
session, a subscriber or a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Summary

from plimsoll.core.session import Session, observed_session
from plimsoll.core.session.attempts import full_audit
from plimsoll.core.session.batch import OUTCOMES, AuditTotals
from plimsoll.core.session.state import FINAL_PHASES, PHASES
from plimsoll.core.session.status import measured_drain_seconds, utilization_error
from plimsoll.core.verify.session_checker import SessionChecker

DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
ERROR_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
OPEN_PHASES: Final = tuple(phase for phase in PHASES if phase not in FINAL_PHASES)
UTILIZATIONS: Final = ("before", "predicted", "measured")
DELIVERY_FAULTS: Final = ("lost", "duplicated", "reordered", "suppressed")
OVERDUE_GRACE_SECONDS: Final = 60.0
"""How much later than its deadline a session may end without counting as overdue: the API server may be away."""


class SessionMetrics:
    """Takes every stored status: the counters of a process, and the checker of one fleet."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._checker = SessionChecker(OVERDUE_GRACE_SECONDS)
        self._violations_counted = 0
        self._counted: dict[str, int] = {}
        self._audits: dict[str, AuditTotals] = {}
        self.ended = Counter(
            "plimsoll_sessions_ended", "Ended attempts of sessions, by result and reason.", ["result", "reason"],
            registry=registry,
        )  # fmt: skip
        self.subscribers = Counter(
            "plimsoll_session_subscribers", "Subscribers of attempts that have ended, by outcome.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self.audited = Counter(
            "plimsoll_session_audited_subscribers",
            "Moved subscribers that have counted their deliveries; nothing is known of the other moved ones.",
            registry=registry,
        )
        self.deliveries = Counter(
            "plimsoll_session_deliveries",
            "Deliveries that went wrong for audited subscribers while they moved: lost, duplicated and reordered are "
            "always 0; suppressed came again between clusters, and were not given again.",
            ["kind"], registry=registry,
        )  # fmt: skip
        self.faulty = Counter(
            "plimsoll_sessions_with_delivery_faults",
            "Sessions whose moved subscribers have counted a lost, duplicated or reordered delivery: always 0.",
            registry=registry,
        )
        self.phases = Histogram(
            "plimsoll_session_phase_duration_seconds", "Time of a session in a phase, in all attempts.", ["phase"],
            buckets=DURATION_BUCKETS, registry=registry,
        )  # fmt: skip
        self.drains = Histogram(
            "plimsoll_session_drain_duration_seconds", "From the cut of a batch to its end.", buckets=DURATION_BUCKETS,
            registry=registry,
        )  # fmt: skip
        self.errors = Histogram(
            "plimsoll_session_prediction_error_ratio",
            "Difference between an edge's measured and predicted utilisation, as a share of its capacity.",
            buckets=ERROR_BUCKETS, registry=registry,
        )  # fmt: skip
        self.utilizations = Summary(
            "plimsoll_session_edge_utilization_ratio",
            "Utilisation of the edges of ended sessions: before, as predicted and as measured, where it was measured.",
            ["value"], registry=registry,
        )  # fmt: skip
        self.predicted_drains = Summary(
            "plimsoll_session_predicted_drain_duration_seconds",
            "Predicted time from the cut of a batch to its end, for each batch that has ended.", registry=registry,
        )  # fmt: skip
        self.violations = Counter(
            "plimsoll_session_law_violations", "Faults that the checker found in stored sessions: always 0.", ["law"],
            registry=registry,
        )  # fmt: skip
        self.malformed = Counter(
            "plimsoll_malformed_answers", "Impossible values in brokers' messages, by field; they are ignored.",
            ["field"], registry=registry,
        )  # fmt: skip
        for outcome in OUTCOMES:
            self.subscribers.labels(outcome)
        for phase in OPEN_PHASES:
            self.phases.labels(phase)
        for kind in DELIVERY_FAULTS:
            self.deliveries.labels(kind)
        for value in UTILIZATIONS:
            self.utilizations.labels(value)
        for law in ("I4", "I5", "I8"):
            self.violations.labels(law)

    def for_fleet(self) -> SessionMetrics:
        """The same counters with a checker of their own: edges of two fleets may share names."""
        one = copy(self)
        one._checker, one._violations_counted = SessionChecker(OVERDUE_GRACE_SECONDS), 0
        return one

    def observe(self, session: Session, now: float) -> None:
        """Count a session as it was stored."""
        self._checker.add(observed_session(session, now))
        found = self._checker.judge(now)
        for violation in found[self._violations_counted :]:
            self.violations.labels(violation.law).inc()
        self._violations_counted = len(found)
        self._audit(session)
        counted = self._counted.setdefault(session.uid, len(session.history))  # an earlier process has counted this
        for attempt in session.history[counted:]:
            self._attempt(attempt.phase, attempt.reason, attempt.counts)
        if session.is_over and counted < session.attempt:
            self._attempt(session.phase, session.reason, {} if session.children else session.counts())
            self._end(session)
        self._counted[session.uid] = session.attempt if session.is_over else len(session.history)

    def forget(self, uid: str) -> None:
        """Forget a session whose object is deleted."""
        self._checker.forget(uid)
        self._counted.pop(uid, None)
        self._audits.pop(uid, None)

    def _audit(self, session: Session) -> None:
        """Add the audit's growth since the last call; it may come after the end. Children count for their parents."""
        if session.children:
            return
        audit = full_audit(session)
        before = self._audits.setdefault(session.uid, audit)  # an earlier process has counted this
        self._audits[session.uid] = audit
        self.faulty.inc(audit.has_faults and not before.has_faults)
        self.audited.inc(max(0, audit.subscribers - before.subscribers))
        for kind in DELIVERY_FAULTS:
            self.deliveries.labels(kind).inc(max(0, getattr(audit, kind) - getattr(before, kind)))

    def _attempt(self, phase: str, reason: str, counts: Mapping[str, int]) -> None:
        """An attempt has ended. Members of a parent count with its children alone."""
        self.ended.labels(phase, reason).inc()
        for outcome, number in counts.items():
            self.subscribers.labels(outcome).inc(number)

    def _end(self, session: Session) -> None:
        for phase, seconds in session.spent.items():
            if phase in OPEN_PHASES:
                self.phases.labels(phase).observe(seconds)
        for seconds in measured_drain_seconds(session):
            self.drains.observe(seconds)
        for batch in session.batches:
            if batch.cut_at is not None and batch.ended_at is not None:
                self.predicted_drains.observe(batch.predicted_seconds)
        plan = session.plan
        for forecast in plan.forecasts if plan is not None else ():
            if forecast.utilization_measured is not None:
                self.errors.observe(utilization_error(forecast))
                self.utilizations.labels("before").observe(forecast.utilization_before)
                self.utilizations.labels("predicted").observe(forecast.utilization_after)
                self.utilizations.labels("measured").observe(forecast.utilization_measured)
