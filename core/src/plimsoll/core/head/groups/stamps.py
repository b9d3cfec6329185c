"""The stamps of publications: a head that accepts one gives it its slice in each group whose filter matches.

The head is always right: it adds a stamp that is missing and corrects a wrong one; publishers need not know of groups.
Only under a function of the application itself does the publisher say which slice it is.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from plimsoll.core.policies.consumer_groups.assignment_functions import SliceStamper
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


class GroupStamps:
    """`by_group`: those whose publications are stamped here. `unassigned`: publications without a slice, by group."""

    def __init__(self) -> None:
        self.by_group: dict[str, SliceStamper] = {}
        self.unassigned: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()

    def stamped(self, publisher: str, request: msg.Publish, body: msg.Body) -> tuple[msg.Publish, msg.Body]:
        """A publication with its stamps: itself, if it has them all already."""
        changes: dict[str, int | None] = {}
        for group, stamper in self.by_group.items():
            if not stamper.asks_for(body.attributes):
                continue
            number = stamper.stamp(body.attributes, publisher, request.seq)
            given = body.attributes.get(stamper.attribute)
            self.unassigned[group] += number is None
            if type(given) is not int or given != number:  # `true` equals 1, and no subscription of a slice matches it
                self.corrected[group] += number is not None and given is not None
                if number is not None or given is not None:
                    changes[stamper.attribute] = number
        if not changes:
            return request, body
        kept = {name: value for name, value in body.attributes.items() if name not in changes}
        attributes = {**kept, **{name: number for name, number in changes.items() if number is not None}}
        body = msg.Body(attributes, body.payload)
        return msgspec.structs.replace(request, body=msgspec.Raw(wire.encode(body))), body
