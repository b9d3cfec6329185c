"""Slices as subscribers of their head: which member may attach one, and from where it is covered."""

from __future__ import annotations

from typing import Final, Protocol

from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.ownership import Since
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import side_of_name, slice_of_name
from plimsoll.core.protocol.wire import Token

REFUSED: Final = "epoch"
"""The code for a slice that is not the client's: it may be soon."""


class SliceAttachmentsHost(Protocol):
    """What they need of their head."""

    name: str
    epoch: int


class SliceAttachments:
    """What membership asks of groups when a name of a slice attaches."""

    def __init__(self, host: SliceAttachmentsHost, groups: GroupTable) -> None:
        self.host, self.groups = host, groups

    def _of(self, subscriber: str) -> tuple[ConsumerGroup, int] | None:
        """The group of a slice, and its number there."""
        found = slice_of_name(subscriber)
        group = self.groups.by_name.get(found[0]) if found is not None else None
        return None if found is None or group is None else (group, found[1])

    def refusal(self, resume: msg.ResumeUp) -> tuple[str, str] | None:
        """Why a client may not attach a slice: a code and a text; None for one that may, and for any other name."""
        found = slice_of_name(resume.subscriber)
        if found is None:
            return None
        group = self.groups.by_name.get(found[0])
        if group is not None:
            return (REFUSED, why) if (why := self._why_not(group, found[1], resume)) else None
        if self.groups.restart.may_come_back:
            return None
        return REFUSED, f"there is no group {found[0]!r} at {self.host.name}; names with @@ are those of slices"

    def _why_not(self, group: ConsumerGroup, number: int, resume: msg.ResumeUp) -> str:
        """Empty for a member which has the slice under this epoch."""
        if number >= len(group.slices):
            return f"group {group.name!r} has {len(group.slices)} slices"
        each = group.slices[number]
        if not each.holder and group.memory.is_waiting:
            return ""
        if side_of_name(resume.subscriber) != each.side:
            is_taker = group.caches.may_attach(each, resume)
            return "" if is_taker else f"slice {number} of group {group.name!r} does not move to this member"
        member = group.members.get(each.holder)
        if member is None or member.identity != resume.member or each.epoch != resume.epoch[0]:
            return f"slice {number} of group {group.name!r} is not assigned to this member"
        return ""

    def resumed(self, subscriber: str, token: Token) -> None:
        """A slice is attached, from this place in the log: one that has never been acknowledged begins there."""
        if (found := self._of(subscriber)) is not None:
            group, number = found
            each = group.slices[number]
            if each.token is None:
                each.token, group.is_unwritten = token, True

    def covered_since(self, subscriber: str) -> Since | None:
        """Since when a slice has been covered, whether or not it was attached: as long as its group is known here.

        The head itself asks its neighbours for the stream of a group (`GroupCovers`).
        """
        found = self._of(subscriber)
        return None if found is None or found[1] >= len(found[0].slices) else found[0].since
