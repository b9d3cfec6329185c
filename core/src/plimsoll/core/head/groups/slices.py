"""The slices of a group at its head: the member that has each, under which epoch, and how far it has got."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.head.durability.records import SliceKept
from plimsoll.core.protocol.messages import SliceCount, SlicePlace
from plimsoll.core.protocol.wire import Token


@dataclass(frozen=True, slots=True)
class CountedPlace:
    """How far a member had got with a slice under this epoch, and what it had counted since that epoch began."""

    epoch: int
    token: Token | None
    marks: list[Token]
    counted: SliceCount | None


@dataclass(slots=True)
class GroupSlice:
    """`holder`: the member that has it, empty if none has. `taker`: who gets it once the holder has let go.

    `token`, `marks`: behind the last acknowledgement that is known. `given_to`: what lies between the two may have been
    given by a holder that has gone, however many have had it since. `counted`: by the holder, up to `token`.
    `released`: where its last holder let go of it in an orderly way. `side`: of its two names, the one that the holder
    uses. `is_blind`: it began at the end of the log, since nothing was known of it; `is_doubted`: something should have
    been.
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
    counted: SliceCount | None = None
    released: CountedPlace | None = None
    is_blind: bool = False
    is_doubted: bool = False

    @property
    def place(self) -> CountedPlace:
        """How far its holder has got, as far as that is known."""
        return CountedPlace(self.epoch, self.token, self.marks, self.counted)

    def recall(self, kept: SliceKept) -> None:
        """Take over what the log says of it."""
        self.token, self.marks, self.given_to, self.side = kept.token, kept.marks, kept.given_to, kept.side

    def is_held(self, member: str, epoch: int) -> bool:
        """Whether this member has the slice under this very epoch: others are not believed."""
        return self.holder == member and self.epoch == epoch

    def progress(self, place: SlicePlace) -> None:
        """Take over how far its holder has got."""
        if place.token is not None:
            self.token, self.marks, self.counted = place.token, place.marks, place.counted

    def begin(self, holder: str, epoch: int) -> None:
        self.holder, self.epoch, self.is_revoked, self.taker = holder, epoch, False, ""
        self.counted = None

    def end(self, given_to: Token | None) -> str:
        """It has no holder any more; returns the member that was to get it."""
        taker, self.released = self.taker, self.place if given_to is None else None
        self.holder, self.is_revoked, self.taker = "", False, ""
        if given_to is not None:
            self.given_to = given_to
        return taker
