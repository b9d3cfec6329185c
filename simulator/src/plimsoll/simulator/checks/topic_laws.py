"""The laws of topics that are owned singly, once all faults have healed: each is at one live edge, and reports say so.

The owner of a topic runs and serves units of it, so that newcomers meet the others. All units of a topic are there, but
for those that a plan has moved singly or a fault has sent elsewhere: brokers do not bring single units back. What edges
report of topics are those that they serve, each with as many units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from plimsoll.core.edge.attachment import SERVED
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.policies.model.topic_load import reported_topics, topic_of_key
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.world.brokers import SimulatedFleet


class TopicLaws:
    """`is_disturbed`: faults may have sent single units elsewhere. `plans`: those of all sessions."""

    def __init__(
        self, fleet: SimulatedFleet, plans: Callable[[], Iterable[SessionPlan]], *, is_disturbed: bool
    ) -> None:
        self._fleet, self._plans, self._is_disturbed = fleet, plans, is_disturbed

    def leftovers(self, at: float) -> Iterator[seen.ResidueObserved]:
        """Topics without an owner that serves them, units elsewhere, and reports that are not true."""
        for broker in self._fleet.heads():
            head = broker.host.node
            if isinstance(head, Head):
                for what in self._owners(head):
                    yield seen.ResidueObserved(broker.name, what, 1, at)
        for broker in self._fleet.edges():
            edge = broker.host.node
            if isinstance(edge, Edge) and (what := _untrue(edge)):
                yield seen.ResidueObserved(broker.name, what, 1, at)

    def _owners(self, head: Head) -> Iterator[str]:
        divided = self._divided()
        for topic, places in sorted(self._places(head.name).items()):
            owner = head.topics.owners.get(topic, "")
            if owner not in places:
                yield f"topic {topic:08x} is owned by {owner!r}, and served by {sorted(places)}"
            elif len(places) > 1 and not self._is_disturbed and topic not in divided:
                yield f"topic {topic:08x} is served by {sorted(places)}, and owned by {owner}"

    def _divided(self) -> set[int]:
        """Topics of which plans have moved units singly, because no edge took a whole topic.

        Such a plan leaves some units at their edge, and names no owner; or it sends those of one edge to several.
        """
        found: set[int] = set()
        for plan in self._plans():
            named = {topic_of_key(key) for key in plan.bundles}
            targets: dict[tuple[str, int], set[str]] = {}
            for pair in plan.pairs:
                for topic in map(hash_of_unit, pair.members):
                    if topic is not None:
                        targets.setdefault((pair.source, topic), set()).add(pair.target)
            found |= {topic for (_, topic), some in targets.items() if topic not in named or len(some) > 1}
        return found

    def _places(self, head: str) -> dict[int, Counter[str]]:
        """The edges of a cluster that serve units of each topic, and how many."""
        found: dict[int, Counter[str]] = {}
        for broker in self._fleet.edges():
            if broker.config.head_name == head and isinstance(edge := broker.host.node, Edge):
                for topic, count in _units(edge).items():
                    found.setdefault(topic, Counter())[broker.name] += count
        return found


def _units(edge: Edge) -> Counter[int]:
    served = (name for name, one in edge.attachments.by_subscriber.items() if one.state in SERVED)
    return Counter(topic for name in served if (topic := hash_of_unit(name)) is not None)


def _untrue(edge: Edge) -> str:
    """How the last report of an edge differs from what it serves; empty if it does not."""
    said = {load.topic: load.subscribers for load in reported_topics(edge.reporter.last)}
    served = dict(_units(edge))
    if said == served:
        return ""
    different = sorted(topic for topic in said.keys() | served.keys() if said.get(topic) != served.get(topic))
    told = [f"{topic:08x}: {said.get(topic, 0)} reported, {served.get(topic, 0)} served" for topic in different[:3]]
    return f"a report of topics that is not true: {', '.join(told)}"
