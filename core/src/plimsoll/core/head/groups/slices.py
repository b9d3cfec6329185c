"""The slices of a group at its head: the member that has each, under which epoch, and how far it has got."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.protocol.messages import SlicePlace
from plimsoll.core.protocol.wire import Token


@dataclass(slots=True)
class GroupSlice:
    """`holder`: the member that has it, empty if none has. `taker`: who gets it once the holder has let go.

    `token`, `marks`: behind the last acknowledgement that is known. `given_to`: what lies between the two may have been
    given by a holder that has gone, however many have had it since. `side`: of its two names, the one that the holder
    uses.
    """

    number: int
    epoch: int = 0
    holder: str = ""
    is_revoked: bool = False
    taker: str = ""
    token: Token | None = None
    marks: list[Token] = field(default_factory=list)
    given_to: Token | None = None
    side: int = 0

    def is_held(self, member: str, epoch: int) -> bool:
        """Whether this member has the slice under this very epoch: others are not believed."""
        return self.holder == member and self.epoch == epoch

    def progress(self, place: SlicePlace) -> None:
        """Take over how far its holder has got."""
        if place.token is not None:
            self.token, self.marks = place.token, place.marks

    def begin(self, holder: str, epoch: int) -> None:
        self.holder, self.epoch, self.is_revoked, self.taker = holder, epoch, False, ""

    def end(self, given_to: Token | None) -> str:
        """It has no holder any more; returns the member that was to get it."""
        taker, self.holder, self.is_revoked, self.taker = self.taker, "", False, ""
        if given_to is not None:
            self.given_to = given_to
        return taker
