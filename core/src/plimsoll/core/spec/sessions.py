"""One act of balancing: who gives, who takes, how many, how fast, and who lets it."""

# ruff: noqa: RUF009  quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.about import About, NamedReference, named
from plimsoll.core.spec.quantities import Duration, Quantity


@dataclass(frozen=True, kw_only=True)
class ApprovalSpec:
    """Who lets a plan run."""

    policy: Annotated[
        Literal["Automatic", "Manual"], About("Manual waits in `Planned` until planHash names the plan.")
    ] = "Automatic"
    plan_hash: Annotated[
        str,
        About(
            "The plan that is approved: exactly this one runs, or none.",
            pattern="[0-9a-f]*",
            form="hex digits",
            max_length=64,
        ),
    ] = ""
    within: Annotated[Duration, About("A plan that nobody approves in this time is rejected.", above=0)] = (
        Duration.parse("24h")
    )


@dataclass(frozen=True, kw_only=True)
class SelectSpec:
    """How many move, or who: one of the three."""

    count: Annotated[int | None, About("So many subscribers, the first by name.", low=1, high=1_000_000)] = None
    share_percent: Annotated[
        int | None, About("This share of the source's subscribers.", unit="percent", low=1, high=100)
    ] = None
    names: Annotated[tuple[str, ...], About("These subscribers.", max_length=256, max_items=100_000)] = ()


@dataclass(frozen=True, kw_only=True)
class CandidateSpec:
    """An edge that could take, and what of the source's load it could be balanced with."""

    name: Annotated[str, named("The edge.")]
    metric: Annotated[
        Literal["Input", "Output", "Match"],
        About("What is to be balanced: input or output utilisation, or matching delay."),
    ]
    difference: Annotated[
        Quantity,
        About("How far the two are apart: a difference of utilisations, or of delays by `normalization`.", low=0),
    ] = Quantity.parse("0")
    overloaded: Annotated[
        tuple[Literal["Input", "Output", "Cpu", "Memory"], ...],
        About("What of the source wants relief.", max_items=4),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class TriggerSpec:
    """Which broker wanted this session, and why; absent where people did."""

    broker: Annotated[str, named("The edge.")]
    reason: Annotated[str, About("What it found.", max_length=1024)] = ""


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """How much a session may do."""

    max_moves: Annotated[int | None, About("Subscribers moved at most; absent: as planned.", low=1, high=1_000_000)] = (
        None
    )
    max_in_flight: Annotated[int, About("Subscribers between two brokers at one time.", low=1, high=100_000)] = 256
    max_moves_per_minute: Annotated[
        int | None,
        About(
            "How fast it goes at most; absent: as fast as brokers can.", unit="subscribers/min", low=1, high=1_000_000
        ),
    ] = None
    move_interval: Annotated[
        Duration, About("A subscriber that was moved less long ago stays where it is, but for a drain.")
    ] = Duration.parse("30s")
    queue_for: Annotated[
        Duration, About("How long it may wait for other sessions of its brokers before it is rejected.", above=0)
    ] = Duration.parse("1h")


@dataclass(frozen=True, kw_only=True)
class SessionExclusions:
    """What a session leaves alone."""

    subscribers: Annotated[
        tuple[str, ...], About("Subscribers that stay where they are.", max_length=256, max_items=100_000)
    ] = ()
    brokers: Annotated[tuple[str, ...], named("Brokers that neither give nor take.", max_items=1000)] = ()


@dataclass(frozen=True, kw_only=True)
class LoadBalancingSessionSpec:
    """One act of balancing: between edges of a cluster (Local), or between clusters (Global)."""

    scope: Annotated[
        Literal["Local", "Global"],
        About("Local names EdgeBrokers of one cluster, or the BrokerCluster to shuffle; Global names BrokerClusters, or"
              " EdgeBrokers of two of them."),
    ]  # fmt: skip
    source: Annotated[NamedReference | None, About("Who gives; absent: the policy chooses.")] = None
    target: Annotated[NamedReference | None, About("Who takes; absent: the policy chooses.")] = None
    action: Annotated[
        Literal["Rebalance", "Drain", "Shuffle"],
        About("Rebalance moves what `select` says, or as the policy says; Drain everything from the source; Shuffle"
              " plans for all edges of a cluster at once, or of two, and makes the highest load as low as can be."),
    ] = "Rebalance"  # fmt: skip
    select: Annotated[SelectSpec | None, About("What Rebalance moves; absent: as the policy says.")] = None
    candidates: Annotated[
        tuple[CandidateSpec, ...],
        About("Edges to be asked one after the other, where a policy chooses who moves; absent: all that carry less"
              " than the source.", max_items=1000),
    ] = ()  # fmt: skip
    trigger: Annotated[TriggerSpec | None, About("Which broker wanted this; absent where people did.")] = None
    mode: Annotated[
        Literal["DryRun", "Execute", "Simulate"],
        About("DryRun and Simulate end with a plan and its effect; Execute carries it out."),
    ] = "DryRun"
    handover: Annotated[
        Literal["Auto", "Drain", "Replay"],
        About("Drain: the source delivers what it has. Replay, within a cluster: the head's log has it. Auto: Replay"
              " where the source would take long."),
    ] = "Auto"  # fmt: skip
    approval: Annotated[ApprovalSpec, About("Who lets the plan run.")] = ApprovalSpec()
    limits: Annotated[SessionLimits, About("How much it may do.")] = SessionLimits()
    exclusions: Annotated[SessionExclusions, About("What it leaves alone.")] = SessionExclusions()
    stop: Annotated[bool, About("Begin nothing more: what is before its cut is undone, what is behind it ends.")] = (
        False
    )
    retries: Annotated[
        int, About("How often it is tried again after an attempt that failed or was rolled back.", low=0, high=100)
    ] = 0
    deadline: Annotated[Duration, About("When an attempt must have ended, from its start.", above=0)] = Duration.parse(
        "10m"
    )
    ttl: Annotated[Duration, About("How long the object is kept after its end.", above=0)] = Duration.parse("168h")
