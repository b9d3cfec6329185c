"""Dialled links to heads with a standby: when such a head is silent or leaves, another process may lead at its address.

A link outlives its connections. So such a head is dialled again at the same address, and HELLO is sent there: the same
process goes on with the link where it was, and another one answers that it does not know it. A head that is only slow
loses nothing but a connection. Peers of one head pause for longer or shorter, each by the number of its link, so that
not all of them come at the same moments.
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
LEAST_BEATS: Final = 2
"""No head may have its peers dial again after less silence than this number of their heartbeats, whatever it says."""
SPREAD: Final = 0.25
_MIX: Final = 0x9E3779B1
"""Odd, and near 2**32 divided by the golden ratio: numbers that follow one another are far apart."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """At one link: `count` have been made, `pause_seconds` apart by now; the next one is due `at`."""

    pause_seconds: float
    at: float
    count: int = 0

    def made(self, now: float, longest_seconds: float, stretch: float) -> Attempts:
        """With one more that is made now; `stretch`: times the pause behind it."""
        count = self.count + 1
        pause = min(self.pause_seconds * (2 if count >= EVEN_ATTEMPTS else 1), longest_seconds)
        return Attempts(pause, now + pause * stretch, count)


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
            attempts = Attempts(GOODBYE_SECONDS, now + GOODBYE_SECONDS * _stretch(link))
            self._attempts[link] = attempts
            self.next_at = min(self.next_at, attempts.at)

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
                attempts = attempts.made(now, silence, _stretch(link))
            if attempts.count or link in before:
                self._attempts[link] = attempts
            self.next_at = min(self.next_at, attempts.at)
        return found


def _silence(link: Link) -> float:
    """Seconds after which another process may lead there; 0: none can. A head that is well may be silent for a beat."""
    told = link.remote.silence_ms / 1000 if link.remote is not None else 0.0
    return max(told, LEAST_BEATS * link.limits.heartbeat_seconds) if told else 0.0


def _stretch(link: Link) -> float:
    """The share of its pauses that this link waits for, by its number: from 1 - `SPREAD` to 1 + `SPREAD`."""
    return 1 - SPREAD + 2 * SPREAD * (link.id * _MIX % 2**32) / 2**32
