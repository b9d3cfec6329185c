"""The streams of declared groups, asked for by the head of their cluster itself, whether or not slices are attached.

So neighbours go on sending what groups ask for, whatever becomes of consumers and edges: a slice that attaches again
finds in the log all that came since the head knows the group. A group that members have made needs nothing of this: no
other head stamps for it.
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import stream_subscription

GROUPS_KEY: Final = "#groups"
"""The key of their cover: of no link."""


class GroupCovers:
    """What is asked for, by group: a number and a subscription."""

    def __init__(self, covers: CoverUpdates) -> None:
        self._covers = covers
        self._asked: dict[str, tuple[int, str]] = {}
        self._last_number = 0

    def ask(self, group: str, filter_text: str) -> None:
        """Ask for the stream of a group, in the place of what was asked for it before."""
        text, before = stream_subscription(group, filter_text), self._asked.get(group)
        if before is None or before[1] != text:
            self._last_number += 1
            gone = [before[0]] if before is not None else []
            self._covers.change(GROUPS_KEY, msg.Cover(0, [msg.CoverItem(self._last_number, text)], gone))
            self._asked[group] = self._last_number, text

    def end(self, group: str) -> None:
        """Ask for nothing of a group any more, if anything was asked for."""
        if (asked := self._asked.pop(group, None)) is not None:
            self._covers.change(GROUPS_KEY, msg.Cover(0, [], [asked[0]]))
