"""All sessions of a mediator: those that are open in order of arrival, and which of them the store does not have yet.

Sessions that have ended stay for their time to live, and there may be thousands of them; nothing here goes through them
at every event.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.session.record import Session


class Book:
    """Sessions by uid, and their children by the uid of their parent."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._open: dict[str, Session] = {}
        self._order: list[Session] | None = None
        self._children: dict[str, set[str]] = {}
        self._stored: dict[str, tuple[Session, float]] = {}
        self._unstored: set[str] = set()
        self._counting: dict[str, None] = {}

    def put(self, session: Session, *, stored_at: float | None = None) -> None:
        """Take a session in. `stored_at`: as the store has it since then."""
        uid = session.uid
        self.sessions[uid] = session
        if session.is_over and session.holds_until is None:
            self._open.pop(uid, None)
        else:
            self._open[uid] = session
        self._order = None
        if session.batches and stored_at is None:
            self.count(session)
        if session.parent:
            self._children.setdefault(session.parent, set()).add(uid)
        if stored_at is None:
            self._unstored.add(uid)
        else:
            self._stored[uid] = (session, stored_at)
            self._unstored.discard(uid)

    def drop(self, uid: str) -> Session | None:
        """Forget a session; returns it."""
        session = self.sessions.pop(uid, None)
        if session is not None:
            self._children.get(session.parent, set()).discard(uid)
        self._open.pop(uid, None)
        self._stored.pop(uid, None)
        self._unstored.discard(uid)
        self._counting.pop(uid, None)
        self._order = None
        return session

    def count(self, session: Session) -> None:
        """It has moved somebody."""
        self._counting[session.uid] = None

    def counting(self) -> list[Session]:
        """Those that have moved somebody lately, and of whom it may not be known yet what they have counted."""
        return [self.sessions[uid] for uid in self._counting]

    def counted(self, session: Session) -> None:
        """Of this one no more will be known."""
        self._counting.pop(session.uid, None)

    def close(self, session: Session) -> None:
        """A session that is over keeps its brokers no longer."""
        self._open.pop(session.uid, None)
        self._order = None

    def get(self, uid: str) -> Session | None:
        return self.sessions.get(uid)

    def open(self) -> list[Session]:
        """Those that are not over, or still keep their brokers, in order of arrival in the queue."""
        if self._order is None:
            self._order = sorted(self._open.values(), key=lambda session: (session.queued_at, session.name))
        return self._order

    def children(self, parent: str) -> Iterator[Session]:
        """The sessions that one owns, as far as their objects have been seen."""
        return (self.sessions[uid] for uid in sorted(self._children.get(parent, ())))

    def unstored(self) -> list[tuple[Session, Session | None, float]]:
        """Those that have changed, each with what the store has of it, and since when."""
        nothing: tuple[Session | None, float] = (None, float("-inf"))
        return [(self.sessions[uid], *self._stored.get(uid, nothing)) for uid in self._unstored]
