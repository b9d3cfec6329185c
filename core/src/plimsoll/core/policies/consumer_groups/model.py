"""The values of decisions on slices: loads of consumers, moves between them, and a plan with its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

IDLE_COST = 1e-6
"""What a slice is taken to cost at least, in seconds of work per second: idle slices are spread, too."""


@dataclass(frozen=True, slots=True)
class SliceLoad:
    """What a slice brings: items per second, seconds of work for each, and items that wait.

    `is_known`: False if no consumer that has it has reported it yet.
    """

    number: int
    items_per_second: float = 0.0
    seconds_per_item: float = 0.0
    backlog: int = 0
    is_known: bool = True

    @property
    def cost(self) -> float:
        """Seconds of work per second."""
        return self.items_per_second * self.seconds_per_item + IDLE_COST


@dataclass(frozen=True, slots=True)
class ConsumerLoad:
    """A consumer as it reports itself. `cpu`, `memory`: of its process, 0 to 1 of what it may use.

    `has_measured`: whether it has reported since its slices changed last. `is_leaving`: it wants to give all.
    `takes`: False if it is to get no slices, and keeps those that it has.
    """

    name: str
    slices: tuple[SliceLoad, ...] = ()
    cpu: float = 0.0
    memory: float = 0.0
    has_measured: bool = True
    is_leaving: bool = False
    takes: bool = True

    @property
    def stays(self) -> bool:
        """Whether policies may move slices from it and to it."""
        return self.takes and not self.is_leaving

    @property
    def usage(self) -> float:
        """DPSLB 2014, 3.3: the load of a node is that of its processor and memory; the higher one counts."""
        return max(self.cpu, self.memory)

    @property
    def cost(self) -> float:
        """What all its slices cost, in seconds of work per second."""
        return sum(each.cost for each in self.slices)


@dataclass(frozen=True, slots=True, order=True)
class SliceMove:
    """A slice from its giver to its taker; the giver is empty for a slice that no member has."""

    giver: str
    taker: str
    number: int


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """`sessions`: each of one giver and one taker, to be done one after another (DPSLB 2014, 3.4).

    `reason`: why it ends there. `idle`: consumers that stay without a slice, with the reason.
    """

    sessions: tuple[tuple[SliceMove, ...], ...] = ()
    reason: str = ""
    idle: tuple[tuple[str, str], ...] = ()

    @property
    def moves(self) -> tuple[SliceMove, ...]:
        return tuple(move for session in self.sessions for move in session)


class SlicePolicy(Protocol):
    """An algorithm that evens out consumers."""

    def balance(self, consumers: Sequence[ConsumerLoad]) -> SlicePlan:
        """Moves between consumers that stay; the order of `consumers` changes nothing."""


@dataclass
class Shares:
    """Who has which slices, while a plan is made; costs go along with moves."""

    slices: dict[str, dict[int, SliceLoad]] = field(default_factory=dict)
    moves: list[SliceMove] = field(default_factory=list)
    _costs: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._costs = {name: sum(each.cost for each in own.values()) for name, own in self.slices.items()}

    @classmethod
    def of(cls, consumers: Iterable[ConsumerLoad]) -> Shares:
        return cls({c.name: {each.number: each for each in c.slices} for c in sorted(consumers, key=lambda c: c.name)})

    def cost(self, name: str) -> float:
        return self._costs[name]

    def move(self, number: int, giver: str, taker: str) -> None:
        load = self.slices[taker][number] = self.slices[giver].pop(number)
        self._costs[giver] -= load.cost
        self._costs[taker] += load.cost
        self.moves.append(SliceMove(giver, taker, number))

    def sessions(self) -> tuple[tuple[SliceMove, ...], ...]:
        """The moves by pairs of giver and taker, in the order in which the pairs came up.

        A slice that moved twice while planning moves once, and one that came back does not.
        """
        first = {move.number: move.giver for move in reversed(self.moves)}
        last = {move.number: move.taker for move in self.moves}
        pairs: dict[tuple[str, str], list[SliceMove]] = {}
        for number in dict.fromkeys(move.number for move in self.moves):
            if first[number] != last[number]:
                move = SliceMove(first[number], last[number], number)
                pairs.setdefault((move.giver, move.taker), []).append(move)
        return tuple(tuple(sorted(pair)) for pair in pairs.values())


def owners(consumers: Iterable[ConsumerLoad]) -> Mapping[int, str]:
    """The consumer of each slice."""
    return {each.number: c.name for c in consumers for each in c.slices}
