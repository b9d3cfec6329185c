"""The fleet and the topics of Tao, Poslad, Bigham 2013, section V: Tables V and VI, and resources made of them.

The experiment runs them in virtual time, the demo in processes. Durations of a policy are of the fleet's clock, which
`time_scale_percent` makes faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.spec import Resources, SourceDocument, parse

API: Final = "plimsoll.dev/v1alpha1"
CLUSTER: Final = "crisis"
ATTRIBUTE: Final = "topic"

PER_SECOND: Final = 50.0
BURSTING: Final = (2, 4, 6, 8, 10, 12, 14)
"""The text says topic 5 for topic 6: seven topics double, and its examples are even but for that one."""

BURST_AT, TRIGGER_AT, CLEAR_AT, ENDS_AT = 30.0, 34.0, 62.0, 75.0
"""Seconds: the burst begins, topic 8 triggers balancing, its queue is gone (figures 3 and 4), and the run is over."""

MOVED, IN_DANGER = 1, 8
"""The topic that moves, from b1 to b0, and the one whose deadline is in danger there."""


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A row of Table V."""

    megahertz: int
    megabits: float


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A row of Table VI. `seconds`: the required latency; `size_bytes`: of a message."""

    publishers: int
    subscribers: int
    seconds: float
    size_bytes: int


HEAD: Final = BrokerRow(2000, 20.0)
EDGES: Final[Mapping[str, BrokerRow]] = {
    "b0": BrokerRow(800, 6.5), "b1": BrokerRow(1500, 8.0), "b2": BrokerRow(1300, 5.0), "b3": BrokerRow(1000, 8.0),
}  # fmt: skip

TOPICS: Final[Mapping[int, TopicRow]] = {
    1: TopicRow(1, 8, 1.8, 200), 2: TopicRow(2, 2, 1.7, 800), 3: TopicRow(5, 1, 1.6, 1000), 4: TopicRow(4, 2, 1.5, 400),
    5: TopicRow(3, 3, 1.4, 200), 6: TopicRow(1, 1, 1.3, 400), 7: TopicRow(2, 5, 1.2, 300), 8: TopicRow(2, 7, 1.1, 400),
    9: TopicRow(5, 2, 1.0, 500), 10: TopicRow(4, 4, 0.9, 200), 11: TopicRow(1, 5, 30.0, 600),
    12: TopicRow(3, 2, 60.0, 400),
    13: TopicRow(1, 6, 40.0, 200), 14: TopicRow(2, 3, 50.0, 300), 15: TopicRow(4, 5, 100.0, 200),
}  # fmt: skip

LINK_SECONDS: Final = 0.3
"""Of a message's latency, on links: 0.1 s between brokers, and 0.2 s to both clients together. The text leaves topic 1
1.8 - 0.2 - 0.1 s in brokers."""

AT_B1: Final = (1, 3, 8, 14)
"""What b1 serves at 15 s by figure 3. Of the others the text says nothing. Here b0 has room for topic 1, none for 14,
with a margin on both sides; b2 and b3 have none."""

GIVEN: Final[Mapping[int, str]] = {
    number: edge
    for edge, numbers in (("b0", (2, 6, 13, 15)), ("b1", AT_B1), ("b2", (9, 10)), ("b3", (4, 5, 7, 11, 12)))
    for number in numbers
}

SECONDS_OF_A_MATCH: Final = 0.15
"""Megahertz seconds of one publication at an edge: the text does not say what matching takes. Here no edge is busy
with it for more than a tenth of its time, so that the output is what runs short, as in the text."""


def topic_name(number: int) -> str:
    """A topic as its publishers write it."""
    return f"t{number}"


def number_of(topic: str) -> int:
    """The row of Table VI that a topic is."""
    return int(topic[1:])


def latencies() -> dict[int, float]:
    """The deadlines of Table VI in seconds."""
    return {number: each.seconds for number, each in TOPICS.items()}


def crisis_resources(
    policy: Mapping[str, Any] | None,
    time_scale_percent: int,
    *,
    speed: float = 1.0,
    burst: str = "50ms",
    **defaults: Any,
) -> Resources:
    """Table V under a policy, or without one. `speed`: by which brokers are faster than in the table.

    `burst`: unused bandwidth that they save up. `defaults`: more fields of the fleet's defaults.
    """
    own = defaults if policy is None else {**defaults, "policy": dict(policy)}
    named = {"head": HEAD, **EDGES}
    return parse([SourceDocument(each, "<Table V>") for each in (
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": CLUSTER},
         "spec": {"defaults": own, "telemetry": {"reportInterval": "1s"}, "timeScalePercent": time_scale_percent}},
        *(_profile(name, machine, speed, burst, is_edge=name != "head") for name, machine in named.items()),
        {"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": CLUSTER},
         "spec": {"head": {"profile": "head"}, "edges": [{"name": name, "profile": name} for name in EDGES]}},
    )])  # fmt: skip


def _profile(name: str, machine: BrokerRow, speed: float, burst: str, *, is_edge: bool) -> dict[str, Any]:
    rate = round(machine.megabits * 1e6 / 8 * speed)
    cost = round(SECONDS_OF_A_MATCH / machine.megahertz * 1e9 / speed)
    emulation = {"emulation": {"base": f"{cost}ns"}} if is_edge else {}
    bandwidth = {"inputBytesPerSecond": rate, "outputBytesPerSecond": rate, "burst": burst}
    spec = {"cpu": "1", "memory": "1280Mi", "bandwidth": bandwidth, **emulation}
    return {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": name}, "spec": spec}


def delay_sensitive(
    balancing: float, settling: float, required: Mapping[int, float] | None = None, **own: Any
) -> dict[str, Any]:
    """The policy with a look every second. `balancing`: t_LB; `settling`: how long loads settle after a session.

    `required`: latencies by topic, those of Table VI if absent.
    """
    topics = [{"name": topic_name(n), "latency": f"{each:g}s"} for n, each in (required or latencies()).items()]
    fields = {
        "topicAttribute": ATTRIBUTE, "interval": "1s", "topics": topics, "balancingTime": f"{balancing:g}s", **own,
    }  # fmt: skip
    return {"type": "DelaySensitive", "detection": _detection(settling), "delaySensitive": fields}


def padres(settling: float) -> dict[str, Any]:
    """PEER's load balancing, looking as often."""
    return {"type": "Padres", "detection": _detection(settling)}


def _detection(settling: float) -> dict[str, str]:
    return {"interval": "1s", "reportsValidFor": "3s", "stabilizeFor": f"{settling:g}s"}
