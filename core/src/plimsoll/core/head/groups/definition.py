"""Definitions of groups: what is wrong with one, and the values that are made from it."""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

from plimsoll.core.config import BrokerConfig
from plimsoll.core.policies.consumer_groups.assignment_functions import (
    BY_ATTRIBUTE,
    FunctionType,
    Unassigned,
)
from plimsoll.core.policies.consumer_groups.named import BALANCING
from plimsoll.core.predicates import ParseError, parse
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import SLICES_AT_MOST, is_group_name


class Declared(NamedTuple):
    """A group of the custom resources. `head`: of its cluster, whose consumers join there; empty if it is not known."""

    cluster: str
    name: str
    definition: GroupDefinition
    head: str = ""


IN_SESSION: Final = ("Deliver", "Cache")
"""How a slice goes from its giver to its taker."""


def definition_fault(group: str, definition: GroupDefinition) -> str:
    """What is wrong with a definition, and what to write instead; empty if it can be served."""
    functions = get_args(FunctionType)
    if not is_group_name(group):
        return f"{group!r} is no name of a group: use lower case letters, digits, - and ., at most 63"
    if not 1 <= definition.count <= SLICES_AT_MOST:
        return f"{definition.count} slices; a group has 1 to {SLICES_AT_MOST}"
    if definition.function not in functions:
        return f"no assignment function {definition.function!r}; there are {', '.join(functions)}"
    if definition.function in BY_ATTRIBUTE and not definition.by:
        return f"{definition.function} reads an attribute: name it in `by`"
    if definition.function == "Range" and not definition.low < definition.high:
        return f"a Range from {definition.low:g} to {definition.high:g} is empty; `low` is below `high`"
    if definition.unassigned not in get_args(Unassigned):
        return f"`unassigned` is Drop or Hash, not {definition.unassigned!r}"
    if definition.balancing not in BALANCING:
        return f"`balancing` is {', '.join(BALANCING)}, not {definition.balancing!r}"
    if definition.in_session not in IN_SESSION:
        return f"`in_session` is {' or '.join(IN_SESSION)}, not {definition.in_session!r}"
    try:
        if definition.filter:
            parse(definition.filter)
    except (ParseError, ValueError) as error:
        return f"the filter cannot be read: {error}"
    return ""


def declared_in(config: BrokerConfig) -> list[Declared]:
    """The groups that a head is started with."""
    return [
        Declared(
            each.cluster, each.name,
            GroupDefinition(
                each.filter, each.count, each.function, each.by, each.low, each.high, each.unassigned, each.balancing,
                each.in_session,
            ),
            each.head,
        )
        for each in config.groups
    ]  # fmt: skip
