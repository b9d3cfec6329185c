"""Stamps that a publisher's client gives: the slice of a publication in each group that its head has told of.

DPSLB 2014, 3.2: the assignment function is called before publication. The head checks each stamp all the same, corrects
a wrong one and adds one that is missing; so a client that has not heard of a change yet does no harm. What only a
client can compute is an application's own function, which it registers under the name that the group asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from plimsoll.core.client.errors import PublicationError
from plimsoll.core.policies.consumer_groups.assignment_functions import SliceStamper, stamper
from plimsoll.core.predicates import ParseError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Scalar

OwnFunction = Callable[[Mapping[str, Scalar]], int | None]
"""An application's own assignment function: pure and fast; the slice of these attributes, or None."""


class SliceStamps:
    """`functions`: registered here, by name. `counts`: publications that were stamped, and those that could not be.

    `last_error`: why the last one had no stamp; empty if all had one.
    """

    def __init__(self) -> None:
        self.functions: dict[str, OwnFunction] = {}
        self.counts: Counter[str] = Counter()
        self.last_error = ""
        self._by_head: dict[str, list[SliceStamper]] = {}

    def register(self, name: str, function: OwnFunction) -> None:
        """Use this function for groups with the function Application whose `by` is this name.

        Raises:
            ValueError: another function has this name here.

        """
        if self.functions.setdefault(name, function) is not function:
            raise ValueError(f"another assignment function is registered as {name!r}: register each once")

    def told(self, head: str, told: msg.GroupFunctions) -> None:
        """The groups that a head stamps for, all of them. Those that cannot be read here are left to the head."""
        found = []
        for each in told.groups:
            try:
                found.append(stamper(each.group, each.definition))
            except (ParseError, ValueError):
                self.counts["definitions_unknown"] += 1
        self._by_head[head] = found

    def of(self, head: str, attributes: Mapping[str, Scalar], publisher: str, number: int) -> dict[str, int]:
        """The stamps of a publication for all groups of this head that ask for it, and which it has not itself.

        Raises:
            PublicationError: an application's own function has failed, or its result is no slice.

        """
        stampers = self._by_head.get(head)
        stamps: dict[str, int] = {}
        if not stampers:
            return stamps
        for each in stampers:
            if each.attribute in attributes or not each.asks_for(attributes):
                continue
            is_own = each.function.type == "Application"
            found = self._own(each, attributes) if is_own else each.stamp(attributes, publisher, number)
            if found is not None:
                stamps[each.attribute] = found
        self.counts["stamped"] += bool(stamps)
        return stamps

    def _own(self, stamper: SliceStamper, attributes: Mapping[str, Scalar]) -> int | None:
        name, count = stamper.function.by, stamper.function.count
        if not name:
            return None  # the application sets the stamp itself
        function = self.functions.get(name)
        if function is None:
            self.counts["unregistered"] += 1
            self.last_error = (
                f"group {stamper.group!r} asks for the assignment function {name!r}, which is not registered here:"
                " register it with the connection, or publications of this client have no slice"
            )
            return None
        try:
            found = function(attributes)
        except Exception as error:
            raise PublicationError("assignment", f"assignment function {name!r} has failed: {error!r}") from error
        if found is None:
            self.counts["without_slice"] += 1
        elif type(found) is not int or not 0 <= found < count:
            slices = f"group {stamper.group!r} has slices 0 to {count - 1}"
            raise PublicationError("assignment", f"assignment function {name!r} returned {found!r}; {slices}")
        return found
