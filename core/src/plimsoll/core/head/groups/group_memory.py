"""What the head of a group remembers of its slices: nothing, when it has just restarted, until members have said it.

Rules of the place (tests/exploration/slice_move.py):
- A head that has restarted lets members say what they have before it assigns anything. Of a slice of which none says
  anything it does not know what has been processed: what its earlier lives have accepted becomes a gap, and
  what it has accepted itself is marked.
- A head that has a declared group from its log knows from there how far each slice is, if no member says so. One that
  the log does not name has never begun.
- If a member is the first to tell the head that it has restarted, the slices that began as those of a new
  group begin again, behind that gap.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.log import Log
from plimsoll.core.transport.link import NEVER


class RememberingHead(Protocol):
    """What is asked of the head."""

    now: float
    name: str
    epoch: int
    log: Log


class RememberedGroup(Protocol):
    """What is asked of the group."""

    times: GroupTimes
    slices: list[GroupSlice]
    is_unwritten: bool

    @property
    def host(self) -> RememberingHead: ...
    def revoke(self, each: GroupSlice, taker: str) -> None: ...


class GroupMemory:
    """`hold_until`: until then members may still say which slices they have. `is_recalled`: the log says how far slices
    are of which none says anything.
    """

    def __init__(self, group: RememberedGroup, hold_until: float) -> None:
        self.group, self.hold_until = group, hold_until
        self._has_forgotten = group.host.now < hold_until < NEVER
        self.is_recalled = False

    @property
    def is_waiting(self) -> bool:
        """Whether members may still say what they have; nothing is assigned before."""
        return self.group.host.now < self.hold_until

    def look(self) -> None:
        """Once nothing is waited for any more, see to what no member has said."""
        if self._has_forgotten:
            self._doubt()

    def hold(self, until: float) -> None:
        """Let members say until then what they have, for this head has forgotten it."""
        self.hold_until, self._has_forgotten = until, until > self.group.host.now

    def _doubt(self) -> None:
        """All that members can say of what this head has forgotten has been said.

        One that has died since may have been given what this life of the head has accepted; so it may of a slice of
        which only an earlier member has spoken, which had released it.
        """
        self._has_forgotten = False
        for each in self.group.slices:
            if each.token is None and not self.is_recalled:
                self.begin_again(each)
            if not each.holder:
                each.given_to = self.group.host.name, self.group.host.epoch, self.group.host.log.last
                self.group.is_unwritten = True

    def begin_again(self, each: GroupSlice) -> None:
        """Begin before all that this head has accepted: what it has forgotten becomes a gap."""
        each.token, each.is_doubted = (self.group.host.name, 0, 0), False

    def learn_of_restart(self) -> None:
        """A member says what an earlier life of this head has told it, and slices may have begun without that."""
        now = self.group.host.now
        if now < self.hold_until or self.is_recalled:
            return
        if not any(each.holder for each in self.group.slices):
            self.hold(now + self.group.times.gone)
            return
        for each in self.group.slices:
            if each.token is None and not each.holder:
                self.begin_again(each)
            elif each.is_blind:
                each.is_doubted = True
                if each.holder and not each.is_revoked:
                    self.group.revoke(each, "")
            each.is_blind = False
