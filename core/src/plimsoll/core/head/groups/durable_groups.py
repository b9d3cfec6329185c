"""What a head's log keeps of declared groups: which there are, which have been removed, and how far their slices are.

Rules of the place (tests/exploration/group_removal.py has each of them, and what breaks without it):
- What a head has been told of groups is in the log before any other process can see that the head knows it.
- A head that starts takes for declared what its log or its configuration declares, until a mediator says what is: a
  publication of a declared group must not be accepted without its stamp.
- How far a slice is may be written late: what lies behind the place that is written comes again, marked. Written at
  once is that a slice has begun, for one that never has begins at the end of the log; and up to where a consumer that
  has gone may have been given items, for they are marked for the next one.
"""

from __future__ import annotations

from typing import Final, Protocol

from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durability.records import GroupForgotten, GroupKept, SliceKept, SlicesKept
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.part import HeadPart

SLICES_BEATS: Final = 2
"""How often it is written how far slices are: a head and a consumer that die together repeat some seconds of work."""


class DurableGroupsHost(Protocol):
    """What this needs of its head."""

    now: float
    journal: LogJournal | None


class DurableGroups(HeadPart):
    """For heads with a log on a disk or with a standby; a head without either writes nothing."""

    def __init__(self, host: DurableGroupsHost, groups: GroupTable, declarations: GroupDeclarations) -> None:
        self.host, self.groups, self.declarations = host, groups, declarations
        self._known: dict[str, GroupKept] = {}
        self._slices: dict[str, dict[int, SliceKept]] = {}
        self._changes = 0
        self._next_slices = 0.0

    def restore(self) -> None:
        """Take over what the log says."""
        if self.host.journal is None:
            return
        state = self.host.journal.state
        self._known = dict(state.groups)
        self._slices = {name: dict(slices) for name, slices in state.slices.items()}
        self.declarations.restore(state.groups.values())
        for name, group in self.groups.by_name.items():
            group.recall(state.slices.get(name, {}).values())

    # -- for the beginning of a segment

    def kept(self) -> list[GroupKept]:
        """All groups."""
        return sorted(self.declarations.kept(), key=lambda each: each.name)

    def slices(self) -> list[SlicesKept]:
        """How far all slices are that have begun."""
        found = ((group.name, list(_slices(group).values())) for group in self._durable())
        return [SlicesKept(name, slices) for name, slices in found if slices]

    # -- what changes

    def tick(self) -> None:
        """In the round of a change, behind all that can make one."""
        journal = self.host.journal
        if self._changes != self.groups.changes:
            self._changes = self.groups.changes
            self._write_groups(journal)
        if journal is None:
            return
        is_due = self.host.now >= self._next_slices
        if is_due:
            self._next_slices = self.host.now + SLICES_BEATS * self.groups.times.beat
        for group in self._durable():
            if is_due or group.is_unwritten:
                group.is_unwritten = False
                self._write_slices(journal, group)

    def _durable(self) -> list[ConsumerGroup]:
        return [group for _, group in sorted(self.groups.by_name.items()) if group.is_declared or group.removal]

    def _write_groups(self, journal: LogJournal | None) -> None:
        before, kept = self._known, {each.name: each for each in self.kept()}
        ended = [x for x, each in before.items() if x not in kept or kept[x].definition.count != each.definition.count]
        for name in ended:
            self._slices.pop(name, None)
        if journal is not None:
            journal.pending += [GroupForgotten(name) for name in ended]
            journal.pending += [each for name, each in kept.items() if before.get(name) != each]
        self._known = kept

    def _write_slices(self, journal: LogJournal, group: ConsumerGroup) -> None:
        before, slices = self._slices.get(group.name, {}), _slices(group)
        changed = [each for number, each in slices.items() if before.get(number) != each]
        if changed:
            self._slices[group.name] = slices
            journal.pending.append(SlicesKept(group.name, changed))


def _slices(group: ConsumerGroup) -> dict[int, SliceKept]:
    """The slices that have begun."""
    return {
        each.number: SliceKept(each.number, each.token, each.marks, each.given_to, each.side)
        for each in group.slices if each.token is not None
    }  # fmt: skip
