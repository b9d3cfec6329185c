"""What a mediator knows in one life beside its sessions, and what it says in one turn.

Nothing here outlives the mediator: it is asked for again, or said again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from plimsoll.core.records import Command, HandoverPlan, Served, Serving, Trigger
from plimsoll.core.session.book import Book
from plimsoll.core.session.events import Create, Forget, Send, Tell
from plimsoll.core.session.profiles import Profiles
from plimsoll.core.session.record import MOVING, Batch, Phase, Session, Verdict
from plimsoll.core.session.states import States
from plimsoll.core.session.values import Request, Settings, Timings, View
from plimsoll.core.session.watched import Watched


@dataclass(slots=True)
class Listing:
    """Whom an edge serves, as far as its head has said."""

    head: str
    head_epoch: int = 0
    names: list[str] = field(default_factory=list)
    asked: int = 0
    is_complete: bool = False


class Turn:
    """One life's knowledge, the present time, and the effects of the event at hand."""

    def __init__(self, epoch: int, settings: Settings) -> None:
        self.epoch, self.settings = epoch, settings
        self.timings: Timings = settings.scaled
        self.now = self.began_at = 0.0
        self.view: View | None = None
        self.viewed_at = 0.0
        self.requests: dict[str, Request] = {}
        self.book = Book()
        self.greeted: set[str] = set()
        """Batches of which a head has spoken in this life, or which began in it."""
        self.number = 0
        self.effects: list[Tell | Create | Forget | Send] = []
        self._listings: dict[tuple[str, str], Listing] = {}
        self._said: dict[str, float] = {}
        self._queries = 0
        self.triggered: dict[str, tuple[int, int]] = {}
        """The epoch and the number of the last trigger of each edge."""
        self.wishes: dict[str, tuple[float, Trigger]] = {}
        """The last trigger of each edge that has not become a session, and when it came."""
        self.watched: dict[str, Watched] = {}
        """What is remembered of each cluster beside its neighbours."""
        self.states = States()
        self.profiles = Profiles()

    def next_id(self) -> str:
        """The name of a new batch on the wire."""
        self.number += 1
        return f"{self.epoch}.{self.number}"

    def next_query(self) -> int:
        """The number of a new question."""
        self._queries += 1
        return self.epoch << 32 | self._queries

    def waits_since(self, session: Session) -> float:
        """Since when it waits in its phase for what brokers say: this life has not asked them before it began."""
        return max(session.phase_at, self.began_at)

    def runs(self, session: Session) -> bool:
        return is_running(session)

    # -- saying

    def is_due(self, what: str, seconds: float) -> bool:
        """Whether this was last said so long ago; it is taken as said now."""
        if self.now - self._said.get(what, float("-inf")) < seconds:
            return False
        self._said[what] = self.now
        return True

    def hush(self, prefix: str) -> None:
        """Forget when things of this prefix were said last."""
        self._said = {what: at for what, at in self._said.items() if not what.startswith(prefix)}

    def tell(self, session: Session, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        self.effects.append(Tell(session.uid, session.name, type_, reason, message))

    def command(self, batch: Batch, step: Literal["prepare", "cut", "abort", "ask"], seconds: float) -> None:
        """Say a step of a batch, unless it was said less than so long ago."""
        if self.is_due(f"{batch.id}/{step}", seconds):
            plan = wire_plan(batch) if step == "prepare" else None
            self.effects.append(Send(batch.head, Command(self.epoch, batch.head_epoch, batch.id, step, plan)))

    # -- whom edges serve

    def listing(self, uid: str, edge: str, head: str) -> list[str] | None:
        """Whom an edge serves, sorted, or None as long as that is not known; it is asked for meanwhile."""
        listing = self._listings.setdefault((uid, edge), Listing(head))
        if listing.is_complete:
            return listing.names
        if not listing.asked:
            listing.asked = self.next_query()
        if self.is_due(f"serving/{listing.asked}", self.timings.repeat):
            after = listing.names[-1] if listing.names else ""
            self.effects.append(Send(listing.head, Serving(listing.asked, edge, after)))
        return None

    def listings(self, uid: str, edges: Iterable[tuple[str, str]]) -> dict[str, list[str]] | None:
        """The listings of several edges, given with their heads; None until all are complete."""
        known = {edge: self.listing(uid, edge, head) for edge, head in edges}
        complete = {edge: names for edge, names in known.items() if names is not None}
        return complete if len(complete) == len(known) else None

    def unlist(self, uid: str) -> None:
        """Forget what a session has been told, so that it asks anew."""
        self._listings = {key: listing for key, listing in self._listings.items() if key[0] != uid}
        self.profiles.forget(uid)

    def served(self, head: str, said: Served) -> None:
        """A page of a listing. One of another head epoch than the last page starts it anew."""
        for (_, edge), listing in self._listings.items():
            if listing.asked != said.id or edge != said.edge or listing.head != head:
                continue
            listing.asked = 0
            if listing.names and said.head_epoch != listing.head_epoch:
                listing.names.clear()
                return
            listing.head_epoch = said.head_epoch
            last = listing.names[-1] if listing.names else ""
            listing.names.extend(name for name in sorted(said.subscribers) if name > last)
            listing.is_complete = not said.more or not said.subscribers
            return


def wire_plan(batch: Batch) -> HandoverPlan:
    """A batch as its head is told."""
    return HandoverPlan(
        batch.source, batch.target, batch.target_head, list(batch.members), batch.replay, batch.prepare_seconds,
        batch.drain_seconds,
    )  # fmt: skip


def enter(session: Session, phase: Phase, now: float, reason: str = "", message: str = "") -> Session:
    """The session in another phase; the time spent in the last one is counted."""
    spent = {**session.spent, session.phase: session.spent.get(session.phase, 0.0) + now - session.phase_at}
    spent.setdefault(phase, 0.0)
    return replace(session, phase=phase, phase_at=now, reason=reason, message=message, spent=spent)


def because(session: Session, reason: str, message: str) -> Session:
    """The session with a reason for being where it is."""
    if (session.reason, session.message) == (reason, message):
        return session
    return replace(session, reason=reason, message=message)


def judged(session: Session, reason: str, message: str, *, again: bool = False) -> Session:
    """The session, to begin nothing more; the first verdict holds."""
    if session.verdict is not None:
        return session
    return replace(session, verdict=Verdict(reason=reason, message=message, again=again))


def is_running(session: Session) -> bool:
    """Whether it takes part in balancing now, and keeps its brokers from other sessions."""
    return not session.is_over and session.phase in ("Negotiating", "Sampling", *MOVING, "Stabilizing")
