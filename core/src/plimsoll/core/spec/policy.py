"""The balancing policy of a fleet or cluster: when brokers ask for balance, how load is estimated, and who decides.

Detection and estimation are the same whatever the type, so that policies can be compared. Defaults are the paper's
(PADRES 2006, 3.2, 4.1 and 5.1) where it has one. Ratios are quantities: `900m` is 0.9.
"""

# ruff: noqa: RUF009  quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.about import About
from plimsoll.core.spec.quantities import Duration, Quantity

PolicyType = Literal["Padres", "Random", "LeastLoaded", "Greedy"]


def _ratio(text: str, high: int = 1) -> About:
    return About(text, unit="(ratio)", above=0, high=high)


@dataclass(frozen=True, kw_only=True)
class OverloadThresholds:
    """From where a resource is too busy."""

    lower: Annotated[Quantity, _ratio("Above it the broker is N/A: it takes nothing more.")] = Quantity.parse("900m")
    higher: Annotated[Quantity, _ratio("Above it the broker is overloaded, and asks for relief at once.")] = (
        Quantity.parse("950m")
    )


@dataclass(frozen=True, kw_only=True)
class OverloadSpec:
    """Overload thresholds of each resource."""

    input: Annotated[OverloadThresholds, About("Of input utilisation: arrival rate x matching delay.")] = (
        OverloadThresholds()
    )
    output: Annotated[OverloadThresholds, About("Of output utilisation: bytes per second by bandwidth.")] = (
        OverloadThresholds()
    )
    cpu: Annotated[OverloadThresholds, About("Of processor time by what the profile allows.")] = OverloadThresholds()
    memory: Annotated[OverloadThresholds, About("Of memory by what the profile allows.")] = OverloadThresholds()


@dataclass(frozen=True, kw_only=True)
class LocalTrigger:
    """By how much edges of a cluster must differ to be balanced."""

    ratio: Annotated[Quantity, _ratio("In input or output utilisation.")] = Quantity.parse("100m")
    delay: Annotated[Quantity, _ratio("In matching delay, by `normalization`.", high=1000)] = Quantity.parse("100m")


@dataclass(frozen=True, kw_only=True)
class GlobalTrigger:
    """By how much the averages of neighbouring clusters must differ to be balanced."""

    ratio: Annotated[Quantity, _ratio("In input or output utilisation.")] = Quantity.parse("150m")
    delay: Annotated[Quantity, _ratio("In matching delay, by `normalization`.", high=1000)] = Quantity.parse("150m")


@dataclass(frozen=True, kw_only=True)
class DetectionSpec:
    """When a broker asks for balance."""

    interval: Annotated[Duration, About("How often a broker looks; loads are averaged over as long.", above=0)] = (
        Duration.parse("5s")
    )
    reports_valid_for: Annotated[
        Duration, About("Another broker's load report counts for so long.", above=0)
    ] = Duration.parse("15s")  # fmt: skip
    overload: Annotated[OverloadSpec, About("Overload thresholds of each resource.")] = OverloadSpec()
    local_trigger: Annotated[LocalTrigger, About("Difference that triggers balancing within a cluster.")] = (
        LocalTrigger()
    )
    global_trigger: Annotated[GlobalTrigger, About("Difference that triggers balancing between clusters.")] = (
        GlobalTrigger()
    )
    normalization: Annotated[
        Duration, About("N_f: the difference in matching delay that counts as much as a whole utilisation.", above=0)
    ] = Duration.parse("100ms")
    stabilize_for: Annotated[
        Duration, About("How long both brokers of a session neither take nor, unless overloaded, ask.", above=0)
    ] = Duration.parse("30s")
    stabilize_change: Annotated[
        Quantity, _ratio("A broker has stabilised when no metric changes by more between two looks.")
    ] = Quantity.parse("50m")


@dataclass(frozen=True, kw_only=True)
class RingParameters:
    """The last publications of each publisher, kept always."""

    samples: Annotated[int, About("Publications kept of each publisher.", low=1, high=4096)] = 64
    rate_over: Annotated[
        Duration, About("A publisher's rate is counted over so long, or since it changed.", above=0)
    ] = Duration.parse("600s")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PressParameters:
    """The next publications from the moment that a session asks."""

    samples: Annotated[int, About("N: publications.", low=1, high=65536)] = 50
    timeout: Annotated[Duration, About("T: the longest time to wait for them.", above=0)] = Duration.parse("30s")


@dataclass(frozen=True, kw_only=True)
class EstimationSpec:
    """How the load of subscriptions is estimated."""

    type: Annotated[Literal["Ring", "Press"], About("Which publications are looked at.")] = "Ring"
    ring: Annotated[RingParameters | None, About("Parameters of Ring.")] = None
    press: Annotated[PressParameters | None, About("Parameters of Press.")] = None
    match_delay: Annotated[
        Literal["Linear", "Fitted"],
        About("How matching delay grows: Linear with the number of subscriptions, as the paper has it and emulated"
              " hardware does; Fitted with the matches of a publication, by what was measured, as an index does."),
    ] = "Linear"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PadresParameters:
    """Parameters of PADRES load balancing."""

    balance_threshold: Annotated[Quantity, _ratio("A session stops when the metric differs by no more.")] = (
        Quantity.parse("5m")
    )


@dataclass(frozen=True, kw_only=True)
class RandomParameters:
    """Parameters of random balancing."""

    seed: Annotated[int, About("Another seed, other choices.", low=0, high=2**31 - 1)] = 1


@dataclass(frozen=True, kw_only=True)
class LeastLoadedParameters:
    """Least-loaded balancing has no parameters of its own."""


@dataclass(frozen=True, kw_only=True)
class GreedyParameters:
    """Greedy balancing has no parameters of its own."""


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """Which balancing policy decides, with its parameters in the one block of its name."""

    type: Annotated[PolicyType, About("The policy; the block of its name may hold its parameters.")]
    detection: Annotated[DetectionSpec, About("When a broker asks for balance.")] = DetectionSpec()
    estimation: Annotated[EstimationSpec, About("How the load of subscriptions is estimated.")] = EstimationSpec()
    padres: Annotated[PadresParameters | None, About("Parameters of Padres.")] = None
    random: Annotated[RandomParameters | None, About("Parameters of Random.")] = None
    least_loaded: Annotated[LeastLoadedParameters | None, About("Parameters of LeastLoaded.")] = None
    greedy: Annotated[GreedyParameters | None, About("Parameters of Greedy.")] = None
