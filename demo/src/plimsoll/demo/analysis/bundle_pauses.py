"""How long subscribers of a bundle waited while it moved: the longest way of a publication, from the journals.

A pause begins before the first publication that waits for its end, so with publications of the moved topics every few
milliseconds this is the pause, to that precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.verify.observations import DeliveryObserved, PublicationIdentity, PublicationObserved
from plimsoll.demo.journal import read_journal
from plimsoll.demo.workload import TOPIC


@dataclass(frozen=True, slots=True)
class MovedBundles:
    """Bundles that moved between two times, on the clock of the journals."""

    bundles: tuple[str, ...]
    start: float
    end: float

    def has(self, topic: int, at: float) -> bool:
        """Whether a publication to a topic of this hash at this time was one of these bundles, while they moved."""
        return self.start <= at <= self.end and any(HashRange.of_name(name).holds(topic) for name in self.bundles)


@dataclass(frozen=True, slots=True)
class Waits:
    """`longest_seconds`: the longest way of a publication; None if there was none. `deliveries`: those counted."""

    longest_seconds: float | None
    deliveries: int


def waits_of(
    moved: Mapping[str, MovedBundles], publishing: Iterable[Path], subscribing: Sequence[Path]
) -> dict[str, Waits]:
    """By the name of each move."""
    during = _published_during(moved, publishing)
    waited: dict[str, list[float]] = {name: [] for name in moved}
    for path in subscribing:
        for seen in read_journal(path):
            if isinstance(seen, DeliveryObserved) and seen.publication in during:
                at, names = during[seen.publication]
                for name in names:
                    waited[name].append(seen.at - at)
    return {name: Waits(max(some, default=None), len(some)) for name, some in waited.items()}


def _published_during(
    moved: Mapping[str, MovedBundles], publishing: Iterable[Path]
) -> dict[PublicationIdentity, tuple[float, list[str]]]:
    """Publications of bundles that were moving: when each was published, and in which moves."""
    found: dict[PublicationIdentity, tuple[float, list[str]]] = {}
    for path in publishing:
        for seen in read_journal(path):
            if isinstance(seen, PublicationObserved) and isinstance(topic := seen.attributes.get(TOPIC), str):
                names = [name for name, move in moved.items() if move.has(topic_hash(topic), seen.at)]
                if names:
                    found[seen.publisher, seen.incarnation, seen.seq] = (seen.at, names)
    return found
