"""Slots: places that the target of a hand-over keeps for subscribers that have not attached yet."""

from __future__ import annotations

from typing import NamedTuple


class ReservedSlot(NamedTuple):
    """A place kept for a subscriber, in one session, until a time. By `replay` only RESUME takes it.

    `identity`: whose subscriber it is; empty if the head did not know.
    """

    session: str
    until: float
    replay: bool
    identity: str = ""


class SlotTable(dict[str, ReservedSlot]):
    """The slots of an edge, by subscriber. A subscriber has at most one, so two sessions cannot both move it here."""

    def free(self, subscriber: str, session: str) -> None:
        """Give a slot up, if it is this session's: a late message of another session must not free it."""
        if (slot := self.get(subscriber)) is not None and slot.session == session:
            del self[subscriber]

    def is_for_replay(self, subscriber: str, session: str | None) -> bool:
        """Whether a RESUME that names this session takes a slot here."""
        slot = self.get(subscriber)
        return slot is not None and slot.replay and slot.session == session

    def pop_expired(self, now: float) -> list[tuple[str, ReservedSlot]]:
        """Remove and return the slots whose time has passed."""
        expired = [(subscriber, slot) for subscriber, slot in self.items() if not now < slot.until]
        for subscriber, _ in expired:
            del self[subscriber]
        return expired
