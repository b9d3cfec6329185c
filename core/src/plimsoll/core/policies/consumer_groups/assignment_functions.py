"""Which slice of a group a publication belongs to: pure functions, called once for each publication.

DPSLB 2014, 3.2: fast, pluggable, one slice for each item or none. An item of no slice goes to no consumer, unless the
group says that it then goes by the hash of its publisher.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from plimsoll.core.predicates import Subscription, parse
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import stamp_attribute
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.protocol.wire import Scalar

FunctionType = Literal["Modulo", "Hash", "Publisher", "Random", "Range", "Application"]
Unassigned = Literal["Drop", "Hash"]
BY_ATTRIBUTE: Final = frozenset({"Modulo", "Hash", "Range"})
"""Functions that read an attribute."""


@dataclass(frozen=True, slots=True)
class AssignmentFunction:
    """`count`: of slices. `by`: the attribute that is read. `low`, `high`: of a Range, which slices divide evenly.

    Application: the publisher's own function, whose result is in the stamp already; `by`: the name under which its
    client has registered it, empty for one that sets the stamp itself.
    """

    type: FunctionType
    count: int
    by: str = ""
    low: float = 0.0
    high: float = 0.0

    def slice_of(self, attributes: Mapping[str, Scalar], publisher: str, number: int) -> int | None:
        """The slice of a publication, 0 to `count` - 1; None if it has none. `number`: of the publisher's, from 1."""
        match self.type:
            case "Modulo":
                return self._modulo(attributes.get(self.by))
            case "Hash":
                value = attributes.get(self.by)
                return None if value is None else topic_hash(value) % self.count
            case "Publisher":
                return topic_hash(publisher) % self.count
            case "Random":
                # Drawn from what identifies the publication: asked again, it is in the same slice.
                return zlib.crc32(f"{publisher}/{number}".encode(errors="surrogatepass")) % self.count
            case "Range":
                return self._part(attributes.get(self.by))
            case "Application":
                return None

    def _modulo(self, value: Scalar | None) -> int | None:
        if type(value) is int:  # as nearly all are
            return value % self.count
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
            return None
        return int(value) % self.count

    def _part(self, value: Scalar | None) -> int | None:
        """DPSLB 2014, 3: each slice covers an equal range. The highest value is in the last one."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return None
        return min(int((value - self.low) / (self.high - self.low) * self.count), self.count - 1)


@dataclass(frozen=True, slots=True)
class SliceStamper:
    """Stamps the publications of one group. `filter`: what the group asks for; None for all. `attribute`: the stamp."""

    group: str
    filter: Subscription | None
    function: AssignmentFunction
    unassigned: Unassigned = "Drop"
    attribute: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "attribute", stamp_attribute(self.group))  # once, not for each publication

    def stamp(self, attributes: Mapping[str, Scalar], publisher: str, number: int) -> int | None:
        """The stamp that a publication of this group must have; None if it must have none.

        A stamp that the publisher has set counts only if the function is the application's own.
        """
        if self.function.type == "Application":
            found = self._own(attributes.get(self.attribute))
        else:
            found = self.function.slice_of(attributes, publisher, number)
        if found is None and self.unassigned == "Hash":
            return topic_hash(publisher) % self.function.count
        return found

    def _own(self, value: Scalar | None) -> int | None:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return value if is_number and 0 <= value < self.function.count else None  # type: ignore[operator,return-value]  # it is a number

    def asks_for(self, attributes: Mapping[str, Scalar]) -> bool:
        """Whether a publication is in the stream of this group."""
        return self.filter is None or self.filter.matches(attributes)


def stamper(group: str, definition: GroupDefinition) -> SliceStamper:
    """What gives publications of a group their slice.

    Raises:
        ParseError: the filter cannot be read.
        ValueError: there is no such function, or no such way with publications without a slice.

    """
    for word, known in ((definition.function, FunctionType), (definition.unassigned, Unassigned)):
        if word not in get_args(known):
            raise ValueError(f"group {group!r}: {word!r} is not one of {', '.join(get_args(known))}")
    kind: FunctionType = definition.function  # type: ignore[assignment]  # checked
    unassigned: Unassigned = definition.unassigned  # type: ignore[assignment]  # checked
    function = AssignmentFunction(kind, definition.count, definition.by, definition.low, definition.high)
    return SliceStamper(group, parse(definition.filter) if definition.filter else None, function, unassigned)
