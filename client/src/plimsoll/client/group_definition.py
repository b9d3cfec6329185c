"""What a group is, as an application says it."""

from __future__ import annotations

from plimsoll.core.policies.consumer_groups.assignment_functions import FunctionType, Unassigned
from plimsoll.core.protocol.messages import GroupDefinition


def group_definition(
    slices: int | None,
    *,
    filter: str = "",  # noqa: A002  # the word of the specification
    function: FunctionType = "Hash",
    by: str = "",
    low: float = 0.0,
    high: float = 0.0,
    unassigned: Unassigned = "Drop",
    balancing: str = "Rates",
    in_session: str = "Deliver",
) -> GroupDefinition | None:
    """What a group is, for a member that may make it; None without a number of slices."""
    if slices is None:
        return None
    return GroupDefinition(filter, slices, function, by, float(low), float(high), unassigned, balancing, in_session)
