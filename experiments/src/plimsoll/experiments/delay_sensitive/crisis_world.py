"""The world of Tao, Poslad, Bigham 2013, Tables V and VI: a head, four edges, and fifteen topics with deadlines.

Sizes count as the text has them: a publication's attributes and the bytes that brokers add are taken off its payload,
so that what an edge sends for one delivery is what Table VI says.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.brokers import head_name
from plimsoll.simulator.queueing.fleet import LinkDelays
from plimsoll.simulator.queueing.mediator import MediatorPauses
from plimsoll.simulator.queueing.publications import publication_bytes
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

API: Final = "plimsoll.dev/v1alpha1"
CLUSTER: Final = "crisis"
ATTRIBUTE: Final = "topic"
LINKS: Final = LinkDelays(0.1, 0.1, control=0.001)
"""0.1 s between brokers. The text's 0.2 s to clients are both ways together: 1.8 - 0.2 - 0.1 is what it leaves."""

PAUSES: Final = MediatorPauses(0.05, 0.01)
"""The text's managers sit at the brokers, and need milliseconds: our mediator looks twenty times a second, and its
messages do not take the way of publications."""

PER_SECOND: Final = 50.0
BURST_AT: Final = 30.0
ENDS_AT: Final = 75.0
BURSTING: Final = (2, 4, 6, 8, 10, 12, 14)
"""The text says topic 5 for topic 6: seven topics double, and its examples are even but for that one."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A row of Table V."""

    megahertz: int
    megabits: float


@dataclass(frozen=True, slots=True)
class Topic:
    """A row of Table VI. `seconds`: the required latency; `size_bytes`: of a message."""

    publishers: int
    subscribers: int
    seconds: float
    size_bytes: int


HEAD: Final = Machine(2000, 20.0)
EDGES: Final[Mapping[str, Machine]] = {
    "b0": Machine(800, 6.5), "b1": Machine(1500, 8.0), "b2": Machine(1300, 5.0), "b3": Machine(1000, 8.0),
}  # fmt: skip

TOPICS: Final[Mapping[int, Topic]] = {
    1: Topic(1, 8, 1.8, 200), 2: Topic(2, 2, 1.7, 800), 3: Topic(5, 1, 1.6, 1000), 4: Topic(4, 2, 1.5, 400),
    5: Topic(3, 3, 1.4, 200), 6: Topic(1, 1, 1.3, 400), 7: Topic(2, 5, 1.2, 300), 8: Topic(2, 7, 1.1, 400),
    9: Topic(5, 2, 1.0, 500), 10: Topic(4, 4, 0.9, 200), 11: Topic(1, 5, 30.0, 600), 12: Topic(3, 2, 60.0, 400),
    13: Topic(1, 6, 40.0, 200), 14: Topic(2, 3, 50.0, 300), 15: Topic(4, 5, 100.0, 200),
}  # fmt: skip

SECONDS_OF_A_MATCH: Final = 0.15
"""Megahertz seconds of one publication at an edge: the text does not say what matching takes. Here no edge is busy
with it for more than a tenth of its time, so that the output is what runs short, as in the text."""


def topic_name(number: int) -> str:
    """A topic as its publishers write it."""
    return f"t{number}"


def number_of(topic: str) -> int:
    """The row of Table VI that a topic is."""
    return int(topic[1:])


def required() -> TopicRequirements:
    """The deadlines of Table VI."""
    return TopicRequirements(ATTRIBUTE, {topic_hash(topic_name(n)): each.seconds for n, each in TOPICS.items()})


def traffic(seed: int, places: Mapping[int, str], *, burst: bool = True) -> Traffic:
    """Topics come at 1 to 15 s, in order, all subscribers of one at once. `places`: edges of topics that are given."""
    draw = random.Random(f"{seed} crisis")
    publishers = [
        _publisher(f"p{number}-{one}", number, draw.random() / PER_SECOND, burst)
        for number, topic in TOPICS.items()
        for one in range(topic.publishers)
    ]
    subscribers = [
        TrafficSubscriber(
            f"s{number}-{one}", CLUSTER, (f"[{ATTRIBUTE},=,'{topic_name(number)}']",), float(number) - 0.5,
            prefer=places.get(number, ""),
        )
        for number, topic in TOPICS.items() for one in range(topic.subscribers)
    ]  # fmt: skip
    return Traffic(publishers, subscribers)


def _publisher(name: str, number: int, first: float, burst: bool) -> TrafficPublisher:
    more = (RateStep(BURST_AT, 2 * PER_SECOND),) if burst and number in BURSTING else ()
    rates = (RateStep(0.0, PER_SECOND), *more)
    attributes = {ATTRIBUTE: topic_name(number)}
    bare = TrafficPublisher(name, head_name(CLUSTER), (attributes,), rates, first)
    size = TOPICS[number].size_bytes - PREFIX_BYTES
    payload = size - publication_bytes(bare, attributes, 0)
    while publication_bytes(bare, attributes, payload) > size:
        payload -= 1  # the length of a longer payload takes more bytes itself
    return TrafficPublisher(name, head_name(CLUSTER), (attributes,), rates, first, payload)


def resources(policy: Mapping[str, Any] | None, look_seconds: float) -> Resources:
    """Table V under a policy. `look_seconds`: the time between two load reports, at most 1.

    Durations of the policy are of a fleet whose clock makes a second of `look_seconds`.
    """
    defaults: dict[str, Any] = {} if policy is None else {"policy": dict(policy)}
    named = {"head": HEAD, **EDGES}
    return parse([SourceDocument(each, "<experiment>") for each in (
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "experiment"},
         "spec": {"defaults": defaults, "telemetry": {"reportInterval": "1s"}, "timeScalePercent": round(100 * look_seconds)}},
        *(_profile(name, machine, is_edge=name != "head") for name, machine in named.items()),
        {"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": CLUSTER},
         "spec": {"head": {"profile": "head"}, "edges": [{"name": name, "profile": name} for name in EDGES]}},
    )])  # fmt: skip


def _profile(name: str, machine: Machine, *, is_edge: bool) -> dict[str, Any]:
    rate = round(machine.megabits * 1e6 / 8)
    cost = round(SECONDS_OF_A_MATCH / machine.megahertz * 1e9)
    emulation = {"emulation": {"base": f"{cost}ns"}} if is_edge else {}
    bandwidth = {"inputBytesPerSecond": rate, "outputBytesPerSecond": rate}
    spec = {"cpu": "1", "memory": "1280Mi", "bandwidth": bandwidth, **emulation}
    return {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": name}, "spec": spec}


def delay_sensitive(look_seconds: float, balancing_seconds: float, **own: Any) -> dict[str, Any]:
    """The policy with the deadlines of Table VI; loads settle for a second after a session."""
    topics = [{"name": topic_name(n), "latency": f"{each.seconds:g}s"} for n, each in TOPICS.items()]
    fields = {
        "topicAttribute": ATTRIBUTE, "interval": "1s", "topics": topics,
        "balancingTime": f"{balancing_seconds / look_seconds:g}s",
        **own,
    }  # fmt: skip
    return {"type": "DelaySensitive", "detection": _detection(look_seconds), "delaySensitive": fields}


def padres(look_seconds: float) -> dict[str, Any]:
    """PEER's load balancing, looking as often."""
    return {"type": "Padres", "detection": _detection(look_seconds)}


def _detection(look_seconds: float) -> dict[str, str]:
    return {"interval": "1s", "reportsValidFor": "3s", "stabilizeFor": f"{1 / look_seconds:g}s"}
