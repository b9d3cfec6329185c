"""The delay-sensitive policy: what it remembers of a cluster, when it asks for a plan, and the steps of one.

A plan is wanted when an edge is OVERLOAD: its downlink or its matching is above the higher threshold, or a topic's
queue is deeper than its deadline allows. Memory holds the rates of the last look, from which the next are predicted,
and how long balancings took.

A deadline with an empty queue cannot be helped: no topic that leaves makes its path shorter. By the letter it is
overload all the same, and a plan is asked for again and again; ours asks for none (`rules`). Nor does ours ask for one
while a queue gets shorter, or hardly holds anything; and of a balancing that takes longer than a message may wait it
counts only half of that time, or a single message would be too much.
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from plimsoll.core.policies.delay_sensitive.fleet import DeadlineFleet, deadline_fleet
from plimsoll.core.policies.delay_sensitive.limits import DeadlineLimits, LoadState
from plimsoll.core.policies.delay_sensitive.placer import LeastUsedPlacer
from plimsoll.core.policies.delay_sensitive.prediction import (
    Rates,
    depth_of,
    history_of,
    is_serious,
    next_rates,
    rates_of,
    remembered_rates,
)
from plimsoll.core.policies.delay_sensitive.relief import TopicMoves
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.topic_correlation import TopicCorrelation, with_look
from plimsoll.core.policies.model.topic_load import TopicLoad, topic_key
from plimsoll.core.policies.rebalancer import NO_MEMORY, FleetLook, FleetSample, Memory, ProfileDetail, Steps

Rules = Literal["Plimsoll", "Text"]

EDGES_REMEMBERED = 32
"""Edges of which rates are remembered; with more the rates of the last look are taken to go on."""


@dataclass(frozen=True)
class DelaySensitive:
    """Tao, Poslad, Bigham 2013. `balancing_seconds`: t_LB until one has been measured.

    `correlation`: which topics are kept apart; None: none are.
    """

    name: ClassVar[str] = "DelaySensitive"
    metric: ClassVar[str] = "deadlines of topics"
    profiles: ClassVar[ProfileDetail] = "each"

    topic_attribute: str = "topic"
    limits: DeadlineLimits = DeadlineLimits()
    balancing_seconds: float = 0.1
    placer: LeastUsedPlacer = LeastUsedPlacer()
    correlation: TopicCorrelation | None = None
    rules: Rules = "Plimsoll"
    interval_seconds: float = 1.0

    # -- one edge

    def endangered(self, load: BrokerLoad, memory: Memory, report: BrokerLoad | None = None) -> dict[int, str]:
        """The topics of an edge whose deadline is in danger, each with why.

        `report`: the load that was measured, if `load` is a prediction: rates go on from there.
        """
        measured = {} if report is None else {topic.topic: topic for topic in report.topics}
        found = {}
        for topic in load.topics:
            if not topic.required_seconds:
                continue
            rates = self._rates(topic, measured.get(topic.topic, topic), load.name, memory)
            seconds = self.balancing_seconds_of(topic, memory)
            most = topic.depth_threshold(
                seconds,
                arrival_rate=rates.arrival,
                delivery_rate=rates.delivery,
                step_seconds=self.step_seconds(load.report_seconds),
            )
            before = None if report is not None else depth_of(memory, load.name, topic.topic)
            if topic.depth > most and (self.rules == "Text" or is_serious(topic, rates, before)):
                found[topic.topic] = (
                    f"{topic.depth} messages of {topic_key(topic)} wait, and {max(0.0, most):.0f} may for"
                    f" {topic.required_seconds:g} s"
                )
        return found

    def step_seconds(self, report_seconds: float) -> float:
        """From one look to the next that can see something new. `report_seconds`: between two reports of an edge."""
        return max(self.interval_seconds, report_seconds)

    def _rates(self, topic: TopicLoad, report: TopicLoad, edge: str, memory: Memory) -> Rates:
        """The rates of the next look, with what a prediction has become faster by."""
        rates = next_rates(report, rates_of(memory, edge, topic.topic))
        faster = topic.delivery_rate / report.delivery_rate if report.delivery_rate else 1.0
        return Rates(rates.arrival, rates.delivery * faster)

    def state(self, load: BrokerLoad, memory: Memory = NO_MEMORY) -> LoadState:
        """LOW, HIGH or OVERLOAD. Tao, Poslad, Bigham 2013, Table III."""
        return self.limits.state(load, bool(self.endangered(load, memory)))

    def balancing_seconds_of(self, topic: TopicLoad, memory: Memory) -> float:
        """t_LB in eq. 2 for a topic: by our rules at most half of what its messages may wait."""
        mean = self.mean_balancing_seconds(memory)
        return mean if self.rules == "Text" else min(mean, max(0.0, topic.allowed_seconds / 2))

    def mean_balancing_seconds(self, memory: Memory) -> float:
        """What a balancing takes on average, t_LB, as far as it is known."""
        found = memory.get("balancing_seconds")
        is_known = isinstance(found, int | float) and not isinstance(found, bool) and 0.0 <= found < math.inf
        return float(found) if is_known and isinstance(found, int | float) else self.balancing_seconds

    # -- looks

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """The rates of this look, how long balancings took, and which edges are overloaded, each with why."""
        found: dict[str, object] = {}
        if look.balancings:
            found["balancing_seconds"] = round(sum(look.balancings) / len(look.balancings), 6)
        elif "balancing_seconds" in memory:
            found["balancing_seconds"] = memory["balancing_seconds"]
        known = {**memory, **found}
        overloads = {load.name: why for load in look.loads if (why := self.overload(load, known))}
        rates = {load.name: remembered_rates(load) for load in look.loads[:EDGES_REMEMBERED]}
        remembered = {"rates": {name: some for name, some in rates.items() if some}, "overloads": overloads}
        return {**found, **remembered, **self._history(memory, look)}

    def _history(self, memory: Memory, look: FleetLook) -> dict[str, object]:
        """The rates by which correlated topics are known, after one more look; nothing where that does not matter."""
        if self.correlation is None:
            return {}
        rates: dict[int, float] = {}
        for topic in (topic for load in look.loads for topic in load.topics):
            rates[topic.topic] = max(rates.get(topic.topic, 0.0), topic.input_rate)
        history = with_look(history_of(memory), rates)
        return {"history": {f"{topic:08x}": list(series) for topic, series in history.items()}}

    def overload(self, load: BrokerLoad, memory: Memory) -> str:
        """Why an edge is OVERLOAD; empty if it is not."""
        return ", ".join([*self.limits.described(load), *list(self.endangered(load, memory).values())[:3]])

    def after_moves(self, memory: Memory) -> Memory:
        """How long balancings take, and what publishers bring; what edges deliver is another now."""
        return {name: memory[name] for name in ("balancing_seconds", "history") if name in memory}

    def imbalance(self, look: FleetLook) -> str:
        """What asks for a plan by these reports alone."""
        return self.wanted(self.observe({}, look))

    def wanted(self, memory: Memory) -> str:
        """Which edge is overloaded, and why."""
        found = memory.get("overloads")
        some = sorted(found.items()) if isinstance(found, Mapping) else []
        return "; ".join(f"{edge}: {why}" for edge, why in some[:3])

    # -- plans

    def fleet(self, sample: FleetSample, memory: Memory = NO_MEMORY, /) -> DeadlineFleet:
        """The edges with their topics."""
        del memory
        return deadline_fleet(sample)

    def steps(self, fleet: DeadlineFleet, memory: Memory) -> Steps:
        """Topics that leave overloaded edges."""

        def endangered(load: BrokerLoad) -> Mapping[int, str]:
            return self.endangered(load, memory, fleet.reports.get(load.name))

        history = history_of(memory)

        def correlated(topic: int, others: Iterable[int]) -> Iterator[tuple[int, str]]:
            return iter(()) if self.correlation is None else self.correlation.correlated(topic, others, history)

        is_letter = self.rules == "Text"
        apart = None if is_letter or self.correlation is None else correlated
        return TopicMoves(self.limits, endangered, is_letter, apart).steps(fleet)
