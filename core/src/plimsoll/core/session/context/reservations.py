"""Reservations of edges: ASK whether one is free, BUSY in a session, STABILIZING after it, OK if none moved.

An edge's wanted state follows from the sessions at any time; it is sent when it changes, and repeated until answered.
An edge frees itself when BUSY is no longer repeated, so a mediator that is gone leaves none reserved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.inputs import FleetView
from plimsoll.core.session.state import NOTHING_TO_MOVE, Session
from plimsoll.core.session.table import SessionTable

ReservedState = Literal["ASK", "BUSY", "STABILIZING", "OK"]


@dataclass(slots=True)
class SentReservation:
    """The state last sent to an edge, by messages `first_number` to `last_number`, the first of them at `since`."""

    uid: str
    session: str
    state: ReservedState
    first_number: int
    since: float
    last_number: int = 0
    sent_at: float = float("-inf")
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class AnsweredReservation:
    """The last answer of an edge: its own state, and its load."""

    session: str
    state: msg.BrokerState
    report: Mapping[str, Any]
    at: float


class SessionReservations:
    """Reservations by edge. `number` is that of the last message sent in this life."""

    def __init__(self, outbox: CommandOutbox) -> None:
        self._outbox = outbox
        self.number = 0
        self.sent: dict[str, SentReservation] = {}
        self.answered: dict[str, AnsweredReservation] = {}

    def answer_for(self, session: Session, edge: str, state: ReservedState) -> AnsweredReservation | None:
        """The answer of an edge to this state, if it is the last that was sent to it, and for this session."""
        sent = self.sent.get(edge)
        is_ours = sent is not None and (sent.uid, sent.state) == (session.uid, state) and sent.is_answered
        return self.answered.get(edge) if is_ours else None

    def receive(self, reply: msg.ReservationReply) -> None:
        """Take an answer; one to an earlier state than the last, or to another mediator, is dropped."""
        sent = self.sent.get(reply.edge)
        if sent is None or reply.mediator != self._outbox.epoch:
            return
        if not sent.first_number <= reply.number <= sent.last_number:
            return
        sent.is_answered = True
        self.answered[reply.edge] = AnsweredReservation(reply.session, reply.state, reply.report, self._outbox.now)

    def send(self, fleet: FleetView, table: SessionTable) -> None:
        """Send every edge its wanted state."""
        wanted: dict[str, tuple[Session, ReservedState]] = {}
        for edge, session, state in _wanted_reservations(table, fleet):
            if edge not in wanted or state == "BUSY":  # one of the children that share a source may be done before
                wanted[edge] = (session, state)
        for edge, (session, state) in wanted.items():
            sent = self.sent.get(edge)
            if sent is None or (sent.uid, sent.state) != (session.uid, state):
                sent = self._reserve(edge, session.uid, session.name, state)
            if self._outbox.now - sent.sent_at >= self._repeat_seconds(sent):
                self._send(edge, sent, fleet, table)
        for edge in [edge for edge in self.sent if edge not in wanted]:
            self._release(edge, self.sent[edge], fleet, table)

    def _repeat_seconds(self, sent: SentReservation) -> float:
        """An answered BUSY is repeated before the edge would free itself, an answered ASK or OK never."""
        timings = self._outbox.timings
        if not sent.is_answered:
            return timings.repeat
        return {"BUSY": timings.busy / 3, "STABILIZING": timings.settle}.get(sent.state, float("inf"))

    def _reserve(self, edge: str, uid: str, session: str, state: ReservedState) -> SentReservation:
        self.sent[edge] = SentReservation(uid, session, state, self.number + 1, self._outbox.now)
        return self.sent[edge]

    def _send(self, edge: str, sent: SentReservation, fleet: FleetView, table: SessionTable) -> None:
        if edge not in fleet.edges:
            return
        self.number += 1
        sent.last_number, sent.sent_at = self.number, self._outbox.now
        fruitless = _fruitless_actions(table, sent.uid, edge) if sent.state == "OK" else []
        seconds = self._outbox.timings.busy
        message = msg.Reservation(
            self._outbox.epoch, sent.last_number, edge, sent.session, sent.state, seconds, fruitless
        )
        self._outbox.send(fleet.edges[edge].head, message)

    def _release(self, edge: str, sent: SentReservation, fleet: FleetView, table: SessionTable) -> None:
        """Release an edge that no session wants any more; one that has refused needs no message."""
        refused = sent.state == "ASK" and sent.is_answered and self.answered[edge].state != "OK"
        if sent.state in ("ASK", "BUSY") and not refused:
            session = table.get(sent.uid)
            has_moved = session is not None and session.counts()["moved"] > 0
            sent = self._reserve(edge, sent.uid, sent.session, "STABILIZING" if has_moved else "OK")
        elif sent.is_answered or refused or self._outbox.now - sent.since > self._outbox.timings.busy:
            del self.sent[edge]
            return
        if self._outbox.now - sent.sent_at >= self._outbox.timings.repeat:
            self._send(edge, sent, fleet, table)


def _wanted_reservations(table: SessionTable, fleet: FleetView) -> Iterator[tuple[str, Session, ReservedState]]:
    for session in table.holding():
        if not session.is_running or not _reserves_edges(table, session):
            continue
        for edge in sorted(session.brokers):
            if fleet.policy_of(edge) is not None:
                yield edge, session, _wanted_state(session, edge)


def _reserves_edges(table: SessionTable, session: Session) -> bool:
    """Whether it reserves its edges itself: one with a fleet-wide plan does, other parents leave it to children."""
    parent = table.get(session.parent)
    is_reserved_by_parent = parent is not None and parent.is_fleet_wide and not parent.is_over
    return session.is_fleet_wide or not (session.is_parent or is_reserved_by_parent)


def _wanted_state(session: Session, edge: str) -> ReservedState:
    if session.phase == "Stabilizing":
        return "STABILIZING"
    is_asked = session.kind == "balance" and session.phase == "Negotiating" and edge in session.targets
    return "ASK" if is_asked else "BUSY"


def _fruitless_actions(table: SessionTable, uid: str, edge: str) -> list[msg.ActionItem]:
    """Actions that moved no subscriber, for the source, so that it does not trigger for them again at the same load."""
    session = table.get(uid)
    if session is None or session.reason != NOTHING_TO_MOVE or edge not in session.sources:
        return []
    return [
        msg.ActionItem(offer.edge, offer.metric, offer.difference, list(offer.overloaded))
        for offer in session.offers if offer.is_futile
    ]  # fmt: skip
