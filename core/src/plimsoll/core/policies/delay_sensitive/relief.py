"""Which topics leave an overloaded edge, and where they go: the steps of a plan. Tao, Poslad, Bigham 2013, IV.D.

All edges that are LOW are candidates, the one with the least of what is overloaded first. Topics go in the order of
their groups, whole, to the first candidate that can take them, until the source is no longer overloaded; several edges
may take some. Units go singly only if no candidate takes any topic. Edges of another cluster, if they take part, only
take, and come after all of the own cluster (IV.D).

By the letter a topic goes wherever it overloads no edge. Ours: only if it lessens what is overloaded, and if the target
stays below its lower thresholds, or it would be the next to shed (`is_letter` is false); and to an edge without a topic
that is correlated with it, if one takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.core.policies.delay_sensitive.fleet import DeadlineFleet, ServedTopic
from plimsoll.core.policies.delay_sensitive.limits import (
    UTILIZATIONS,
    DeadlineLimits,
    DeadlineMetric,
    Utilization,
    utilization_of,
)
from plimsoll.core.policies.delay_sensitive.ranking import ranked_topics
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.policies.model.topic_load import topic_of_key
from plimsoll.core.policies.rebalancer import Step, Steps, StepsEnd

Endangered = Callable[[BrokerLoad], Mapping[int, str]]
"""The topics of an edge whose deadline is in danger, by hash, each with why."""

Correlated = Callable[[int, Iterable[int]], Iterator[tuple[int, str]]]
"""The topics among others that are correlated with one, by hash, each with why."""

NOT_RELIEVED: Final = "NoBetter"
"""How a plan ends that leaves an edge overloaded."""

Moving = Generator[Step, None, DeadlineFleet]


@dataclass
class TopicMoves:
    """The moves of one plan. `endangered` is asked for the loads that steps lead to as well."""

    limits: DeadlineLimits
    endangered: Endangered
    is_letter: bool = False
    correlated: Correlated | None = None
    _avoided: dict[int, str] = field(default_factory=dict)
    """Topics that did not go where one is that is correlated with them, each with where, and why."""

    _rejected: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)
    _left: list[str] = field(default_factory=list)
    _owned: set[int] = field(default_factory=set)
    """Topics of which some edge serves no unit any more, so that the plan names their owner."""

    _sources: frozenset[str] = frozenset()

    def steps(self, fleet: DeadlineFleet) -> Steps:
        """Relieve every overloaded edge, the one with most topics in danger first."""
        sources = [load.name for load in fleet.loads if load.name not in fleet.away and self.overloaded(load)]
        self._sources = frozenset(sources)
        dangers = {load.name: len(self.endangered(load)) for load in fleet.loads}
        for source in sorted(sources, key=lambda name: (-dangers[name], name)):
            fleet = yield from self._relieved(fleet, source)
        if not sources:
            ended, stopped = "NotOverloaded", "no edge is overloaded any more"
        elif self._left:
            ended, stopped = NOT_RELIEVED, "; ".join(self._left[:8])
        else:
            ended, stopped = "Relieved", f"{', '.join(sources[:8])}: no longer overloaded"
        return StepsEnd(ended, stopped, tuple(self._stays(fleet, stopped)))

    def overloaded(self, load: BrokerLoad) -> tuple[DeadlineMetric, ...]:
        """What is overloaded at an edge, in the order in which it is relieved."""
        over: tuple[DeadlineMetric, ...] = self.limits.above_higher(load)
        return (*over, "depth") if self.endangered(load) else over

    def _relieved(self, fleet: DeadlineFleet, source: str) -> Moving:
        tried, before = set[DeadlineMetric](), len(self._moved)
        while True:
            metrics = [each for each in self.overloaded(fleet.load(source)) if each not in tried]
            if not metrics:
                break
            tried.add(metrics[0])
            fleet = yield from self._relieved_of(fleet, source, metrics[0], before)
        if over := self.overloaded(fleet.load(source)):
            self._left.append(f"{source} stays overloaded: {self._told(fleet.load(source), over)}")
        return fleet

    def _relieved_of(self, fleet: DeadlineFleet, source: str, metric: DeadlineMetric, before: int) -> Moving:
        """`before`: how many units had moved when the turn of this source came."""
        candidates = self._candidates(fleet, metric)
        topics = ranked_topics(fleet.served[source].values(), metric, self.endangered(fleet.load(source)))
        if not candidates:
            for topic in topics:
                self._reject("NoCandidate", topic, source, f"stays at {source}: no other edge is LOW")
            return fleet
        for target in candidates:
            fleet = yield from self._whole_topics(fleet, source, target, topics, metric, candidates)
        if len(self._moved) == before:
            for target in candidates:
                fleet = yield from self._single_units(fleet, source, target, topics, metric)
        return fleet

    def _candidates(self, fleet: DeadlineFleet, metric: DeadlineMetric) -> list[str]:
        """The edges that are LOW, those of this cluster first; the least of what is overloaded, then the least used."""
        found = []
        for load in fleet.loads:
            is_low = self.limits.state(load, bool(self.endangered(load))) == "LOW"
            if load.name not in self._sources and load.name in fleet.takes and is_low:
                most = max(utilization_of(load, each) for each in UTILIZATIONS)
                found.append((load.name in fleet.away, _value(load, metric), most, load.name))
        return [name for *_, name in sorted(found)]

    def _whole_topics(
        self,
        fleet: DeadlineFleet,
        source: str,
        target: str,
        topics: Sequence[ServedTopic],
        metric: DeadlineMetric,
        candidates: Sequence[str],
    ) -> Moving:
        for topic in topics:
            if metric not in self.overloaded(fleet.load(source)):
                break
            served = fleet.served[source].get(topic.load.topic)
            if served is None or len(served.units) < len(topic.units):
                continue  # it has left, or some of it
            place = self._apart(fleet, served, source, target, candidates)
            home = _elsewhere(fleet, served, place)
            place = home if home is not None and home in candidates else place
            step = self._step(fleet, served, tuple(served.units), source, place, metric, len(topic.units))
            if step is not None:
                yield step
                fleet = fleet.after(step)
        return fleet

    def _single_units(
        self, fleet: DeadlineFleet, source: str, target: str, topics: Sequence[ServedTopic], metric: DeadlineMetric
    ) -> Moving:
        for topic in topics:
            for name in topic.units:
                served = fleet.served[source].get(topic.load.topic)
                if served is None or name not in served.units or metric not in self.overloaded(fleet.load(source)):
                    continue
                step = self._step(fleet, served, (name,), source, target, metric, len(topic.units))
                if step is None:
                    break  # the others of the topic would bring the target as much
                yield step
                fleet = fleet.after(step)
        return fleet

    def _step(
        self,
        fleet: DeadlineFleet,
        topic: ServedTopic,
        units: tuple[str, ...],
        source: str,
        target: str,
        metric: DeadlineMetric,
        asked: int,
    ) -> Step | None:
        """The step, or None with the reason noted. `asked`: how many units the topic had here before any went."""
        if (elsewhere := _elsewhere(fleet, topic, target)) is not None:
            self._reject(
                "Elsewhere", topic, source, f"stays at {source}: in the cluster of {target} {elsewhere} has it"
            )
            return None
        if _is_too_far(fleet, topic, target):
            why = f"stays at {source}: its way to {target} alone takes longer than {topic.load.required_seconds:g} s"
            self._reject("TooFar", topic, source, why)
            return None
        held = [(name, topic.fixed[name]) for name in units if name in topic.fixed]
        if held:
            self._reject("Staying", topic, source, f"stays at {source}: {held[0][0]}: {held[0][1]}")
            return None
        if not self.is_letter and not self._helps(fleet, topic, source, metric):
            why = f"stays at {source}: without it the {metric} would be no less"
            self._reject("NoRelief", topic, source, why)
            return None
        is_whole = len(units) == asked
        what = topic.key if is_whole else f"{len(units)} of {asked} units of {topic.key}"
        over = self._told(fleet.load(source), (metric,))
        avoided = f"; {skipped}" if (skipped := self._avoided.get(topic.load.topic)) else ""
        farther = "; no edge of its cluster takes it" if target in fleet.away else ""
        moves = (PlanMove(topic.key, units, source, target, f"{what} relieves {source}: {over}{avoided}{farther}"),)
        after = fleet.after(Step(moves))
        step = Step(moves, owners=self._owners(after, topic, source))
        if (why_not := self._refusal(after.load(target))) is not None:
            self._reject("TooMuch", topic, source, f"stays at {source}: with it {target} would have {why_not}")
            return None
        self._moved.update(units)
        self._owned.update(topic_of_key(key) for key, _ in step.owners)
        self._rejected.pop((source, topic.load.topic), None)
        return step

    def _owners(self, after: DeadlineFleet, topic: ServedTopic, source: str) -> tuple[tuple[str, str], ...]:
        """The owner of a topic that has left an edge: the one with most of its units, as after a restart of the head.

        Units that went singly may be at several edges, and the last one's is no better a place for newcomers than
        another. A topic that has left no edge keeps the owner that it has.
        """
        hashed = topic.load.topic
        if hashed in after.served[source] and hashed not in self._owned:
            return ()
        counts = {name: len(held[hashed].units) for name, held in after.served.items() if hashed in held}
        return ((topic.key, min(counts, key=lambda name: (-counts[name], name))),)

    def _apart(
        self, fleet: DeadlineFleet, topic: ServedTopic, source: str, target: str, candidates: Sequence[str]
    ) -> str:
        """The target; or, if it has a correlated topic, the first candidate without one that can take the topic."""
        if not (beside := self._beside(fleet, topic, target)):
            return target
        for other in candidates:
            move = PlanMove(topic.key, tuple(topic.units), source, other, "")
            if not self._beside(fleet, topic, other) and self._refusal(fleet.after(Step((move,))).load(other)) is None:
                self._avoided[topic.load.topic] = f"{target} has {beside}"
                return other
        return target

    def _beside(self, fleet: DeadlineFleet, topic: ServedTopic, target: str) -> str:
        """The first topic of an edge that is correlated with one, and why; empty if there is none."""
        there = fleet.served[target]
        found = () if self.correlated is None else self.correlated(topic.load.topic, sorted(there))
        return next((f"{there[other].key}, and {why}" for other, why in found), "")

    def _helps(self, fleet: DeadlineFleet, topic: ServedTopic, source: str, metric: DeadlineMetric) -> bool:
        """Whether the source has less of what is overloaded without a topic."""
        if metric == "depth":
            return topic.output_bytes > 0.0 and any(each.load.depth for each in fleet.served[source].values())
        return topic.input_bytes > 0.0 if metric == "downlink" else True

    def _refusal(self, after: BrokerLoad) -> str | None:
        """Why an edge does not take a topic, by its load with it; None if it does."""
        over: tuple[Utilization, ...]
        if self.is_letter:
            over = self.limits.above_higher(after)
            if not over and after.output_utilization > 1.0:
                over = ("uplink",)
        else:
            over = self.limits.above_lower(after)
        if over:
            return f"{over[0]} at {utilization_of(after, over[0]):.3f}"
        dangers = self.endangered(after)
        return next(iter(dangers.values())) if dangers else None

    def _told(self, load: BrokerLoad, metrics: Sequence[DeadlineMetric]) -> str:
        """What is overloaded, in words."""
        told = [
            f"{each} at {utilization_of(load, each):.3f}, above {self.limits.of(each).higher:g}"
            for each in metrics if each != "depth"
        ]  # fmt: skip
        if "depth" in metrics:
            told += list(self.endangered(load).values())[:3]
        return ", ".join(told)

    def _stays(self, fleet: DeadlineFleet, stopped: str) -> Iterator[PlanRejection]:
        """Why each topic stays that does not move, and each subscriber without a topic."""
        start = fleet.start or fleet.served
        for edge in sorted(start):
            for topic, served in sorted(start[edge].items()):
                left = sum(name not in self._moved for name in served.units)
                if left:
                    why = self._rejected.get((edge, topic), ("NotNeeded", f"stays at {edge}: {stopped}"))
                    yield PlanRejection(why[0], served.key, left, why[1])
            if whole := fleet.whole.get(edge, 0):
                yield PlanRejection("NoTopic", "", whole, f"stay at {edge}: they ask for no topic that can be listed")

    def _reject(self, kind: str, topic: ServedTopic, source: str, why: str) -> None:
        self._rejected[source, topic.load.topic] = kind, why


def _elsewhere(fleet: DeadlineFleet, topic: ServedTopic, target: str) -> str | None:
    """Another edge of the target's cluster that serves the topic, if that is another cluster: there it has one edge."""
    if target not in fleet.away or topic.load.topic in fleet.served[target]:
        return None
    return next((name for name in sorted(fleet.away) if topic.load.topic in fleet.served[name]), None)


def _is_too_far(fleet: DeadlineFleet, topic: ServedTopic, target: str) -> bool:
    """Whether only the way to the target makes a deadline impossible."""
    allowed, farther = topic.load.allowed_seconds, fleet.away.get(target, 0.0)
    return farther > 0.0 and allowed > 0.0 >= allowed - farther


def _value(load: BrokerLoad, metric: DeadlineMetric) -> float:
    """What candidates are compared by."""
    if metric == "depth":
        return max((topic.depth for topic in load.topics), default=0)
    return utilization_of(load, metric)
