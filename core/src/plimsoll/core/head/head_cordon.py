"""Whether this head takes new publishers, and the heads that it names to those that it does not take.

A mediator says up to which epoch the head is cordoned: a head that has replaced it has a later one, and is not. While
no other head can be reached, new publishers are taken all the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from plimsoll.core.head.part import HeadPart
from plimsoll.core.protocol import messages as msg


class HeadCordon(HeadPart):
    """`epoch_through`: heads of this name with an epoch up to it take no new publishers. `heads`: where they may go."""

    def __init__(self, epoch: int, reaches: Callable[[str], bool]) -> None:
        self.epoch, self._reaches = epoch, reaches
        self.epoch_through = 0
        self.heads: tuple[msg.HeadAddress, ...] = ()

    @property
    def is_cordoned(self) -> bool:
        """Whether new publishers are sent to other heads."""
        return self.epoch <= self.epoch_through

    def status(self) -> dict[str, Any]:
        return {"cordoned": self.is_cordoned}

    def take(self, said: msg.ClusterMembers) -> None:
        """Take over what a mediator says; it repeats that."""
        self.epoch_through, self.heads = said.cordoned_epoch, tuple(said.heads)

    def elsewhere(self, publisher: str) -> msg.HeadAddress | None:
        """The head for a new publisher; None if it is taken here. Names are spread over the heads that are reached."""
        if not self.is_cordoned:
            return None
        heads = sorted((each for each in self.heads if self._reaches(each.head)), key=lambda each: each.head)
        return heads[zlib.crc32(publisher.encode(errors="surrogatepass")) % len(heads)] if heads else None
