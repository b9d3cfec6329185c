"""Exponential backoff with jitter, for each key by itself.

An operation may fail until its cause is removed, and must neither be repeated without a pause nor delay the others.
Callers pass the time, and the random generator for the pauses.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

LONGEST_PAUSE_SECONDS = 60.0


def backoff_pauses(first: float, longest: float, generator: random.Random) -> Iterator[float]:
    """Pauses between tries, without end: about `first`, then twice as long, and so on until `longest`."""
    pause = min(first, longest)
    while True:
        yield generator.uniform(pause / 2, pause)
        pause = min(2 * pause, longest)


@dataclass(frozen=True)
class _FailedKey:
    wanted: str
    pause: float
    due: float


class Backoff:
    """The keys that have failed, and when each is due again. `now` is seconds of one monotonic clock."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self._failed: dict[Hashable, _FailedKey] = {}

    def is_due(self, key: Hashable, now: float, wanted: str = "") -> bool:
        """Whether a key may be tried: it has not failed, its pause is over, or `wanted` differs from what failed."""
        known = self._failed.get(key)
        return known is None or now >= known.due or wanted != known.wanted

    def failed(
        self, key: Hashable, now: float, first: float, *, wanted: str = "", longest: float = LONGEST_PAUSE_SECONDS
    ) -> float:
        """Note a failure; the pause in seconds until the key is due again: about `first`, then twice that, ..."""
        known = self._failed.get(key)
        again = known is not None and known.wanted == wanted
        pause = min(2 * known.pause, longest) if known is not None and again else min(first, longest)
        after = pause * self._random.uniform(0.5, 1.0)
        self._failed[key] = _FailedKey(wanted, pause, now + after)
        return after

    def succeeded(self, key: Hashable) -> None:
        self._failed.pop(key, None)

    def keep(self, keys: Iterable[Hashable]) -> None:
        """Forget the failures of all other keys."""
        kept = set(keys)
        self._failed = {key: known for key, known in self._failed.items() if key in kept}

    def next(self, now: float) -> float:
        """Seconds until the next key is due; infinite if none has failed."""
        return max(0.0, min((known.due for known in self._failed.values()), default=float("inf")) - now)
