"""The stamps of publications: a head that accepts one gives it its slice in each group whose filter matches.

The head is always right: it adds a stamp that is missing and corrects a wrong one. Clients stamp by themselves what
they publish, once they were told of a group; others need not know of groups. Only under a function of the application
itself does the publisher say which slice it is: a wrong one puts its own publication elsewhere, or nowhere.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from plimsoll.core.policies.consumer_groups.assignment_functions import SliceStamper
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


class GroupStamps:
    """`by_group`: those whose publications are stamped here. By group, `unassigned`: publications without a slice;
    `corrected`: those with a stamp that was not theirs; `confirmed`: those that came with the right one.
    """

    def __init__(self) -> None:
        self.by_group: dict[str, SliceStamper] = {}
        self.unassigned: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()
        self.confirmed: Counter[str] = Counter()

    def stamped(self, publisher: str, request: msg.Publish, body: msg.Body) -> tuple[msg.Publish, msg.Body]:
        """A publication with its stamps: itself, if it has them all already."""
        attributes, changed = body.attributes, None
        for group, stamper in self.by_group.items():
            if not stamper.asks_for(attributes):
                continue
            attribute, number = stamper.attribute, stamper.stamp(attributes, publisher, request.seq)
            given = attributes.get(attribute)
            if number is None:
                self.unassigned[group] += 1
                if given is None:
                    continue
                self.corrected[group] += 1
            elif given is not None:
                if type(given) is int and given == number:  # `true` equals 1, and no subscription of a slice matches it
                    self.confirmed[group] += 1
                    continue
                self.corrected[group] += 1
            changed = dict(attributes) if changed is None else changed
            if number is None:
                del changed[attribute]
            else:
                changed[attribute] = number
        if changed is None:
            return request, body
        body = msg.Body(changed, body.payload)
        encoded = msgspec.Raw(wire.encode(body))
        return msg.Publish(request.handle, request.seq, request.flags, request.sent_us, encoded), body
