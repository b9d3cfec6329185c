"""The balancing policy of a fleet or cluster: when brokers ask for balance, how load is estimated, and who decides.

Detection and estimation are the same for every type, so that policies can be compared. Defaults are the paper's
(PADRES 2006, 3.2, 4.1 and 5.1) if it has one. Ratios are quantities: `900m` is 0.9.
"""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from plimsoll.core.spec.field_info import FieldInfo, name_field
from plimsoll.core.spec.quantities import Duration, Quantity

PolicyType = Literal["Padres", "Random", "LeastLoaded", "Greedy", "Bad", "Pulsar", "DelaySensitive"]

TYPES_WITH_PARAMETERS: Final = ("Pulsar", "DelaySensitive")
"""Types that no name alone chooses, since their block has a field that must be written."""

POLICY_TYPES: Final[Mapping[str, PolicyType]] = {
    "-".join(re.findall("[A-Z][a-z]*", name)).lower(): name
    for name in get_args(PolicyType) if name not in TYPES_WITH_PARAMETERS
}  # fmt: skip
"""All other types by their names on a command line, as least-loaded. Every choice of policies offers these."""

FLEET_WIDE_TYPES: Final = ("Bad", "Pulsar", "DelaySensitive")
"""Policies that plan for all edges of a cluster at once, at an interval. With the others edges ask for balance."""


def _ratio(text: str, high: int = 1) -> FieldInfo:
    return FieldInfo(text, unit="(ratio)", above=0, high=high)


@dataclass(frozen=True, kw_only=True)
class OverloadThresholds:
    """Thresholds of one resource."""

    lower: Annotated[Quantity, _ratio("Above it the broker is N/A: it takes no more load.")] = Quantity.parse("900m")
    higher: Annotated[Quantity, _ratio("Above it the broker is overloaded and asks for balancing at once.")] = (
        Quantity.parse("950m")
    )


@dataclass(frozen=True, kw_only=True)
class OverloadSpec:
    """Overload thresholds of each resource."""

    input: Annotated[OverloadThresholds, FieldInfo("For input utilisation: arrival rate x matching delay.")] = (
        OverloadThresholds()
    )
    output: Annotated[OverloadThresholds, FieldInfo("For output utilisation: bytes per second / bandwidth.")] = (
        OverloadThresholds()
    )
    cpu: Annotated[OverloadThresholds, FieldInfo("For CPU time / the profile's limit.")] = OverloadThresholds()
    memory: Annotated[OverloadThresholds, FieldInfo("For memory / the profile's limit.")] = OverloadThresholds()


@dataclass(frozen=True, kw_only=True)
class LocalTrigger:
    """Difference between edges of a cluster that triggers balancing."""

    ratio: Annotated[Quantity, _ratio("In input or output utilisation.")] = Quantity.parse("100m")
    delay: Annotated[Quantity, _ratio("In matching delay, divided by `normalization`.", high=1000)] = Quantity.parse(
        "100m"
    )


@dataclass(frozen=True, kw_only=True)
class GlobalTrigger:
    """Difference between the averages of neighbouring clusters that triggers balancing."""

    ratio: Annotated[Quantity, _ratio("In input or output utilisation.")] = Quantity.parse("150m")
    delay: Annotated[Quantity, _ratio("In matching delay, divided by `normalization`.", high=1000)] = Quantity.parse(
        "150m"
    )


LEAST_VALIDITY_SECONDS = 15.0
"""Of load reports, where the specification does not say it: reports come every few seconds, and some may be lost."""


@dataclass(frozen=True, kw_only=True)
class DetectionSpec:
    """When a broker asks for balance."""

    interval: Annotated[
        Duration, FieldInfo("Interval at which a broker checks its load, and over which loads are averaged.", above=0)
    ] = Duration.parse("5s")
    reports_valid_for: Annotated[
        Duration | None,
        FieldInfo("How long the load report of another broker is valid; absent: three times `interval`, and at least"
                  " 15s.", above=0),
    ] = None  # fmt: skip
    overload: Annotated[OverloadSpec, FieldInfo("Overload thresholds of each resource.")] = OverloadSpec()
    local_trigger: Annotated[LocalTrigger, FieldInfo("Difference that triggers balancing within a cluster.")] = (
        LocalTrigger()
    )
    global_trigger: Annotated[GlobalTrigger, FieldInfo("Difference that triggers balancing between clusters.")] = (
        GlobalTrigger()
    )
    normalization: Annotated[
        Duration,
        FieldInfo("N_f: the difference in matching delay that counts as much as a utilisation of 1.", above=0),
    ] = Duration.parse("100ms")
    stabilize_for: Annotated[
        Duration,
        FieldInfo(
            "How long both brokers of a session take no load and, unless overloaded, do not ask for balancing.", above=0
        ),
    ] = Duration.parse("30s")
    stabilize_change: Annotated[
        Quantity, _ratio("A broker is stable when no metric changes by more than this between two checks.")
    ] = Quantity.parse("50m")

    @property
    def fresh_seconds(self) -> float:
        """How long a load report is valid."""
        if self.reports_valid_for is not None:
            return self.reports_valid_for.seconds
        return max(LEAST_VALIDITY_SECONDS, 3 * self.interval.seconds)


@dataclass(frozen=True, kw_only=True)
class RingParameters:
    """The last publications of each publisher, which are always kept."""

    samples: Annotated[int, FieldInfo("Publications kept per publisher.", low=1, high=4096)] = 64
    rate_over: Annotated[
        Duration, FieldInfo("Period over which a publisher's rate is counted; shorter if the rate changes.", above=0)
    ] = Duration.parse("600s")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PressParameters:
    """The next publications after a session asks for samples."""

    samples: Annotated[int, FieldInfo("N: the number of publications.", low=1, high=65536)] = 50
    timeout: Annotated[Duration, FieldInfo("T: how long to wait for them at most.", above=0)] = Duration.parse("30s")


@dataclass(frozen=True, kw_only=True)
class EstimationSpec:
    """How the load of subscriptions is estimated."""

    type: Annotated[Literal["Ring", "Press"], FieldInfo("Which publications are sampled.")] = "Ring"
    ring: Annotated[RingParameters | None, FieldInfo("Parameters of Ring.")] = None
    press: Annotated[PressParameters | None, FieldInfo("Parameters of Press.")] = None
    match_delay: Annotated[
        Literal["Measured", "Linear", "Fitted"],
        FieldInfo("How matching delay grows: Measured, with the subscriptions or with the matches of a publication, as"
              " each broker's measurements say; Linear, with the number of subscriptions and without a base, as in the"
              " paper; Fitted, with the matches of a publication."),
    ] = "Measured"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PadresParameters:
    """Parameters of PADRES load balancing."""

    balance_threshold: Annotated[Quantity, _ratio("A session ends when the metric differs by no more than this.")] = (
        Quantity.parse("5m")
    )
    rules: Annotated[
        Literal["Plimsoll", "Paper"],
        FieldInfo("Whose rules decide where they differ: Plimsoll's, which keep what it promises of balancing, or the"
              " letter of the paper."),
    ] = "Plimsoll"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RandomParameters:
    """Parameters of random balancing."""

    seed: Annotated[int, FieldInfo("Seed of the random choices.", low=0, high=2**31 - 1)] = 1


@dataclass(frozen=True, kw_only=True)
class LeastLoadedParameters:
    """Least-loaded balancing has no parameters of its own."""


@dataclass(frozen=True, kw_only=True)
class GreedyParameters:
    """Greedy balancing has no parameters of its own."""


@dataclass(frozen=True, kw_only=True)
class BadParameters:
    """Parameters of BAD load balancing. A load F is what a broker takes in and sends, in bytes per second."""

    interval: Annotated[Duration, FieldInfo("Interval at which the loads of all edges are looked at.", above=0)] = (
        Duration.parse("10s")
    )
    placement: Annotated[
        Literal["Nearest", "Random", "RoundRobin"],
        FieldInfo("Where newcomers go: to the nearest edge by `location`, to any, or to each in turn. Without locations"
              " Nearest goes in turn."),
    ] = "RoundRobin"  # fmt: skip
    seed: Annotated[int, FieldInfo("Seed of Random placement.", low=0, high=2**31 - 1)] = 1
    migration: Annotated[
        Literal["LoadBased", "SimilarityBased", "None"],
        FieldInfo("Where subscribers of the edge with the highest load go: to the one with the lowest, or to the one"
              " below the mean that shares most; None: nowhere."),
    ] = "LoadBased"  # fmt: skip
    shuffle: Annotated[
        Literal["Greedy", "None"],
        FieldInfo("What happens above `gamma`: all subscribers are placed again, the heaviest first; None: nothing more"
              " than above `alpha`."),
    ] = "Greedy"  # fmt: skip
    alpha: Annotated[
        Quantity, FieldInfo("Above this cov, the standard deviation of F over its mean, subscribers migrate.",
                            unit="(ratio)", above=0, high=1000)
    ] = Quantity.parse("150m")  # fmt: skip
    beta: Annotated[
        Quantity, FieldInfo("Nothing moves while the mean of F is not above this.", unit="bytes/s", low=0)
    ] = Quantity.parse("300")  # fmt: skip
    gamma: Annotated[
        Quantity, FieldInfo("Above this cov all subscribers are shuffled.", unit="(ratio)", above=0, high=1000)
    ] = Quantity.parse("500m")
    normalize: Annotated[
        Literal["None", "Capacity"],
        FieldInfo("Capacity: F and `beta` are divided by the capacity of an edge, which is its output bandwidth over"
              " 100 kB/s, or 1 if that is not limited."),
    ] = "None"  # fmt: skip
    rules: Annotated[
        Literal["Plimsoll", "Paper"],
        FieldInfo("Whose rules decide where they differ: Plimsoll's, by which overloaded edges are relieved first and"
              " no move overloads an edge, or the letter of the paper, which has no measure of overload."),
    ] = "Plimsoll"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BundlesSpec:
    """The bundles of topics: ranges of hashes."""

    initial: Annotated[int, FieldInfo("Bundles to begin with, of equal ranges.", low=1, high=1024)] = 4
    maximum: Annotated[int, FieldInfo("With this number of bundles none is split any more.", low=1, high=1024)] = 128


@dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """When a bundle is split in two. Above one of the limits it is split at the next look."""

    auto: Annotated[bool, FieldInfo("Split bundles above a limit; without it only users split them.")] = True
    algorithm: Annotated[
        Literal["RangeEquallyDivide", "TopicCountEquallyDivide"],
        FieldInfo("Where: in the middle of the range, or so that both halves have the same number of topics."),
    ] = "RangeEquallyDivide"
    max_topics: Annotated[int, FieldInfo("Topics with subscribers.", low=1, high=10_000_000)] = 1000
    max_sessions: Annotated[int, FieldInfo("Subscribers of its topics, by topic.", low=1, high=10_000_000)] = 1000
    max_message_rate: Annotated[
        Quantity, FieldInfo("Publications in and out.", unit="messages/s", above=0)
    ] = Quantity.parse("30000")  # fmt: skip
    max_bandwidth: Annotated[Quantity, FieldInfo("Bytes in and out.", unit="bytes/s", above=0)] = Quantity.parse("100M")
    unload_halves: Annotated[bool, FieldInfo("Both halves are placed again after a split.")] = True


@dataclass(frozen=True, kw_only=True)
class ResourceWeights:
    """What the utilisation of each resource counts."""

    cpu: Annotated[Quantity, FieldInfo("Of CPU time.", unit="(ratio)", low=0, high=1000)] = Quantity.parse("1")
    memory: Annotated[Quantity, FieldInfo("Of memory.", unit="(ratio)", low=0, high=1000)] = Quantity.parse("1")
    input: Annotated[Quantity, FieldInfo("Of input.", unit="(ratio)", low=0, high=1000)] = Quantity.parse("1")
    output: Annotated[Quantity, FieldInfo("Of output bandwidth.", unit="(ratio)", low=0, high=1000)] = Quantity.parse(
        "1"
    )


@dataclass(frozen=True, kw_only=True)
class SheddingSpec:
    """Which edges give up bundles, and how many."""

    strategy: Annotated[
        Literal["ThresholdShedder", "AvgShedder", "None"],
        FieldInfo("ThresholdShedder: edges far above the average usage. AvgShedder, as in later versions of Pulsar:"
                  " pairs of edges that stay far apart. None: no edge."),
    ] = "ThresholdShedder"  # fmt: skip
    threshold: Annotated[Quantity, _ratio("ThresholdShedder: how far above the average usage an edge sheds.")] = (
        Quantity.parse("100m")
    )
    history: Annotated[
        Quantity,
        FieldInfo(
            "ThresholdShedder: the weight of the previous usage beside the latest.", unit="(ratio)", low=0, high=1
        ),
    ] = Quantity.parse("900m")
    low: Annotated[Quantity, _ratio("AvgShedder: the difference of a pair that counts after `lowLooks`.")] = (
        Quantity.parse("150m")
    )
    high: Annotated[Quantity, _ratio("AvgShedder: the difference of a pair that counts after `highLooks`.")] = (
        Quantity.parse("400m")
    )
    low_looks: Annotated[int, FieldInfo("AvgShedder: looks in a row above `low`.", low=1, high=1000)] = 8
    high_looks: Annotated[int, FieldInfo("AvgShedder: looks in a row above `high`.", low=1, high=1000)] = 2
    weights: Annotated[ResourceWeights, FieldInfo("What each resource counts in the usage of an edge.")] = (
        ResourceWeights()
    )


@dataclass(frozen=True, kw_only=True)
class LookupSpec:
    """Which edge takes a bundle that has no owner: one of those with the least long-term message rate."""

    overloaded: Annotated[Quantity, _ratio("Edges with a higher usage take none.")] = Quantity.parse("850m")
    seed: Annotated[int, FieldInfo("Seed of the draw among equal edges.", low=0, high=2**31 - 1)] = 1


@dataclass(frozen=True, kw_only=True)
class PulsarParameters:
    """Parameters of Pulsar load balancing, which moves bundles of topics."""

    topic_attribute: Annotated[
        str,
        FieldInfo(
            "The attribute of publications whose values are the topics.",
            pattern="[A-Za-z_][A-Za-z0-9_.-]*",
            form="the name of an attribute, such as topic",
            max_length=256,
        ),
    ]
    interval: Annotated[Duration, FieldInfo("Interval at which the loads of all edges are looked at.", above=0)] = (
        Duration.parse("10s")
    )
    bundles: Annotated[BundlesSpec, FieldInfo("The bundles.")] = BundlesSpec()
    split: Annotated[SplitSpec, FieldInfo("When bundles are split.")] = SplitSpec()
    shedding: Annotated[SheddingSpec, FieldInfo("Which edges give up bundles.")] = SheddingSpec()
    lookup: Annotated[LookupSpec, FieldInfo("Which edge takes a bundle.")] = LookupSpec()
    unload: Annotated[
        Literal["Transfer", "Lookup"],
        FieldInfo("How a bundle leaves an edge. Transfer: its subscribers are handed over. Lookup: they are closed,"
                  " look the bundle up again and go on from the head's log."),
    ] = "Transfer"  # fmt: skip
    publishers: Annotated[
        Literal["Stay", "Follow"],
        FieldInfo("Follow: a publisher whose subscribers are all in clusters behind one neighbour moves to the head of"
                  " that neighbour. Stay: publishers stay at their heads."),
    ] = "Stay"  # fmt: skip
    rules: Annotated[
        Literal["Plimsoll", "Text"],
        FieldInfo("Whose rules decide where they differ: Plimsoll's, by which no move raises the highest usage, or the"
              " letter of the text."),
    ] = "Plimsoll"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TopicLatency:
    """How soon the messages of a topic must be delivered."""

    name: Annotated[str, FieldInfo("The topic: a text that the attribute may have.", pattern="(?s).+", form="a text",
                                   max_length=256)]  # fmt: skip
    latency: Annotated[
        Duration, FieldInfo("Within which its messages are to reach every subscriber.", above=0, high=86_400)
    ]


@dataclass(frozen=True, kw_only=True)
class LowerThreshold:
    """The threshold of a resource of which a broker may use all: it only says when the broker takes no more."""

    lower: Annotated[Quantity, _ratio("Above it the edge takes no more topics.")] = Quantity.parse("900m")


@dataclass(frozen=True, kw_only=True)
class HeadThresholds:
    """The thresholds of a resource of heads; one that is not written is none, so a block has both or lacks one."""

    lower: Annotated[
        Quantity | None, _ratio("Above it the head takes no more publishers; absent: it does below `higher`.")
    ] = None
    higher: Annotated[
        Quantity | None, _ratio("Above it the head is overloaded; absent: it never is by this resource.")
    ] = None


TEXT_HEAD_THRESHOLDS: Final = HeadThresholds(lower=Quantity.parse("900m"), higher=Quantity.parse("950m"))
"""The text's, Tao, Poslad, Bigham 2013, IV.B.2."""


@dataclass(frozen=True, kw_only=True)
class DeadlineThresholds:
    """When an edge is LOW (below all lower thresholds) and OVERLOAD (above a higher one, or a deadline in danger); and
    when a head is, by what comes in and goes out."""

    downlink: Annotated[OverloadThresholds, FieldInfo("For bytes in / the input bandwidth.")] = OverloadThresholds()
    matching: Annotated[OverloadThresholds, FieldInfo("For input utilisation: arrival rate x matching delay.")] = (
        OverloadThresholds()
    )
    uplink: Annotated[
        LowerThreshold,
        FieldInfo("For bytes out / the output bandwidth. There is no higher one: queues say when it is too much."),
    ] = LowerThreshold()
    head_downlink: Annotated[
        HeadThresholds,
        FieldInfo(
            "For bytes in / the input bandwidth of a head. A threshold that the block lacks is none; without the"
            " block they are 900m and 950m."
        ),
    ] = TEXT_HEAD_THRESHOLDS
    head_uplink: Annotated[
        HeadThresholds,
        FieldInfo(
            "For bytes out / the output bandwidth of a head. A threshold that the block lacks is none; without the"
            " block they are 900m and 950m."
        ),
    ] = TEXT_HEAD_THRESHOLDS


@dataclass(frozen=True, kw_only=True)
class CorrelatedTopics:
    """Topics whose rates are known to rise together."""

    name: Annotated[str, name_field("The name of the group, for reasons.")]
    topics: Annotated[
        tuple[str, ...],
        FieldInfo("The topics: texts that the attribute may have.", pattern="(?s).+", form="a text", max_length=256,
                  max_items=16),
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CorrelationSpec:
    """Topics whose rates rise together, which are kept at different edges."""

    apart: Annotated[
        bool, FieldInfo("New topics, and topics that move, go to edges without a correlated one if one takes them.")
    ] = True
    above: Annotated[
        Quantity, _ratio("Coefficient of correlation of two topics' rates from which on they are kept apart.")
    ] = Quantity.parse("800m")
    groups: Annotated[
        tuple[CorrelatedTopics, ...],
        FieldInfo("Topics that are correlated whatever their rates are.", key="name", max_items=100),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class DelaySensitiveParameters:
    """Parameters of delay-sensitive balancing, which moves topics when a deadline is in danger."""

    topic_attribute: Annotated[
        str,
        FieldInfo(
            "The attribute of publications whose values are the topics.",
            pattern="[A-Za-z_][A-Za-z0-9_.-]*",
            form="the name of an attribute, such as topic",
            max_length=256,
        ),
    ]
    interval: Annotated[Duration, FieldInfo("Interval at which the loads of all edges are looked at.", above=0)] = (
        Duration.parse("1s")
    )
    topics: Annotated[
        tuple[TopicLatency, ...],
        FieldInfo("Topics with a deadline. A subscriber may ask for one of its own.", key="name", max_items=1000),
    ] = ()
    default_latency: Annotated[
        Duration | None,
        FieldInfo("The deadline of all other topics; absent: they have none.", above=0, high=86_400),
    ] = None
    thresholds: Annotated[DeadlineThresholds, FieldInfo("When an edge takes topics, and when it sheds them.")] = (
        DeadlineThresholds()
    )
    correlation: Annotated[CorrelationSpec, FieldInfo("Which topics are kept apart.")] = CorrelationSpec()
    balancing_time: Annotated[
        Duration,
        FieldInfo("How long a balancing takes, t_LB, until one has been measured.", above=0, high=3600),
    ] = Duration.parse("100ms")
    publishers: Annotated[
        Literal["Move", "Stay"],
        FieldInfo("Move: publishers leave a head that is overloaded for heads of other clusters. Stay: publishers stay"
                  " at their heads."),
    ] = "Move"  # fmt: skip
    rules: Annotated[
        Literal["Plimsoll", "Text"],
        FieldInfo("Whose rules decide where they differ: Plimsoll's, by which a topic moves only if that lessens what"
                  " is overloaded and leaves the target below its lower thresholds, or the letter of the text."),
    ] = "Plimsoll"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """The balancing policy, with its parameters in the block of its name."""

    type: Annotated[PolicyType, FieldInfo("The policy; the block of its name may hold its parameters.")]
    detection: Annotated[DetectionSpec, FieldInfo("When a broker asks for balance.")] = DetectionSpec()
    estimation: Annotated[EstimationSpec, FieldInfo("How the load of subscriptions is estimated.")] = EstimationSpec()
    padres: Annotated[PadresParameters | None, FieldInfo("Parameters of Padres.")] = None
    random: Annotated[RandomParameters | None, FieldInfo("Parameters of Random.")] = None
    least_loaded: Annotated[LeastLoadedParameters | None, FieldInfo("Parameters of LeastLoaded.")] = None
    greedy: Annotated[GreedyParameters | None, FieldInfo("Parameters of Greedy.")] = None
    bad: Annotated[BadParameters | None, FieldInfo("Parameters of Bad.")] = None
    pulsar: Annotated[PulsarParameters | None, FieldInfo("Parameters of Pulsar; it needs its `topicAttribute`.")] = None
    delay_sensitive: Annotated[
        DelaySensitiveParameters | None, FieldInfo("Parameters of DelaySensitive; it needs its `topicAttribute`.")
    ] = None
