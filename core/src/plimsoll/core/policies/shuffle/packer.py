"""Bring every broker to a level: a broker above it gives until it is not, to brokers that stay at or below it.

A broker at or below the level gives only to make room for a set that fits nowhere else. So few subscribers move, and
each at most once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from plimsoll.core.policies.model.load import METRICS, LoadMeasures
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.policies.model.ranking import RankKey, RowRanking
from plimsoll.core.policies.shuffle.broker_model import ShuffledBroker
from plimsoll.core.policies.shuffle.plan import METRIC_WORDS, highest_metric

MIN_RELIEF = 1e-6
TAKERS_AT_MOST = 12
"""Brokers considered as takers of a set of subscriptions: the least loaded."""

ROOM_ROWS = 12
"""Sets of a broker considered when one has to go to make room for another."""


TRIES_AT_MOST = 100
"""Attempts at making room."""

FEW_ROWS = 64
"""Room is made only for a broker with at most this many sets: with more, sets are lighter and it gains nothing."""

PackingWish = tuple[int, float, ProfileRow]
"""How many of a row should go, and the relief by each of them."""


@dataclass(frozen=True, slots=True)
class PackingMove:
    """`count` subscribers of a row go from one broker to another. `relief`: of the source's excess, per subscriber."""

    row: ProfileRow
    count: int
    source: str
    target: str
    relief: float


class LevelPacker:
    """Brokers on their way to `levels`; `takes` names those that may take, `room` is how many may move.

    `tries`: remaining attempts at making room.
    """

    def __init__(
        self,
        brokers: Mapping[str, ShuffledBroker],
        levels: Mapping[str, float],
        parameters: BalancingParameters,
        takes: Set[str],
        room: int,
        tries: int = TRIES_AT_MOST,
    ) -> None:
        self.brokers = {name: holding.copy() for name, holding in brokers.items()}
        self.levels, self.parameters, self.takes = levels, parameters, takes
        self.room, self.tries = room, tries
        self.moves: list[PlanMove] = []
        self.stuck = ""
        self.is_limited = False
        self._lightest: list[str] | None = None

    def pack(self) -> bool:
        """Whether all reach their levels; if not, `stuck` is the first that does not."""
        for name in sorted(self.brokers, key=lambda each: (-self.high(each), each)):
            if not self._relieve(name):
                self.stuck = name
                return False
        return True

    def high(self, name: str) -> float:
        """The current highest metric of a broker."""
        return highest_metric(self.brokers[name].now, self.parameters.normalization_seconds)[0]

    def _relieve(self, name: str) -> bool:
        giver = self.brokers[name]
        ranking: RowRanking[PackingWish] = RowRanking(lambda row: self._evaluated(giver, row))
        rows = {key: giver.rows[key] for key, names in giver.free.items() if names}
        while self.high(name) > self.levels[name] + MIN_RELIEF:
            alone = giver.alone
            if not self.room:
                self.is_limited = True
                return False
            if (choice := self._best(giver, ranking, rows)) is not None:
                self._apply(choice)
            elif self.room > 1 and self.tries > 0 and (made := self._room_making_moves(giver)):
                for each in made:
                    self._apply(each)
                ranking = RowRanking(lambda row: self._evaluated(giver, row))
                rows = {key: giver.rows[key] for key, names in giver.free.items() if names}
            else:
                return False
            if newly := giver.alone & ~alone:
                ranking.invalidate([key for key, row in rows.items() if row.bits & newly])
        return True

    # -- choices

    def _best(
        self, giver: ShuffledBroker, ranking: RowRanking[PackingWish], rows: dict[str, ProfileRow]
    ) -> PackingMove | None:
        """The move with the most relief per subscriber that has a taker. A row without a taker is not tried again."""
        while (found := ranking.best(rows)) is not None:
            wanted, relief, row = found
            offers = [(-count, rise, name) for name, count, rise in self._offers(giver, row, wanted)]
            if not offers:
                del rows[row.key]
                continue
            count, _, target = min(offers)
            if -count == len(giver.free[row.key]):
                del rows[row.key]
            return PackingMove(row, -count, giver.name, target, relief)
        return None

    def _evaluated(self, giver: ShuffledBroker, row: ProfileRow) -> tuple[RankKey, PackingWish] | None:
        """How many of a row are wanted, and the relief by each of them."""
        wanted = self._wanted(giver, row, min(len(giver.free[row.key]), self.room))
        relief = self._relief(giver, row, wanted) / wanted
        if relief <= MIN_RELIEF * MIN_RELIEF:
            return None
        return (-relief, giver.rate(row.bits), 0.0, 0, row.key), (wanted, relief, row)

    def _wanted(self, giver: ShuffledBroker, row: ProfileRow, most: int) -> int:
        """The fewest that bring the giver to its level, or all that may go."""
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            is_enough = self._excess(giver.name, giver.without(row, middle)) <= MIN_RELIEF
            low, high = (low, middle) if is_enough else (middle + 1, high)
        return low

    def _offers(self, giver: ShuffledBroker, row: ProfileRow, wanted: int) -> Iterator[tuple[str, int, float]]:
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

    def _fits(self, name: str, after: LoadMeasures) -> bool:
        return self._excess(name, after) <= MIN_RELIEF and not self.parameters.thresholds.above_lower(after)

    def _excess(self, name: str, at: LoadMeasures) -> float:
        """How far all metrics of a broker together are above its level."""
        factor, level = self.parameters.normalization_seconds, self.levels[name]
        return sum(max(0.0, at.of_metric(metric, factor) - level) for metric in METRICS)

    def _relief(self, giver: ShuffledBroker, row: ProfileRow, count: int) -> float:
        return self._excess(giver.name, giver.now) - self._excess(giver.name, giver.without(row, count))

    def _rise(self, before: LoadMeasures, after: LoadMeasures) -> float:
        factor = self.parameters.normalization_seconds
        return sum(max(0.0, after.of_metric(each, factor) - before.of_metric(each, factor)) for each in METRICS)

    # -- making room

    def _room_making_moves(self, giver: ShuffledBroker) -> list[PackingMove]:
        """Two moves of which the first makes room for the second; none if there is no such pair.

        The first is as light as possible, since it moves only to make room.
        """
        name = giver.name
        rows = [giver.rows[key] for key, names in giver.free.items() if names]
        if len(rows) > FEW_ROWS:
            return []
        reliefs = [(self._relief(giver, row, 1), row) for row in rows]
        best = sorted((each for each in reliefs if each[0] > MIN_RELIEF), key=lambda each: (-each[0], each[1].key))
        for relief, row in best[:ROOM_ROWS]:
            for middle in self._order():
                if middle == name or not self.brokers[middle].may_take(row):
                    continue
                if found := self._room_at(middle, PackingMove(row, 1, name, middle, relief)):
                    return found
        return []

    def _room_at(self, middle: str, wanted: PackingMove) -> list[PackingMove]:
        """Subscribers of the middle broker that can go elsewhere so that the wanted move fits; both moves in order."""
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
                    return [PackingMove(going, 1, middle, name, 0.0), wanted]
            if giver.name in self.takes and giver.may_take(going) and (trade := self._trade(wanted, going)):
                return trade
        return []

    def _trade(self, wanted: PackingMove, going: ProfileRow) -> list[PackingMove]:
        """The two swap, if that relieves the giver; the broker that can bear both for a moment takes first."""
        giver, middle = self.brokers[wanted.source], self.brokers[wanted.target]
        left = giver.copy()
        left.give(wanted.row, 1)
        after = left.with_(going, 1, middle)
        if self._excess(giver.name, after) >= self._excess(giver.name, giver.now) - MIN_RELIEF:
            return []
        back, overloaded = PackingMove(going, 1, middle.name, giver.name, 0.0), self.parameters.thresholds.above_lower
        if overloaded(after):  # it takes as well, even if it ends lower than it was
            return []
        if not overloaded(middle.with_(wanted.row, 1, giver)):
            return [wanted, back]
        return [] if overloaded(giver.with_(going, 1, middle)) else [back, wanted]

    # -- changes

    def _apply(self, choice: PackingMove) -> None:
        source, target = self.brokers[choice.source], self.brokers[choice.target]
        factor = self.parameters.normalization_seconds
        high, metric = highest_metric(source.now, factor)
        extra = target.extra_rate(choice.row, source)
        target.take(choice.row, choice.count, source)
        names = source.give(choice.row, choice.count)
        self._lightest = None
        self.room -= choice.count
        reached = highest_metric(target.now, factor)[0]
        comes_to = f"{choice.target} takes in {extra:.1f}/s more for it and comes to {reached:.1%}"
        level = self.levels[choice.source]
        why = f"{choice.source} is at {high:.1%} by {METRIC_WORDS[metric]}, the level is {level:.1%}"
        if choice.relief <= 0.0:
            why = f"makes room at {choice.source}"
        self.moves.append(PlanMove(choice.row.key, names, choice.source, choice.target, f"{why}; {comes_to}"))
