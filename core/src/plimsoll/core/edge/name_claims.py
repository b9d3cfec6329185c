"""Whose name a subscriber has: an edge refuses what it knows to be another identity's, and leaves the rest to its head.

The head decides, since the subscriber may be served by another edge. Until it has, a second identity has to ask again:
neither may take the place of the other here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from plimsoll.core.edge.attachment import REFUSALS, EdgeAttachment
from plimsoll.core.edge.handover.slots import ReservedSlot
from plimsoll.core.permissions import NOT_PERMITTED, NameGrants, foreign_name

REFUSED_SECONDS = 1.0
"""How long a refusal of the head is repeated without asking it, so that repeated claims hold up no owner."""

REFUSED_AT_MOST = 10_000


class ClaimsContext(Protocol):
    """What the check of a name needs of an edge."""

    name_grants: NameGrants

    @property
    def now(self) -> float: ...


class NameCheck:
    """Claims to names of subscribers, by identity."""

    def __init__(
        self,
        host: ClaimsContext,
        attachments: Mapping[str, EdgeAttachment],
        slots: Mapping[str, ReservedSlot],
        time_factor: float,
    ) -> None:
        self.host, self.attachments, self.slots, self.seconds = host, attachments, slots, REFUSED_SECONDS * time_factor
        self._refused: dict[tuple[str, str], float] = {}

    def refusal(self, subscriber: str, identity: str) -> tuple[str, str] | None:
        """Why this identity may not attach the subscriber here, as a code and a text; None: ask the head."""
        names = self.host.name_grants
        attachment, slot = self.attachments.get(subscriber), self.slots.get(subscriber)
        maker = slot.identity if slot is not None else ""
        if attachment is not None and (attachment.is_verified or attachment.identity == identity):
            maker = attachment.identity
        if not names.permits(identity, subscriber, maker) or self._is_refused(subscriber, identity):
            return NOT_PERMITTED, foreign_name("subscriber", subscriber)
        if attachment is not None and attachment.identity != identity and not names.permits(
            identity, subscriber, attachment.identity
        ):  # fmt: skip
            return "undecided", REFUSALS["undecided"]
        return None

    def refused(self, subscriber: str, identity: str) -> None:
        """Remember that the head has refused this name to this identity."""
        if len(self._refused) >= REFUSED_AT_MOST:
            self.expire()
        if len(self._refused) < REFUSED_AT_MOST:
            self._refused[subscriber, identity] = self.host.now + self.seconds

    def _is_refused(self, subscriber: str, identity: str) -> bool:
        return self._refused.get((subscriber, identity), 0.0) > self.host.now

    def expire(self) -> None:
        self._refused = {claim: until for claim, until in self._refused.items() if until > self.host.now}
