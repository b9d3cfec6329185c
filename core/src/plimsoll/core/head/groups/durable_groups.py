"""What a head's log keeps of declared groups: which there are, which have been removed, and how far their slices are.

Rules of the place (tests/exploration/group_removal.py has each of them, and what breaks without it):
- What a head has been told of groups is in the log before any other process can see that the head knows it.
- A head that starts takes for declared what its log or its configuration declares, until a mediator says what is: a
  publication of a declared group must not be accepted without its stamp.
- How far a slice is may be written late: what lies behind the place that is written comes again, marked. That a slice
  has begun is written at once, for one that never has begins at the end of the log.
"""

from __future__ import annotations

from typing import Final, Protocol

from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durability.records import GroupForgotten, GroupKept, SlicesKept
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.protocol.messages import SlicePlace

PLACES_BEATS: Final = 2
"""How often it is written how far slices are: a head and a consumer that die together repeat some seconds of work."""


class DurableGroupsHost(Protocol):
    """What this needs of its head."""

    now: float
    journal: LogJournal | None


class DurableGroups(HeadPart):
    """Written when a head has a log on a disk or a standby; without one all of this does nothing."""

    def __init__(self, host: DurableGroupsHost, groups: GroupTable, declarations: GroupDeclarations) -> None:
        self.host, self.groups, self.declarations = host, groups, declarations
        self._known: dict[str, GroupKept] = {}
        self._places: dict[str, dict[int, SlicePlace]] = {}
        self._changes = 0
        self._next_places = 0.0

    def restore(self) -> None:
        """Take over what the log says."""
        if self.host.journal is None:
            return
        state = self.host.journal.state
        self._known = dict(state.groups)
        self._places = {name: dict(places) for name, places in state.slices.items()}
        self.declarations.restore(state.groups.values())
        for name, group in self.groups.by_name.items():
            group.recall(state.slices.get(name, {}).values())

    # -- for the beginning of a segment

    def kept(self) -> list[GroupKept]:
        """All groups."""
        return sorted(self.declarations.kept(), key=lambda each: each.name)

    def slices(self) -> list[SlicesKept]:
        """How far all slices are that have begun."""
        found = ((group.name, list(_places(group).values())) for group in self._durable())
        return [SlicesKept(name, places) for name, places in found if places]

    # -- what changes

    def tick(self) -> None:
        """In the round of a change, behind all that can make one."""
        journal = self.host.journal
        if self._changes != self.groups.changes:
            self._changes = self.groups.changes
            self._write_groups(journal)
        if journal is None:
            return
        is_due = self.host.now >= self._next_places
        if is_due:
            self._next_places = self.host.now + PLACES_BEATS * self.groups.times.beat
        for group in self._durable():
            if is_due or group.has_begun:
                group.has_begun = False
                self._write_places(journal, group)

    def _durable(self) -> list[ConsumerGroup]:
        return [group for _, group in sorted(self.groups.by_name.items()) if group.is_declared or group.removal]

    def _write_groups(self, journal: LogJournal | None) -> None:
        before, kept = self._known, {each.name: each for each in self.kept()}
        ended = [x for x, each in before.items() if x not in kept or kept[x].definition.count != each.definition.count]
        for name in ended:
            self._places.pop(name, None)
        if journal is not None:
            journal.pending += [GroupForgotten(name) for name in ended]
            journal.pending += [each for name, each in kept.items() if before.get(name) != each]
        self._known = kept

    def _write_places(self, journal: LogJournal, group: ConsumerGroup) -> None:
        before, places = self._places.get(group.name, {}), _places(group)
        changed = [place for number, place in places.items() if before.get(number) != place]
        if changed:
            self._places[group.name] = places
            journal.pending.append(SlicesKept(group.name, changed))


def _places(group: ConsumerGroup) -> dict[int, SlicePlace]:
    return {
        each.number: SlicePlace(each.number, each.epoch, each.token, each.marks, side=each.side)
        for each in group.slices if each.token is not None
    }  # fmt: skip
