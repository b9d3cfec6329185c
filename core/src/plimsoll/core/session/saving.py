"""Which changed sessions are stored, when, and in which order: an intent before any effect that follows from it."""

from __future__ import annotations

from typing import Any

from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.events import Effect, SaveSession
from plimsoll.core.session.queue_order import Turn
from plimsoll.core.session.state import Session
from plimsoll.core.session.status import with_conditions


class SessionSaving:
    """The sessions of a mediator that wait to be stored, and how many of the queue may still be in this interval."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._saves_from, self._saves_left = float("-inf"), 0

    def effects(self) -> list[Effect]:
        """Changed sessions to save. An intent is saved before any effect that follows from it, progress now and then.

        A session that leaves its brokers comes before one that takes them, and a child before the parent that counts
        it, so that the stored sessions are consistent wherever the shell stops.
        """
        context = self._context
        saves: list[Effect] = []
        for session, stored, saved_at in sorted(context.table.unsaved(), key=lambda each: saving_order(each[0])):
            is_intent = stored is None or _durable_intent(stored) != _durable_intent(session)
            if is_intent or context.now - saved_at >= context.timings.save:
                saves.append(self._save(session))
        return [*saves, *self._queue_messages()]

    def _save(self, session: Session) -> SaveSession:
        told = with_conditions(session, self._context.now)
        self._context.table.put(told, saved_at=self._context.now)
        return SaveSession(told)

    def _queue_messages(self) -> list[Effect]:
        """Waiting sessions of which only the message has changed, a few in each interval.

        When the queue moves, the place of all of them changes; the store takes some writes per second, and those that
        sessions proceed by come first.
        """
        context = self._context
        if context.now - self._saves_from >= context.timings.save:
            self._saves_from, self._saves_left = context.now, context.settings.queue_saves
        due = context.table.untold(self._saves_left, context.now - context.timings.save)
        self._saves_left -= len(due)
        return [self._save(session) for session in due]


def _durable_intent(session: Session) -> tuple[Any, ...]:
    """The parts of a session that commands follow from, without its progress and messages."""
    batch = session.batches[-1] if session.batches else None
    return (
        session.generation, session.phase, session.queued_at, session.deadline_at, session.ended_at, session.approved,
        session.plan.hash if session.plan is not None else "", session.sources, session.targets, session.verdict,
        session.attempt, session.offers, len(session.batches), batch and (batch.intent, batch.since, batch.ended_at),
        [(child.name, child.uid, child.phase) for child in session.children],
    )  # fmt: skip


def saving_order(session: Session) -> tuple[bool, bool, Turn]:
    """Sessions that leave brokers come first, and children before their parents."""
    return session.is_running, session.parent == "", session.turn
