"""Consumer groups of a cluster: a stream, its slices, and how they are shared out among consumers (DPSLB 2014)."""

# quantities are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.field_info import FieldInfo
from plimsoll.core.spec.quantities import Quantity

SliceFunction = Literal["Modulo", "Hash", "Publisher", "Random", "Range", "Application"]
UnassignedItems = Literal["Drop", "Hash"]
GroupBalancing = Literal["Rates", "Pairing", "None"]
InSession = Literal["Deliver", "Cache"]
GROUP_NAME = r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"

FUNCTIONS_BY_ATTRIBUTE = ("Modulo", "Hash", "Range")


@dataclass(frozen=True, kw_only=True)
class GroupSlicesSpec:
    """The slices of a group, and which of them a publication belongs to."""

    count: Annotated[int, FieldInfo("Number of slices; it bounds the number of consumers.", low=1, high=10_000)]
    function: Annotated[
        SliceFunction,
        FieldInfo("How publications are assigned to slices. Modulo, Hash and Range read the attribute `by`;"
                  " Application: publishers say it, in the attribute `slice.GROUP`."),
    ] = "Hash"  # fmt: skip
    by: Annotated[str, FieldInfo("The attribute that the function reads.", max_length=253)] = ""
    low: Annotated[Quantity | None, FieldInfo("Lowest value of a Range.", low=-(10**15), high=10**15)] = None
    high: Annotated[Quantity | None, FieldInfo("Highest value of a Range.", low=-(10**15), high=10**15)] = None
    unassigned: Annotated[
        UnassignedItems,
        FieldInfo("Publications without a slice: Drop counts them, and no consumer gets them; Hash gives each the"
                  " slice of its publisher."),
    ] = "Drop"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ConsumerGroupSpec:
    """Consumers that share a stream: each publication is processed by one of them, in order per slice."""

    name: Annotated[
        str,
        FieldInfo("The group's name, unique in the fleet.", pattern=GROUP_NAME,
                  form="lower case letters, digits, - and ., as readings", max_length=63),
    ]  # fmt: skip
    filter: Annotated[
        str, FieldInfo("The subscription that selects its stream; empty: all publications.", max_length=4096)
    ] = ""
    slices: Annotated[GroupSlicesSpec, FieldInfo("Its slices; immutable.")]
    in_session: Annotated[
        InSession,
        FieldInfo("How a slice goes to another consumer. Deliver: it goes on from the log of the head. Cache: both"
                  " consumers cache what comes, and the one that gives it sends its cache to the other."),
    ] = "Deliver"  # fmt: skip
    balancing: Annotated[
        GroupBalancing,
        FieldInfo("Rates: evens out the measured cost of slices. Pairing: overloaded consumers give slices to"
                  " underloaded ones. None: slices move only when consumers come and go."),
    ] = "Rates"  # fmt: skip
