"""What edges are told of sessions: asked whether they are free, BUSY in one, STABILIZING after it, OK if nothing moved.

What is wanted of an edge follows from the sessions at any time; it is said when it changes, and again until it is
answered. An edge that is not told any more that it is BUSY is let go, or frees itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from plimsoll.core import records as r
from plimsoll.core.session.events import Send
from plimsoll.core.session.record import Session

if TYPE_CHECKING:
    from plimsoll.core.session.turn import Turn

Word = Literal["ASK", "BUSY", "STABILIZING", "OK"]
NOTHING = "NothingToMove"
PASSING = {"InAnotherSession", "MovedRecently"}
"""Why somebody could not move now, and may move soon."""


@dataclass(slots=True)
class Said:
    """What an edge was told last, by the numbers from `first` to `last`; `at`: when that began."""

    uid: str
    session: str
    word: Word
    first: int
    at: float
    last: int = 0
    said_at: float = float("-inf")
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What an edge said last: to which word, its state, and its load."""

    session: str
    word: Word
    state: r.BrokerState
    report: Mapping[str, Any]
    at: float


@dataclass(slots=True)
class States:
    """By edge. `number` is that of the last word said in this life."""

    number: int = 0
    said: dict[str, Said] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def answer_to(self, session: Session, edge: str, word: Word) -> Answer | None:
        """What an edge has answered to what it was told for a session last."""
        said, answer = self.said.get(edge), self.answers.get(edge)
        is_ours = said is not None and (said.uid, said.word) == (session.uid, word) and said.is_answered
        return answer if is_ours else None


def heard(turn: Turn, stated: r.Stated) -> None:
    """An answer; one to something older than what was said last is late."""
    said = turn.states.said.get(stated.edge)
    if said is None or stated.mediator != turn.epoch or not said.first <= stated.number <= said.last:
        return
    said.is_answered = True
    turn.states.answers[stated.edge] = Answer(stated.session, said.word, stated.state, stated.report, turn.now)


def speak(turn: Turn) -> None:
    """Tell every edge what is wanted of it now."""
    wanted = {edge: (session, word) for edge, session, word in _wanted(turn)}
    for edge, (session, word) in wanted.items():
        said = turn.states.said.get(edge)
        if said is None or (said.uid, said.word) != (session.uid, word):
            said = _begin(turn, edge, session.uid, session.name, word)
        if turn.now - said.said_at >= _pause(turn, said):
            _say(turn, edge, said)
    for edge in [edge for edge in turn.states.said if edge not in wanted]:
        _let_go(turn, edge, turn.states.said[edge])


def _wanted(turn: Turn) -> Iterator[tuple[str, Session, Word]]:
    if turn.view is None:
        return
    for session in turn.book.open():
        if session.is_over or not turn.runs(session) or not _speaks(turn, session):
            continue
        for edge in sorted(session.brokers):
            if turn.view.policy_of(edge) is not None:
                yield edge, session, _word(session, edge)


def _speaks(turn: Turn, session: Session) -> bool:
    """Whether it tells its edges what they are: a shuffle does so for its children, other parents leave it to them."""
    parent = turn.book.get(session.parent)
    is_spoken_for = parent is not None and parent.is_shuffle and not parent.is_over
    return session.is_shuffle or not (session.is_parent or is_spoken_for)


def _word(session: Session, edge: str) -> Word:
    """What a session means for one of its edges now."""
    if session.phase == "Stabilizing":
        return "STABILIZING"
    is_asked = session.by_policy and session.phase == "Negotiating" and edge in session.targets
    return "ASK" if is_asked else "BUSY"


def _pause(turn: Turn, said: Said) -> float:
    if not said.is_answered:
        return turn.timings.repeat
    return {"BUSY": turn.timings.busy / 3, "STABILIZING": turn.timings.settle}.get(said.word, float("inf"))


def _begin(turn: Turn, edge: str, uid: str, session: str, word: Word) -> Said:
    said = turn.states.said[edge] = Said(uid, session, word, turn.states.number + 1, turn.now)
    return said


def _say(turn: Turn, edge: str, said: Said) -> None:
    head = turn.view.edges[edge].head if turn.view is not None and edge in turn.view.edges else ""
    if not head:
        return
    turn.states.number += 1
    said.last, said.said_at = turn.states.number, turn.now
    tried = _tried(turn, said.uid) if said.word == "OK" else []
    word = r.State(turn.epoch, said.last, edge, said.session, said.word, turn.timings.busy, tried)
    turn.effects.append(Send(head, word))


def came_to_nothing(session: Session) -> bool:
    """Whether its policy has found nothing to move, which will be so as long as loads are as they are."""
    return session.plan is not None and session.reason == NOTHING and not set(session.plan.rejected) & PASSING


def _tried(turn: Turn, uid: str) -> list[r.ActionItem]:
    """What came to nothing, so that it is not wanted again while load is as it is."""
    session = turn.book.get(uid)
    if session is None or not came_to_nothing(session):
        return []
    return [
        r.ActionItem(offer.edge, offer.metric, offer.difference, list(offer.overloaded))
        for offer in session.offers if offer.answer == "OK"
    ]  # fmt: skip


def _let_go(turn: Turn, edge: str, said: Said) -> None:
    """Nothing is wanted of an edge any more: it is told so, if it may believe otherwise."""
    refused = said.word == "ASK" and said.is_answered and turn.states.answers[edge].state != "OK"
    if said.word in ("ASK", "BUSY") and not refused:
        session = turn.book.get(said.uid)
        has_moved = session is not None and session.counts()["moved"] > 0
        said = _begin(turn, edge, said.uid, said.session, "STABILIZING" if has_moved else "OK")
    elif said.is_answered or refused or turn.now - said.at > turn.timings.busy:
        del turn.states.said[edge]
        return
    if turn.now - said.said_at >= turn.timings.repeat:
        _say(turn, edge, said)
