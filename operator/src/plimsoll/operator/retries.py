"""When to try again what has gone wrong: each subject by itself, after pauses that double and are never quite the same.

What has failed once may fail for as long as nobody mends it; that is no reason to ask without a pause, nor to let
others wait. Time comes in; pauses are drawn from the generator that is given.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

LONGEST_PAUSE_SECONDS = 60.0


def pauses(first: float, longest: float, generator: random.Random) -> Iterator[float]:
    """Pauses between tries, without end: about `first`, then twice as long, and so on until `longest`."""
    pause = min(first, longest)
    while True:
        yield generator.uniform(pause / 2, pause)
        pause = min(2 * pause, longest)


@dataclass(frozen=True)
class _Failed:
    wanted: str
    pause: float
    due: float


class Retries:
    """What has failed, and when each of it is due again. `now` is seconds of one monotonic clock."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self._failed: dict[Hashable, _Failed] = {}

    def is_due(self, key: Hashable, now: float, wanted: str = "") -> bool:
        """Whether something may be tried: it has not failed, its pause is over, or something else is `wanted` of it."""
        known = self._failed.get(key)
        return known is None or now >= known.due or wanted != known.wanted

    def failed(
        self, key: Hashable, now: float, first: float, *, wanted: str = "", longest: float = LONGEST_PAUSE_SECONDS
    ) -> float:
        """Take notice of a failure; after how many seconds it is due again: about `first`, then twice as long, ..."""
        known = self._failed.get(key)
        again = known is not None and known.wanted == wanted
        pause = min(2 * known.pause, longest) if known is not None and again else min(first, longest)
        after = pause * self._random.uniform(0.5, 1.0)
        self._failed[key] = _Failed(wanted, pause, now + after)
        return after

    def succeeded(self, key: Hashable) -> None:
        self._failed.pop(key, None)

    def keep(self, keys: Iterable[Hashable]) -> None:
        """Forget of all others that they have failed: nothing is to be done about them any more."""
        kept = set(keys)
        self._failed = {key: known for key, known in self._failed.items() if key in kept}

    def next(self, now: float) -> float:
        """Seconds until the next is due; infinite if nothing has failed."""
        return max(0.0, min((known.due for known in self._failed.values()), default=float("inf")) - now)
