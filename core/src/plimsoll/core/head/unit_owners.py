"""Owners of units: the edge to which all units of one key go, whatever a key stands for in a policy.

A key has no owner before its first unit joins (Pulsar 2023, "Brokers dynamically own bundles on demand"). Its owner is
then the edge that the policy's placer draws, until a mediator assigns another one or releases it, or the owner can take
no newcomers: it is gone, leaves or is cordoned. After a restart of the head it is the edge that serves most of its
units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.placement import EdgeCandidate, Placement
from plimsoll.core.protocol.topic_units import hash_of_unit


class OrderedKey(Protocol):
    """What stands for the topics that have one owner: hashable, with a total order."""

    def __hash__(self) -> int: ...
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=OrderedKey)

NEW_KEY_RATE = 1.0
"""Publications per second that a key is taken to bring at least: an idle cluster spreads its keys, too."""


class UnitOwners(HeadPart, Generic[K]):
    """`attribute`: whose values are topics, empty under a policy without such keys. `owners`: edges by key.

    `heeds_preference`: whether a key without an owner goes to the edge that its first unit prefers.
    """

    heeds_preference: ClassVar[bool] = False

    def __init__(self) -> None:
        self.attribute = ""
        self.owners: dict[K, str] = {}

    @property
    def is_used(self) -> bool:
        """Whether the policy has such keys."""
        return bool(self.attribute)

    def key_of(self, unit: int) -> K:
        """The key of the units of this hash."""
        raise NotImplementedError

    def beside(self, key: K) -> Mapping[str, int]:
        """How many keys each edge owns that should be apart from this one."""
        del key
        return {}

    def adopt(self, served: Mapping[str, str]) -> None:
        """After a start: the owner of a key without one is the edge that serves most of its units.

        `served`: the edge of each subscriber.
        """
        counts: dict[K, Counter[str]] = {}
        for name, edge in served.items():
            topic = hash_of_unit(name) if self.is_used else None
            if topic is not None:
                counts.setdefault(self.key_of(topic), Counter())[edge] += 1
        for key, edges in counts.items():
            most = min(edges, key=lambda edge: (-edges[edge], edge))
            self.owners.setdefault(key, most)

    def attached(self, subscriber: str, edge: str) -> None:
        """A subscriber has attached to an edge: if it is a unit of a key without an owner, the edge owns that.

        It was told of the edge before the key was released, or by an earlier life of the head.
        """
        unit = hash_of_unit(subscriber) if self.is_used else None
        if unit is not None:
            self.owners.setdefault(self.key_of(unit), edge)

    def place(
        self, unit: int, placement: Placement, exclude: Collection[str], prefer: str = ""
    ) -> EdgeCandidate | None:
        """The edge for a unit of this hash: the owner of its key, or an edge that the placer draws.

        The drawn edge becomes the owner if the key has none that can take newcomers. A client that cannot reach the
        owner (`exclude`) is sent elsewhere for the time being, and the key stays. `prefer`: the edge that the client
        would like; it counts where a key has no owner, and where such keys heed it.
        """
        key = self.key_of(unit)
        owner = placement.open_candidate(self.owners.get(key, ""))
        if owner is not None and owner.name not in exclude:
            return placement.note(owner)
        wanted = prefer if self.heeds_preference and owner is None else ""
        drawn = placement.place(exclude, wanted, rate=self._usual_rate(placement), beside=self.beside(key))
        if drawn is not None and owner is None:
            self.owners[key] = drawn.name
        return drawn

    def _usual_rate(self, placement: Placement) -> float:
        """What a key is taken to bring before its first report, so that not all of a burst go to one edge."""
        usual = placement.message_rate / len(self.owners) if self.owners else 0.0
        return max(usual, NEW_KEY_RATE)
