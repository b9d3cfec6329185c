"""Dialled links to heads with a standby: when such a head is silent, another process may lead at its address.

A link outlives its connections. So a silent head is dialled anew at the same address, and HELLO is said there: the same
process goes on with the link where it was, and another one answers that it does not know it. A head that is only slow
loses nothing but a connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from plimsoll.core.transport.link import NEVER, Link

STEPS: Final = 8
"""The pause between two attempts is this part of the silence before the first one."""
EVEN_ATTEMPTS: Final = 5
"""After so many attempts each pause is twice the last one: handshakes with a slow head must have time to end."""


class SilentHeads:
    """`next_at`: when to look next; never, as long as no head has said that it has a standby."""

    def __init__(self) -> None:
        self.next_at = NEVER
        self._attempts: dict[Link, tuple[int, float]] = {}

    def opened(self, link: Link, now: float) -> None:
        """A dialled link has been opened: look once its head may have been silent for too long."""
        if silence := _silence(link):
            self.next_at = min(self.next_at, now + silence)

    def due(self, links: Iterable[Link], now: float) -> list[Link]:
        """Of the dialled links, those whose heads are to be dialled anew now."""
        before, self._attempts = self._attempts, {}
        self.next_at = NEVER
        found = []
        for link in links:
            silence = _silence(link)
            if not silence:
                continue
            at = link.last_heard + silence
            if at <= now:
                count, at = before.get(link, (0, at))
                if at <= now:
                    found.append(link)
                    count, at = count + 1, now + silence / STEPS * 2.0 ** max(count + 1 - EVEN_ATTEMPTS, 0)
                self._attempts[link] = count, at
            self.next_at = min(self.next_at, at)
        return found


def _silence(link: Link) -> float:
    """Seconds after which another process may lead there; 0: none can."""
    return link.remote.silence_ms / 1000 if link.remote is not None else 0.0
