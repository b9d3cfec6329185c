"""All sessions of a mediator: the open ones in order of arrival, and those that are not saved yet.

Sessions that have ended stay for their time to live, and there may be thousands: no event goes through all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.session.state import Session


class SessionTable:
    """Sessions by uid, and their children by the uid of their parent."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._open: dict[str, Session] = {}
        self._order: list[Session] | None = None
        self._children: dict[str, set[str]] = {}
        self._saved: dict[str, tuple[Session, float]] = {}
        self._unsaved: set[str] = set()
        self._unaudited: dict[str, None] = {}

    def put(self, session: Session, *, saved_at: float | None = None) -> None:
        """Add or replace a session. `saved_at`: since when the store has it like this."""
        uid = session.uid
        self.sessions[uid] = session
        if session.is_over and session.holds_until is None:
            self._open.pop(uid, None)
        else:
            self._open[uid] = session
        self._order = None
        if session.batches and saved_at is None:
            self.mark_unaudited(session)
        if session.parent:
            self._children.setdefault(session.parent, set()).add(uid)
        if saved_at is None:
            self._unsaved.add(uid)
        else:
            self._saved[uid] = (session, saved_at)
            self._unsaved.discard(uid)

    def drop(self, uid: str) -> Session | None:
        """Forget a session; returns it."""
        session = self.sessions.pop(uid, None)
        if session is not None:
            self._children.get(session.parent, set()).discard(uid)
        self._open.pop(uid, None)
        self._saved.pop(uid, None)
        self._unsaved.discard(uid)
        self._unaudited.pop(uid, None)
        self._order = None
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
        self._open.pop(session.uid, None)
        self._order = None

    def get(self, uid: str) -> Session | None:
        return self.sessions.get(uid)

    def open_sessions(self) -> list[Session]:
        """Sessions that are not over, or still keep their brokers, in order of arrival in the queue."""
        if self._order is None:
            self._order = sorted(self._open.values(), key=lambda session: (session.queued_at, session.name))
        return self._order

    def children(self, parent: str) -> Iterator[Session]:
        """The children of a session, as far as their objects have been seen."""
        return (self.sessions[uid] for uid in sorted(self._children.get(parent, ())))

    def unsaved(self) -> list[tuple[Session, Session | None, float]]:
        """Changed sessions, each with its last saved state and the time of that."""
        nothing: tuple[Session | None, float] = (None, float("-inf"))
        return [(self.sessions[uid], *self._saved.get(uid, nothing)) for uid in self._unsaved]

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
