"""Dialled links to heads with a standby: when such a head is silent or leaves, another process may lead at its address.

A link outlives its connections. So such a head is dialled again at the same address, and HELLO is sent there: the same
process goes on with the link where it was, and another one answers that it does not know it. A head that is only slow
loses nothing but a connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plimsoll.core.transport.link import NEVER, Link

STEPS: Final = 8
"""The pause between two attempts is this part of the silence before the first one."""
GOODBYE_SECONDS: Final = 0.1
"""The same, and the wait for the first attempt, once a head has said goodbye: its standby leads in a moment."""
EVEN_ATTEMPTS: Final = 5
"""After this many attempts each pause is twice the last one, up to the silence: a handshake must have time to end."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """At one link: `count` have been made, `pause_seconds` apart at first; the next one is due `at`."""

    pause_seconds: float
    at: float
    count: int = 0

    def made(self, now: float, longest_seconds: float) -> Attempts:
        """With one more that is made now."""
        count = self.count + 1
        pause = min(self.pause_seconds * 2.0 ** max(count + 1 - EVEN_ATTEMPTS, 0), longest_seconds)
        return Attempts(self.pause_seconds, now + pause, count)


class SilentHeads:
    """`next_at`: when to look next; never, as long as no head has said that it has a standby."""

    def __init__(self) -> None:
        self.next_at = NEVER
        self._attempts: dict[Link, Attempts] = {}

    def opened(self, link: Link, now: float) -> None:
        """A dialled link has been opened: look once its head may have been silent for too long."""
        if silence := _silence(link):
            self.next_at = min(self.next_at, now + silence)

    def left(self, link: Link, now: float) -> None:
        """The head of a dialled link has said goodbye."""
        if _silence(link):
            self._attempts[link] = Attempts(GOODBYE_SECONDS, now + GOODBYE_SECONDS)
            self.next_at = min(self.next_at, now + GOODBYE_SECONDS)

    def due(self, links: Iterable[Link], now: float) -> list[Link]:
        """Of the dialled links, those whose heads are to be dialled again now."""
        before, self._attempts = self._attempts, {}
        self.next_at = NEVER
        found = []
        for link in links:
            silence = _silence(link)
            if not silence:
                continue
            # An attempt has closed the link, and so has the goodbye; once it is open again there has been an answer.
            attempts = None if link.open else before.get(link)
            if attempts is None:
                attempts = Attempts(silence / STEPS, link.last_heard + silence)
            if attempts.at <= now:
                found.append(link)
                attempts = attempts.made(now, silence)
            if attempts.count or link in before:
                self._attempts[link] = attempts
            self.next_at = min(self.next_at, attempts.at)
        return found


def _silence(link: Link) -> float:
    """Seconds after which another process may lead there; 0: none can."""
    return link.remote.silence_ms / 1000 if link.remote is not None else 0.0
