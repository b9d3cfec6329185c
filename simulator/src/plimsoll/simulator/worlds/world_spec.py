"""The specification of a World: who publishes what and how fast, who subscribes to what, and for how long it runs.

A World lies in a file beside the custom resources of its fleet. It is no custom resource: no cluster stores one.
"""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from plimsoll.core import predicates
from plimsoll.core.spec.field_info import FieldInfo, name_field
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.types.policy import TopicLatency

KIND = "World"
LONGEST_SECONDS = 7 * 86_400
PUBLISHERS_AT_MOST = 10_000
SUBSCRIBERS_AT_MOST = 100_000
CONTENTS_AT_MOST = 100_000


def check_content(text: str) -> None:
    """ValueError unless this is a map of attributes in JSON."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f'is not JSON ({error}): write a map such as {{"class": "STOCK", "high": 25.5}}') from error
    if not isinstance(found, dict) or not all(isinstance(each, str | int | float) for each in found.values()):
        raise ValueError("is not a map from names to texts, numbers and true or false")


def check_subscription(text: str) -> None:
    """ValueError unless this is a subscription."""
    try:
        predicates.parse(text)
    except ValueError as error:
        raise ValueError(f"is not a subscription: {error}") from error


def _name(text: str) -> FieldInfo:
    """A name of a publisher or of a subscriber: any text, as applications choose them."""
    return FieldInfo(text, pattern=r"(?s:.+)", form="a text of at most 253 characters", max_length=253)


@dataclass(frozen=True, kw_only=True)
class RateSpec:
    """A rate from a time on."""

    at: Annotated[Duration, FieldInfo("From when on, since the start of the run.")] = Duration.parse("0s")
    per_second: Annotated[Quantity, FieldInfo("Publications per second; 0: none.", low=0, high=1_000_000)]


@dataclass(frozen=True, kw_only=True)
class TopicRateSpec:
    """Topics that are published at one rate."""

    name: Annotated[str, _name("The topic; with several, followed by a number.")]
    count: Annotated[int, FieldInfo("How many there are.", low=1, high=PUBLISHERS_AT_MOST)] = 1
    rates: Annotated[
        tuple[RateSpec, ...], FieldInfo("The rate of each of them, in ascending order of time.", max_items=1000)
    ]


@dataclass(frozen=True, kw_only=True)
class TopicNameSpec:
    """Topics by name."""

    name: Annotated[str, _name("The topic; with several, followed by a number.")]
    count: Annotated[int, FieldInfo("How many there are.", low=1, high=PUBLISHERS_AT_MOST)] = 1


@dataclass(frozen=True, kw_only=True)
class PublisherSpec:
    """Publishers that are alike but for their names and times."""

    name: Annotated[str, _name("Their name; with several, followed by a number.")]
    count: Annotated[int, FieldInfo("How many there are.", low=1, high=PUBLISHERS_AT_MOST)] = 1
    cluster: Annotated[str, name_field("The cluster whose head they publish to.")]
    rates: Annotated[
        tuple[RateSpec, ...],
        FieldInfo("The rate of each of them, in ascending order of time; none with `topics`.", max_items=1000),
    ] = ()
    publications: Annotated[
        tuple[str, ...],
        FieldInfo("What each of them publishes in turn, again and again: attributes as JSON. With `topics` each topic"
                  " has them, and they may be left out.", check=check_content, max_items=CONTENTS_AT_MOST),
    ] = ()  # fmt: skip
    topics: Annotated[
        tuple[TopicRateSpec, ...],
        FieldInfo("Topics that each of them publishes, each at rates of its own, in the World's `topicAttribute`.",
                  key="name", max_items=PUBLISHERS_AT_MOST),
    ] = ()  # fmt: skip
    payload: Annotated[Quantity, FieldInfo("The size of the payload.", unit="bytes", low=0, high=1024 * 1024)] = (
        Quantity.parse("0")
    )


@dataclass(frozen=True, kw_only=True)
class JoinSpec:
    """When subscribers join."""

    after: Annotated[Duration, FieldInfo("When the first of them joins, since the start of the run.")] = Duration.parse(
        "0s"
    )
    over: Annotated[Duration, FieldInfo("The time over which they join, evenly.")] = Duration.parse("0s")


@dataclass(frozen=True, kw_only=True)
class SubscriberSpec:
    """Subscribers that are alike but for their names and times."""

    name: Annotated[str, _name("Their name; with several, followed by a number.")]
    count: Annotated[int, FieldInfo("How many there are.", low=1, high=SUBSCRIBERS_AT_MOST)] = 1
    cluster: Annotated[str, name_field("The cluster that they join.")]
    edge: Annotated[str, FieldInfo("The edge that they join; empty: the head places them.", max_length=63)] = ""
    subscriptions: Annotated[
        tuple[str, ...],
        FieldInfo("What each of them subscribes to.", check=check_subscription, max_items=10_000),
    ] = ()  # fmt: skip
    topics: Annotated[
        tuple[TopicNameSpec, ...],
        FieldInfo("Topics that they subscribe to, too.", key="name", max_items=PUBLISHERS_AT_MOST),
    ] = ()
    topics_each: Annotated[
        int | None,
        FieldInfo("How many of them each takes: the first takes the first ones, the next those behind them, and so on"
                  " in turn; absent: all.", low=1, high=PUBLISHERS_AT_MOST),
    ] = None  # fmt: skip
    joins: Annotated[JoinSpec, FieldInfo("When they join.")] = JoinSpec()
    leaves: Annotated[Duration | None, FieldInfo("When all of them leave.")] = None


@dataclass(frozen=True, kw_only=True)
class LinkSpec:
    """How long messages are under way."""

    between_brokers: Annotated[Duration, FieldInfo("Between two brokers.")] = Duration.parse("1ms")
    to_clients: Annotated[Duration, FieldInfo("Between a broker and a client.")] = Duration.parse("1ms")
    clients: Annotated[
        int | None,
        FieldInfo(
            "The clients that share the subscribers, each with one connection to every edge; absent: the heads of"
            " frames to clients are not counted as output.",
            low=1,
            high=SUBSCRIBERS_AT_MOST,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MeasuredBroker:
    """The load of a broker of the running fleet, as its status says it."""

    name: Annotated[str, name_field("The head or edge.")]
    input_utilization_percent: Annotated[int, FieldInfo("Arrival rate x match delay.", low=0)] = 0
    output_utilization_percent: Annotated[int, FieldInfo("Bytes per second by the bandwidth.", low=0)] = 0
    publications_per_second: Annotated[int, FieldInfo("Publications in.", low=0)] = 0
    deliveries_per_second: Annotated[
        int, FieldInfo("Deliveries out; of a head: messages to edges and heads.", low=0)
    ] = 0
    match_delay_microseconds: Annotated[int, FieldInfo("Service time of a publication.", low=0)] = 0
    input_queue_messages: Annotated[int, FieldInfo("What waited for service.", low=0)] = 0
    subscribers: Annotated[int, FieldInfo("Those that it served.", low=0)] = 0


@dataclass(frozen=True, kw_only=True)
class MeasuredSpec:
    """What the fleet measured when this World was made of it; a run is shown beside it, and does not use it."""

    at: Annotated[str, FieldInfo("When, in UTC.", format="date-time", max_length=40)]
    brokers: Annotated[tuple[MeasuredBroker, ...], FieldInfo("Loads by broker.", key="name", max_items=10_000)]


@dataclass(frozen=True, kw_only=True)
class WorldSpec:
    """The traffic of a fleet, and how long it is simulated."""

    duration: Annotated[Duration, FieldInfo("How long the run is.", above=0, high=LONGEST_SECONDS)]
    links: Annotated[LinkSpec, FieldInfo("How long messages are under way.")] = LinkSpec()
    topic_attribute: Annotated[
        str,
        FieldInfo(
            "The attribute whose values are the topics of publishers and subscribers, and that `--policy pulsar` and"
            " `--policy delay-sensitive` balance by; empty: there are no topics.",
            pattern="([A-Za-z_][A-Za-z0-9_.-]*)?", form="the name of an attribute, such as topic", max_length=256,
        ),
    ] = ""  # fmt: skip
    latencies: Annotated[
        tuple[TopicLatency, ...],
        FieldInfo("Topics with a deadline. Deliveries that miss it are counted under every policy, and `--policy"
                  " delay-sensitive` defends it.", key="name", max_items=1000),
    ] = ()  # fmt: skip
    default_latency: Annotated[
        Duration | None, FieldInfo("The deadline of all other topics; absent: they have none.", above=0, high=86_400)
    ] = None
    output: Annotated[
        Literal["Fifo", "Fair", "FairByTopic"],
        FieldInfo("How subscribers share the output of an edge. Fifo: first come, first served, as edges do. Fair:"
                  " those that wait get equal bandwidth; each subscriber, or unit, has a queue of its own. FairByTopic:"
                  " each topic with a deadline has one."),
    ] = "Fifo"  # fmt: skip
    measured: Annotated[
        MeasuredSpec | None, FieldInfo("What the fleet measured that this World was made of; absent: there is none.")
    ] = None
    publishers: Annotated[tuple[PublisherSpec, ...], FieldInfo("Who publishes.", key="name", max_items=10_000)]
    subscribers: Annotated[tuple[SubscriberSpec, ...], FieldInfo("Who subscribes.", key="name", max_items=100_000)]


def parse_world(content: Mapping[str, Any]) -> WorldSpec:
    """Read the specification of a World.

    Raises:
        InvalidResourcesError: with every problem found.

    """
    return parse_block(WorldSpec, content)
