"""Topics of a cluster that are owned singly: all subscribers of a topic go to one edge.

Tao, Poslad, Bigham 2013, IV.A, principle 1. Which edge takes a new topic is the placer's choice, which is told where
correlated topics are (principle 2). While a session moves a topic its mediator assigns it to the target: newcomers then
go there at once. Memory is bounded by subscribers: topics without a unit are forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from plimsoll.core.head.topic_rates import TopicRates
from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.policies.model.topic_correlation import TopicCorrelation, correlation_of_spec
from plimsoll.core.policies.model.topic_requirements import topic_attribute
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.spec.types.policy import PolicySpec

REPORTED_AT_MOST: Final = 1024
"""Owners in a load report of the head; edges report the loads of topics themselves."""

UNITS_PER_SECOND: Final = 5_000
"""Units that are looked at in a second, on average."""

ASSIGNED_FOR: Final = 5
"""Looks for which an assigned topic keeps its edge without a unit there; mediators repeat what they assign."""

FORGET_ABOVE: Final = 1024
"""Owners above which those without a unit are looked for, whenever there are twice as many as after the last time."""


class TopicOwners(UnitOwners[int]):
    """`owners`: edges by the hash of the topic. `rates`: of topics, over the head's last reports."""

    heeds_preference: ClassVar[bool] = True

    def __init__(self, policy: PolicySpec | None, rates: TopicRates | None = None) -> None:
        super().__init__()
        self.rates = rates or TopicRates()
        self.correlation: TopicCorrelation | None = None
        self._forget_above = FORGET_ABOVE
        self._next_at = 0.0
        self._assigned: dict[int, int] = {}
        """Topics that a mediator has assigned of late, with how often they are passed over yet."""
        self._in_use: frozenset[int] = frozenset()
        """Topics that had a unit at the last look."""
        self.take_policy(policy)

    def take_policy(self, policy: PolicySpec | None) -> None:
        """Begin, go on or end with topics as a policy wants it."""
        attribute = topic_attribute(policy)
        if attribute != self.attribute:
            self.owners, self._assigned, self._in_use = {}, {}, frozenset()
        self.attribute = attribute
        self.correlation = correlation_of_spec(policy)

    def beside(self, key: int) -> Mapping[str, int]:
        """How many topics each edge owns that are correlated with this one."""
        if self.correlation is None:
            return {}
        found = self.correlation.correlated(key, self.owners, self.rates.history)
        return Counter(self.owners[topic] for topic, _ in found)

    def key_of(self, unit: int) -> int:
        return unit

    def take_table(self, table: msg.BundleTable) -> bool:
        """Take over what a mediator assigns; False if it speaks of ranges, or there are no such topics here."""
        if not self.is_used or table.boundaries:
            return False
        for assigned in table.assigned:
            self.owners[assigned.low] = assigned.edge
            self._assigned[assigned.low] = ASSIGNED_FOR
        return True

    def reconcile(self, served: Callable[[], Mapping[str, str]], now: float, *, soon: bool = False) -> None:
        """Let each topic belong to an edge that serves some of its units, if any does; `soon`: an edge has been lost.

        Units that could not reach the owner are sent elsewhere; the owner that serves none any more has lost the topic.
        One that a mediator has just assigned keeps it: units are on their way there. `served`: the edge of each
        subscriber, of edges that are here. Large fleets are looked at less often.
        """
        if not self.is_used or (now < self._next_at and not soon):
            return
        places: dict[int, Counter[str]] = {}
        everybody = served()
        for name, edge in everybody.items():
            topic = hash_of_unit(name)
            if topic is not None:
                places.setdefault(topic, Counter())[edge] += 1
        for topic, edges in places.items():
            if topic not in self._assigned and self.owners.get(topic, "") not in edges:
                self.owners[topic] = min(edges, key=lambda edge: (-edges[edge], edge))
        self._in_use = frozenset(places)
        if soon:
            return
        self._next_at = now + len(everybody) / UNITS_PER_SECOND
        self._assigned = {topic: left - 1 for topic, left in self._assigned.items() if left}
        if len(self.owners) > self._forget_above:
            self.owners = {topic: edge for topic, edge in self.owners.items() if topic in places}
            self._forget_above = max(FORGET_ABOVE, 2 * len(self.owners))

    def report(self) -> dict[str, Any]:
        """Fields of a head's load report: the edge of each topic that has units, also of units between two edges."""
        if not self.is_used:
            return {}
        in_use = (topic for topic in self._in_use if topic in self.owners)
        some: Iterable[tuple[int, str]] = ((topic, self.owners[topic]) for topic in sorted(in_use)[:REPORTED_AT_MOST])
        return {"topic_owners": {f"{topic:08x}": edge for topic, edge in some}, "owned_topics": len(self.owners)}
