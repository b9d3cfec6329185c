"""A client whose link to its head is up, with a member of a group that has one slice."""

from __future__ import annotations

import random
from typing import Any

from plimsoll.core.client import Address, Client, ClientLimits, GroupMember
from plimsoll.core.protocol import messages as msg


class SpokenClient(Client):
    """What it says to its head is written down, not sent."""

    def __init__(self, **limits: Any) -> None:
        self.said: list[Any] = []
        draw = random.Random(1)
        super().__init__("app", 1, lambda: draw.getrandbits(32), [Address("mem://h")], ClientLimits(**limits))

    @property
    def home_link(self) -> Any:
        return "h"

    def say(self, link: Any, /, *records: Any) -> None:
        self.said += records

    def said_last(self, kind: type) -> Any:
        return [each for each in self.said if isinstance(each, kind)][-1]


def member_of(client: Client, *slices: int, epoch: int = 10) -> GroupMember:
    """A member with a beat of 1 s and a lease of 4 s, and with these slices, from position 5 on."""
    member = client.group_member("g", "m")
    member.on_record(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 1.0, 4.0))
    for number in slices:
        member.on_record(msg.SliceAssigned("g", number, epoch, ("h", 1, 5)))
    return member
