"""Items between a member of a group and its application, so that the two need not meet for each of them.

Rules of the place:
- The application takes from `ready` and puts into `finished`, each in one step, perhaps in a thread of its own. All
  else happens where the member is used; only there items get into `ready`.
- What the application has taken from `ready` it has in hand; what it has not taken can be taken back, from the other
  end: so whenever the application takes one meanwhile, that is ahead of all that is taken back.
- A slice is marked as stopping before `finished` is looked at, and the application looks at the mark after it has put
  an item there: so one of the two sees that a slice is waited for.
"""

from __future__ import annotations

from collections import deque

from plimsoll.core.client.slice_subscriber import HandedItem, SliceSubscriber


class ItemBuffer:
    """`ready`: handed to the application, and not taken yet. `finished`: by the application, and not counted yet."""

    __slots__ = ("finished", "ready")

    def __init__(self) -> None:
        self.ready: deque[HandedItem] = deque()
        self.finished: deque[HandedItem] = deque()

    def take_finished(self) -> list[HandedItem]:
        """What the application has finished since the last call."""
        return [self.finished.popleft() for _ in range(len(self.finished))]

    def take_back(self, owned: SliceSubscriber | None = None) -> None:
        """Give a slice what the application has not taken of it; without a slice, all of them."""
        kept: list[HandedItem] = []
        while True:
            try:
                handed = self.ready.pop()
            except IndexError:
                break  # also if the application has taken the last one
            if owned in (None, handed.owned):
                handed.owned.take_back(handed)
            else:
                kept.append(handed)
        self.ready.extend(reversed(kept))
