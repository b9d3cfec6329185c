"""All sessions of a mediator: the open ones in the order of the queue, and those that are not saved yet.

Sessions that have ended stay for their time to live, and thousands may wait: no event goes through all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from plimsoll.core.session.queue_order import Turn
from plimsoll.core.session.state import Session


class SessionTable:
    """Sessions by uid, and their children by the uid of their parent."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._open: dict[str, Session] = {}
        self._order: list[Session] | None = None
        self._holding: dict[str, Session] = {}
        self._holding_order: list[Session] | None = None
        self._resting: list[Turn] = []
        self._waiting: list[Turn] = []
        self._waiting_at: dict[str, list[Turn]] = {}
        self._children: dict[str, set[str]] = {}
        self._saved: dict[str, tuple[Session, float]] = {}
        self._unsaved: set[str] = set()
        self._untold: dict[str, None] = {}
        self._unaudited: dict[str, None] = {}

    def put(self, session: Session, *, saved_at: float | None = None) -> None:
        """Add or replace a session. `saved_at`: since when the store has it like this."""
        uid = session.uid
        self._unindex(uid)
        self.sessions[uid] = session
        if not session.is_over or session.holds_until is not None:
            self._index(session)
        if session.batches and saved_at is None:
            self.mark_unaudited(session)
        if session.parent:
            self._children.setdefault(session.parent, set()).add(uid)
        self._unsaved.discard(uid)
        if saved_at is not None:
            self._saved[uid] = (session, saved_at)
            self._untold.pop(uid, None)
        elif self._is_same_but_for_text(session):
            self._untold[uid] = None
        else:
            self._untold.pop(uid, None)
            self._unsaved.add(uid)

    def _index(self, session: Session) -> None:
        uid, key = session.uid, session.turn
        self._open[uid] = session
        self._order = None
        if session.is_running or session.holds_until is not None:
            self._holding[uid] = session
            self._holding_order = None
        else:
            insort(self._resting, key)
        if session.is_waiting:
            insort(self._waiting, key)
            for broker in session.brokers:
                insort(self._waiting_at.setdefault(broker, []), key)

    def _unindex(self, uid: str) -> None:
        session = self._open.pop(uid, None)
        if session is None:
            return
        self._order = None
        if self._holding.pop(uid, None) is not None:
            self._holding_order = None
        else:
            _remove(self._resting, session.turn)
        if session.is_waiting:
            _remove(self._waiting, session.turn)
            for broker in session.brokers:
                keys = self._waiting_at[broker]
                _remove(keys, session.turn)
                if not keys:
                    del self._waiting_at[broker]

    def _is_same_but_for_text(self, session: Session) -> bool:
        """Whether a waiting session differs from the stored one in its reason and message only."""
        stored, _ = self._saved.get(session.uid, (None, 0.0))
        if stored is None or not session.is_waiting:
            return False
        reason, message = session.reason, session.message
        return replace(stored, reason=reason, message=message, conditions=session.conditions) == session

    def drop(self, uid: str) -> Session | None:
        """Forget a session; returns it."""
        self._unindex(uid)
        session = self.sessions.pop(uid, None)
        if session is not None:
            self._children.get(session.parent, set()).discard(uid)
        self._saved.pop(uid, None)
        self._unsaved.discard(uid)
        self._untold.pop(uid, None)
        self._unaudited.pop(uid, None)
        return session

    def mark_unaudited(self, session: Session) -> None:
        """Await the audit of a session that has begun batches."""
        self._unaudited[session.uid] = None

    def unaudited(self) -> list[Session]:
        """Sessions whose audit is awaited."""
        return [self.sessions[uid] for uid in self._unaudited]

    def mark_audited(self, session: Session) -> None:
        """Stop awaiting the audit of a session."""
        self._unaudited.pop(session.uid, None)

    def release(self, session: Session) -> None:
        """Release the brokers of a session that is over."""
        self._unindex(session.uid)

    def get(self, uid: str) -> Session | None:
        return self.sessions.get(uid)

    def open_sessions(self) -> list[Session]:
        """Sessions that are not over, or still keep their brokers, in the order of the queue."""
        if self._order is None:
            self._order = sorted(self._open.values(), key=lambda session: session.turn)
        return self._order

    def holding(self) -> list[Session]:
        """The open sessions that run, or keep brokers from an attempt before, in the order of the queue."""
        if self._holding_order is None:
            self._holding_order = sorted(self._holding.values(), key=lambda session: session.turn)
        return self._holding_order

    def first_waiting(self, count: int) -> list[Session]:
        """The front of the queue."""
        return [self.sessions[uid] for _, _, uid in self._waiting[:count]]

    def next_resting(self, after: Turn, count: int) -> list[Session]:
        """The next open sessions after this turn that do not run, from the start again after the last one."""
        begin = bisect_right(self._resting, after)
        found = self._resting[begin : begin + count]
        found += self._resting[: min(begin, count - len(found))]
        return [self.sessions[uid] for _, _, uid in found]

    def waiting_at(self, broker: str, before: Turn) -> Iterator[Session]:
        """The sessions that wait for a broker and are before this turn, in order."""
        keys = self._waiting_at.get(broker, [])
        return (self.sessions[uid] for _, _, uid in islice(keys, bisect_left(keys, before)))

    def place(self, session: Session) -> tuple[int, int]:
        """The place of a waiting session, from 1, and how many wait."""
        return bisect_left(self._waiting, session.turn) + 1, len(self._waiting)

    def children(self, parent: str) -> Iterator[Session]:
        """The children of a session, as far as their objects have been seen."""
        return (self.sessions[uid] for uid in sorted(self._children.get(parent, ())))

    def unsaved(self) -> list[tuple[Session, Session | None, float]]:
        """Changed sessions, each with its last saved state and the time of that; not those of `untold`."""
        nothing: tuple[Session | None, float] = (None, float("-inf"))
        return [(self.sessions[uid], *self._saved.get(uid, nothing)) for uid in self._unsaved]

    def untold(self, count: int, saved_before: float) -> list[Session]:
        """Waiting sessions of which only reason and message are not saved, those that changed first."""
        due = (uid for uid in self._untold if self._saved[uid][1] <= saved_before)
        return [self.sessions[uid] for uid in islice(due, count)]

    def running_cluster_session(self, cluster: str) -> Session | None:
        """The session between clusters that runs for this one."""
        running = (one for one in self.open_sessions() if cluster in one.between and one.is_running)
        return next(running, None)

    def joined_cluster(self, cluster: str) -> str:
        """The cluster whose edges balance with those of this one now; empty if there is none."""
        session = self.running_cluster_session(cluster)
        if session is None or session.moving_at is None or session.verdict is not None:
            return ""
        return next(other for other in session.between if other != cluster)


def _remove(keys: list[Turn], key: Turn) -> None:
    del keys[bisect_left(keys, key)]
