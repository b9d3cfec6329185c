"""Bring every broker to a level: who is above it gives until it is not, to whoever stays at or below it.

Nobody at or below the level gives, unless that makes room for what fits nowhere else. So few move, and each at most
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from plimsoll.core.policies.fleet import METRICS, Measures
from plimsoll.core.policies.parameters import Parameters
from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.ranking import Order, Ranking
from plimsoll.core.policies.shuffle.holding import Holding
from plimsoll.core.policies.shuffle.values import WORDS, highest
from plimsoll.core.policies.steps import Move

LEAST = 1e-6
TAKERS_AT_MOST = 12
"""So many brokers, those that carry least, are considered for each set of subscriptions."""

ROOM_ROWS = 12
"""So many sets of a broker are looked at where one has to go to make room for another."""


TRIES_AT_MOST = 100
"""So often it is tried to make room."""

FEW_ROWS = 64
"""Room is made for somebody of so few sets only: where there are more, they are lighter, and it brings nothing."""

Wanted = tuple[int, float, Row]
"""How many of a row should go, and the relief by each of them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """So many of a row go from one to another. `relief`: of what the source is above its level, per subscriber."""

    row: Row
    count: int
    source: str
    target: str
    relief: float


class Packing:
    """Brokers on their way to `levels`; `takes` names those that may take, `room` is how many may move.

    `tries`: how often it may be tried to make room.
    """

    def __init__(
        self, brokers: Mapping[str, Holding], levels: Mapping[str, float], parameters: Parameters, takes: Set[str],
        room: int, tries: int = TRIES_AT_MOST,
    ) -> None:  # fmt: skip
        self.brokers = {name: holding.copy() for name, holding in brokers.items()}
        self.levels, self.parameters, self.takes = levels, parameters, takes
        self.room, self.tries = room, tries
        self.moves: list[Move] = []
        self.stuck = ""
        self.is_limited = False
        self._lightest: list[str] | None = None

    def run(self) -> bool:
        """Whether all come to their levels; if not, `stuck` is the first that does not."""
        for name in sorted(self.brokers, key=lambda each: (-self.high(each), each)):
            if not self._relieve(name):
                self.stuck = name
                return False
        return True

    def high(self, name: str) -> float:
        """The highest metric of a broker as it is now."""
        return highest(self.brokers[name].now, self.parameters.normalization_seconds)[0]

    def _relieve(self, name: str) -> bool:
        giver = self.brokers[name]
        ranking: Ranking[Wanted] = Ranking(lambda row: self._looked(giver, row))
        rows = {key: giver.rows[key] for key, names in giver.free.items() if names}
        while self.high(name) > self.levels[name] + LEAST:
            alone = giver.alone
            if not self.room:
                self.is_limited = True
                return False
            if (choice := self._best(giver, ranking, rows)) is not None:
                self._do(choice)
            elif self.room > 1 and self.tries > 0 and (made := self._made_room(giver)):
                for each in made:
                    self._do(each)
                ranking = Ranking(lambda row: self._looked(giver, row))
                rows = {key: giver.rows[key] for key, names in giver.free.items() if names}
            else:
                return False
            if newly := giver.alone & ~alone:
                ranking.again([key for key, row in rows.items() if row.bits & newly])
        return True

    # -- what is best

    def _best(self, giver: Holding, ranking: Ranking[Wanted], rows: dict[str, Row]) -> Choice | None:
        """What relieves most for each that moves, and can go somewhere. What cannot is not looked at again."""
        while (found := ranking.best(rows)) is not None:
            wanted, relief, row = found
            offers = [(-count, rise, name) for name, count, rise in self._offers(giver, row, wanted)]
            if not offers:
                del rows[row.key]
                continue
            count, _, target = min(offers)
            if -count == len(giver.free[row.key]):
                del rows[row.key]
            return Choice(row, -count, giver.name, target, relief)
        return None

    def _looked(self, giver: Holding, row: Row) -> tuple[Order, Wanted] | None:
        """How many of a row are wanted, and the relief by each of them."""
        wanted = self._wanted(giver, row, min(len(giver.free[row.key]), self.room))
        relief = self._relief(giver, row, wanted) / wanted
        if relief <= LEAST * LEAST:
            return None
        return (-relief, giver.rate(row.bits), 0.0, 0, row.key), (wanted, relief, row)

    def _wanted(self, giver: Holding, row: Row, most: int) -> int:
        """The fewest that bring the giver to its level, or all that may go."""
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            is_enough = self._excess(giver.name, giver.without(row, middle)) <= LEAST
            low, high = (low, middle) if is_enough else (middle + 1, high)
        return low

    def _offers(self, giver: Holding, row: Row, wanted: int) -> Iterator[tuple[str, int, float]]:
        """How many each broker could take, and by how much its metrics rise together."""
        for name in self._order():
            if name == giver.name or not self.brokers[name].may_take(row):
                continue
            taker = self.brokers[name]
            low, high = (wanted, wanted) if self._fits(name, taker.with_(row, wanted, giver)) else (0, wanted - 1)
            while low < high:
                middle = (low + high + 1) // 2
                fits = self._fits(name, taker.with_(row, middle, giver))
                low, high = (middle, high) if fits else (low, middle - 1)
            if low:
                yield name, low, self._rise(taker.now, taker.with_(row, low, giver))

    def _order(self) -> list[str]:
        """Those that may take, the lightest first."""
        if self._lightest is None:
            self._lightest = sorted(self.takes, key=lambda name: (self.high(name), name))[:TAKERS_AT_MOST]
        return self._lightest

    def _fits(self, name: str, after: Measures) -> bool:
        return self._excess(name, after) <= LEAST and not self.parameters.thresholds.above_lower(after)

    def _excess(self, name: str, at: Measures) -> float:
        """By how much all metrics of a broker together are above its level."""
        factor, level = self.parameters.normalization_seconds, self.levels[name]
        return sum(max(0.0, at.of_metric(metric, factor) - level) for metric in METRICS)

    def _relief(self, giver: Holding, row: Row, count: int) -> float:
        return self._excess(giver.name, giver.now) - self._excess(giver.name, giver.without(row, count))

    def _rise(self, before: Measures, after: Measures) -> float:
        factor = self.parameters.normalization_seconds
        return sum(max(0.0, after.of_metric(each, factor) - before.of_metric(each, factor)) for each in METRICS)

    # -- making room

    def _made_room(self, giver: Holding) -> list[Choice]:
        """Two moves of which the first makes room for the second; none if there are no such two.

        What goes first is as light as can be: it moves for nothing but this.
        """
        name = giver.name
        rows = [giver.rows[key] for key, names in giver.free.items() if names]
        if len(rows) > FEW_ROWS:
            return []
        reliefs = [(self._relief(giver, row, 1), row) for row in rows]
        best = sorted((each for each in reliefs if each[0] > LEAST), key=lambda each: (-each[0], each[1].key))
        for relief, row in best[:ROOM_ROWS]:
            for middle in self._order():
                if middle == name or not self.brokers[middle].may_take(row):
                    continue
                if found := self._room_at(middle, Choice(row, 1, name, middle, relief)):
                    return found
        return []

    def _room_at(self, middle: str, wanted: Choice) -> list[Choice]:
        """Somebody of the middle who can go elsewhere, so that what is wanted fits; both moves in order."""
        holding, giver = self.brokers[middle], self.brokers[wanted.source]
        free = [key for key, names in holding.free.items() if names and key != wanted.row.key]
        for key in sorted(free, key=lambda each: (holding.rate(holding.rows[each].bits), each))[:ROOM_ROWS]:
            if self.tries <= 0:
                return []
            self.tries -= 1
            going, left = holding.rows[key], holding.copy()
            left.give(going, 1)
            if not self._fits(middle, left.with_(wanted.row, 1, giver)):
                continue
            for name in self._order():
                taker = self.brokers[name]
                if name in (middle, giver.name) or not taker.may_take(going):
                    continue
                if self._fits(name, taker.with_(going, 1, holding)):
                    return [Choice(going, 1, middle, name, 0.0), wanted]
            if giver.name in self.takes and giver.may_take(going) and (trade := self._trade(wanted, going)):
                return trade
        return []

    def _trade(self, wanted: Choice, going: Row) -> list[Choice]:
        """The two change places, if that relieves the giver; whoever can bear both for a moment takes first."""
        giver, middle = self.brokers[wanted.source], self.brokers[wanted.target]
        left = giver.copy()
        left.give(wanted.row, 1)
        after = left.with_(going, 1, middle)
        if self._excess(giver.name, after) >= self._excess(giver.name, giver.now) - LEAST:
            return []
        back, overloaded = Choice(going, 1, middle.name, giver.name, 0.0), self.parameters.thresholds.above_lower
        if not overloaded(middle.with_(wanted.row, 1, giver)):
            return [wanted, back]
        return [] if overloaded(giver.with_(going, 1, middle)) else [back, wanted]

    # -- moving

    def _do(self, choice: Choice) -> None:
        source, target = self.brokers[choice.source], self.brokers[choice.target]
        factor = self.parameters.normalization_seconds
        high, metric = highest(source.now, factor)
        extra = target.extra_rate(choice.row, source)
        target.take(choice.row, choice.count, source)
        names = source.give(choice.row, choice.count)
        self._lightest = None
        self.room -= choice.count
        comes_to = (
            f"{choice.target} takes in {extra:.1f}/s more for it and comes to {highest(target.now, factor)[0]:.1%}"
        )
        level = self.levels[choice.source]
        why = f"{choice.source} is at {high:.1%} by {WORDS[metric]}, the level is {level:.1%}"
        if choice.relief <= 0.0:
            why = f"makes room at {choice.source}"
        self.moves.append(Move(choice.row.key, names, choice.source, choice.target, f"{why}; {comes_to}"))
