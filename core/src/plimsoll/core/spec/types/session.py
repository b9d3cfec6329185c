"""Balancing sessions: source and target, how many subscribers, how fast, and how the plan is approved."""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.field_info import FieldInfo, NamedReference, name_field
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.types.consumer_groups import GROUP_NAME

METRIC = "[A-Z][A-Za-z0-9]*"
"""Metrics and resources are named by the policies that balance them."""


@dataclass(frozen=True, kw_only=True)
class ApprovalSpec:
    """Approval of a plan."""

    policy: Annotated[
        Literal["Automatic", "Manual"],
        FieldInfo("With Manual a session waits in `Planned` until planHash names its plan."),
    ] = "Automatic"
    plan_hash: Annotated[
        str,
        FieldInfo(
            "Hash of the approved plan; no other plan is executed.",
            pattern="[0-9a-f]*",
            form="hex digits",
            max_length=64,
        ),
    ] = ""
    within: Annotated[Duration, FieldInfo("A plan that is not approved within this time is rejected.", above=0)] = (
        Duration.parse("24h")
    )


@dataclass(frozen=True, kw_only=True)
class SelectSpec:
    """The subscribers or publishers to move, by one of the first three; or the bundles of topics."""

    count: Annotated[int | None, FieldInfo("This number of them, the first by name.", low=1, high=1_000_000)] = None
    share_percent: Annotated[
        int | None, FieldInfo("This share of those at the source.", unit="percent", low=1, high=100)
    ] = None
    names: Annotated[tuple[str, ...], FieldInfo("Those of these names.", max_length=256, max_items=100_000)] = ()
    bundles: Annotated[
        tuple[str, ...],
        FieldInfo("These bundles, for Unload and Split.", pattern="0x[0-9a-f]{8}_0x[0-9a-f]{8}",
                  form="a range such as 0x00000000_0x80000000", max_length=21, max_items=1024),
    ] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SliceMovesSpec:
    """Slices of a consumer group that go from consumer to consumer. With the group alone its policy chooses them.

    With `giver` and no `numbers` it gives all its slices, and gets none until a session names it as a taker.
    """

    group: Annotated[
        str,
        FieldInfo("The group; its cluster is the source.", pattern=GROUP_NAME,
                  form="lower case letters, digits, - and ., as readings", max_length=63),
    ]  # fmt: skip
    giver: Annotated[
        str, FieldInfo("The consumer that gives slices: those of `numbers`, or all of its own.", max_length=253)
    ] = ""
    taker: Annotated[
        str, FieldInfo("The consumer that takes them; empty: those with the least cost.", max_length=253)
    ] = ""
    numbers: Annotated[
        tuple[int, ...], FieldInfo("These slices, by number.", low=0, high=9_999, max_items=10_000)
    ] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CandidateSpec:
    """An edge that may take subscribers, and the metric to balance with it."""

    name: Annotated[str, name_field("The edge.")]
    metric: Annotated[
        str,
        FieldInfo(
            "The metric to balance, by its name. Policies whose edges ask for balance know Input and Output, the"
            " utilisations, and Match, the matching delay; a candidate with another one is passed over.",
            pattern=METRIC,
            form="a name such as Input",
            max_length=63,
        ),
    ]
    difference: Annotated[
        Quantity,
        FieldInfo("Difference between the two, of utilisations, or of delays divided by `normalization`.", low=0),
    ] = Quantity.parse("0")
    overloaded: Annotated[
        tuple[str, ...],
        FieldInfo(
            "Overloaded resources of the source, as Input, Output, Cpu and Memory; others are passed over.",
            pattern=METRIC,
            form="a name such as Cpu",
            max_length=63,
            max_items=16,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class TriggerSpec:
    """The broker that asked for a session, and why; absent if a user created it."""

    broker: Annotated[str, name_field("The edge.")]
    reason: Annotated[str, FieldInfo("Its observation.", max_length=1024)] = ""


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """Limits of a session."""

    max_moves: Annotated[
        int | None, FieldInfo("Highest number of subscribers to move; absent: as planned.", low=1, high=1_000_000)
    ] = None
    max_in_flight: Annotated[
        int, FieldInfo("Highest number of subscribers in hand-over at a time.", low=1, high=100_000)
    ] = 256
    max_moves_per_minute: Annotated[
        int | None,
        FieldInfo("Highest rate of moves; absent: unlimited.", unit="subscribers/min", low=1, high=1_000_000),
    ] = None
    move_interval: Annotated[
        Duration, FieldInfo("A subscriber that was moved within this time is not moved again, except by a drain.")
    ] = Duration.parse("30s")
    queue_for: Annotated[
        Duration, FieldInfo("How long it may wait for other sessions of its brokers before it is rejected.", above=0)
    ] = Duration.parse("1h")


@dataclass(frozen=True, kw_only=True)
class SessionExclusions:
    """What a session must not touch."""

    subscribers: Annotated[
        tuple[str, ...], FieldInfo("Subscribers that are not moved.", max_length=256, max_items=100_000)
    ] = ()
    brokers: Annotated[
        tuple[str, ...], name_field("Brokers that take no part, neither as source nor as target.", max_items=1000)
    ] = ()


@dataclass(frozen=True, kw_only=True)
class LoadBalancingSessionSpec:
    """A balancing session between edges of a cluster (Local) or between clusters (Global)."""

    scope: Annotated[
        Literal["Local", "Global"],
        FieldInfo(
            "Local names EdgeBrokers of one cluster, or the BrokerCluster to shuffle; Global names BrokerClusters, or"
            " EdgeBrokers of two of them. MovePublishers is Global."
        ),
    ]
    source: Annotated[
        NamedReference | None, FieldInfo("The edge or cluster that gives subscribers; absent: the policy chooses.")
    ] = None
    target: Annotated[
        NamedReference | None, FieldInfo("The edge or cluster that takes them; absent: the policy chooses.")
    ] = None
    action: Annotated[
        Literal["Rebalance", "Drain", "Shuffle", "Unload", "Split", "MovePublishers", "MoveSlices"],
        FieldInfo("Rebalance moves the subscribers of `select`, or those that the policy chooses; Drain moves all from"
              " the source; Shuffle plans for all edges of one or two clusters at once, to minimise the highest load;"
              " Unload moves the bundles of `select` from their edges, and Split divides them;"
              " MovePublishers moves those of `select` from the head of a cluster to other heads, or as few as it takes"
              " to even out what heads accept; MoveSlices moves slices of a consumer group, as `slices` says."),
    ] = "Rebalance"  # fmt: skip
    select: Annotated[
        SelectSpec | None, FieldInfo("What Rebalance and MovePublishers move; absent: the policy chooses.")
    ] = None
    slices: Annotated[SliceMovesSpec | None, FieldInfo("What MoveSlices moves, of a consumer group of the source.")] = (
        None
    )
    candidates: Annotated[
        tuple[CandidateSpec, ...],
        FieldInfo("Edges to ask, in this order; absent: all that carry less than the source.", max_items=1000),
    ] = ()  # fmt: skip
    trigger: Annotated[
        TriggerSpec | None, FieldInfo("The broker that asked for this session; absent if a user created it.")
    ] = None
    mode: Annotated[
        Literal["DryRun", "Execute", "Simulate"],
        FieldInfo("DryRun and Simulate end with a plan and its predicted effect; Execute carries the plan out."),
    ] = "DryRun"
    handover: Annotated[
        Literal["Auto", "Drain", "Replay"],
        FieldInfo(
            "Drain: the source delivers its queue first. Replay, within a cluster: the target gets it from the head's"
            " log. Auto: Replay if the source would take long."
        ),
    ] = "Auto"
    approval: Annotated[ApprovalSpec, FieldInfo("Approval of the plan.")] = ApprovalSpec()
    limits: Annotated[SessionLimits, FieldInfo("Limits of the session.")] = SessionLimits()
    exclusions: Annotated[SessionExclusions, FieldInfo("What the session must not touch.")] = SessionExclusions()
    stop: Annotated[
        bool,
        FieldInfo(
            "Stop after the current batch: hand-overs before their cut are undone, those behind it are completed."
        ),
    ] = False
    retries: Annotated[
        int, FieldInfo("Number of further attempts after one that failed or was rolled back.", low=0, high=100)
    ] = 0
    deadline: Annotated[Duration, FieldInfo("Time limit of each attempt.", above=0)] = Duration.parse("10m")
    ttl: Annotated[Duration, FieldInfo("How long the object is kept after the end of the session.", above=0)] = (
        Duration.parse("168h")
    )
