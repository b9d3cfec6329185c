"""Stamps of publications: the slice of each consumer group whose stream they are in, as an attribute.

The head of the publisher has the last word: it stamps what has none and corrects a wrong one. Clients stamp by
themselves what they publish, once they were told of a group; others need not know of groups. Only under a function of
the application itself does the publisher say which slice it is: a wrong one puts its own publication elsewhere, or
nowhere.

Stamps stand behind what the publisher has written, and the flags say how many they are: so they count against nothing
that it may send, and subscribers are not shown them. A stamp that its client has given for no group of this head is
taken off.

Groups that ask for the same share the work: a filter is looked at once for a publication, and a function computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from plimsoll.core.policies.consumer_groups.assignment_functions import AssignmentFunction, SliceStamper
from plimsoll.core.predicates import Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import flags_with_stamps, split_stamps, stamps_bytes, stamps_bytes_at_most
from plimsoll.core.protocol.wire import Scalar

GONE_BYTES: Final = 4096
"""How much larger a publication may come at least: of stamps of groups that this head has no more, or not yet."""

_Family = tuple[AssignmentFunction, str, str]
"""A function, what becomes of publications without a slice, and the stamp if the function reads that."""


class StampedPublication(NamedTuple):
    """A publication as it has come. `written`: by the publisher; `stamps`: by its client, behind that; `size`: in bytes
    of what was written, and of stamps that no group of this head has; `written_bytes`: without those.
    """

    body: msg.Body
    written: Mapping[str, Scalar]
    stamps: Mapping[str, int]
    size: int
    written_bytes: int


class GroupStamps:
    """`by_group`: those whose publications are stamped here. By group, `unassigned`: publications without a slice;
    `corrected`: those with a stamp that was not theirs; `confirmed`: those that came with the right one. `most_bytes`:
    how much larger all stamps make a publication, at most.
    """

    def __init__(self) -> None:
        self.by_group: dict[str, SliceStamper] = {}
        self._by_filter: dict[Subscription | None, list[list[SliceStamper]]] = {}
        self._attributes: frozenset[str] = frozenset()
        self.most_bytes = GONE_BYTES
        self.unassigned: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()
        self.confirmed: Counter[str] = Counter()

    def add(self, stamper: SliceStamper) -> None:
        """Stamp for a group from here on."""
        self.by_group[stamper.group] = stamper
        self._arrange()

    def remove(self, group: str) -> None:
        """Stamp for a group no more."""
        del self.by_group[group]
        self._arrange()

    def _arrange(self) -> None:
        found: dict[Subscription | None, dict[_Family, list[SliceStamper]]] = {}
        for each in self.by_group.values():
            own = each.attribute if each.function.type == "Application" else ""
            found.setdefault(each.filter, {}).setdefault((each.function, each.unassigned, own), []).append(each)
        self._by_filter = {asked: list(families.values()) for asked, families in found.items()}
        self._attributes = frozenset(each.attribute for each in self.by_group.values())
        self.most_bytes = max(stamps_bytes_at_most(self._attributes), GONE_BYTES)

    def received(self, request: msg.Publish, body: msg.Body) -> StampedPublication:
        """Take what the publisher has written and what its client has stamped apart."""
        size = own = len(memoryview(request.body))
        written, given = split_stamps(body.attributes, request.flags)
        if given:
            free = {name: number for name, number in given.items() if name in self._attributes}
            size -= stamps_bytes(free, len(body.attributes))
            own -= stamps_bytes(given, len(body.attributes))
        return StampedPublication(body, written, given, size, own)

    def stamped(
        self, publisher: str, request: msg.Publish, received: StampedPublication
    ) -> tuple[msg.Publish, Mapping[str, Scalar], dict[str, int]]:
        """A publication with its stamps, its attributes and, by stamp, the slices that it is in.

        The publication is itself, if it has all its stamps already and no other ones.
        """
        body, written, given, *_ = received
        slices: dict[str, int] = {}
        overwritten: list[str] = []
        for asked, families in self._by_filter.items():
            if asked is not None and not asked.matches(written):
                continue
            for stampers in families:
                number = stampers[0].stamp(body.attributes, publisher, request.seq)
                for each in stampers:
                    attribute = each.attribute
                    # Nearly all have the right stamp or none, and there may be hundreds of groups.
                    if number is not None and (came := given.get(attribute)) == number:
                        slices[attribute] = number
                        self.confirmed[each.group] += 1
                    elif number is not None and came is None and attribute not in written:
                        slices[attribute] = number
                    else:
                        self._stamp(each, number, written, given, slices, overwritten)
        kept = (slices.keys() & written.keys()).difference(overwritten)
        stamps = {name: number for name, number in slices.items() if name not in kept} if kept else slices
        flags = flags_with_stamps(request.flags, len(stamps))
        if stamps == given and not overwritten and flags == request.flags:
            return request, body.attributes, slices
        attributes = dict(written)
        for name in overwritten:
            del attributes[name]
        attributes |= stamps
        encoded = msgspec.Raw(wire.encode(msg.Body(attributes, body.payload)))
        return msg.Publish(request.handle, request.seq, flags, request.sent_us, encoded), attributes, slices

    def _stamp(
        self,
        stamper: SliceStamper,
        number: int | None,
        written: Mapping[str, Scalar],
        given: Mapping[str, int],
        slices: dict[str, int],
        overwritten: list[str],
    ) -> None:
        """Note the slice in one group, and what is to be taken away of what the publisher has written."""
        group, attribute = stamper.group, stamper.attribute
        came = given.get(attribute)
        own = written.get(attribute) if came is None else None
        if number is not None:
            slices[attribute] = number
        else:
            self.unassigned[group] += 1
        if came is None and own is None:
            return
        if number is not None and (came == number or (type(own) is int and own == number)):  # `true` equals 1
            self.confirmed[group] += 1
            return
        self.corrected[group] += 1
        if own is not None:
            overwritten.append(attribute)
