"""The consumer groups of a head: each with its stamps, its lags and its end."""

from __future__ import annotations

from typing import Any, Protocol

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.groups.consumer_group import ConsumerGroup, GroupHost
from plimsoll.core.head.groups.function_notices import FunctionNotices, NoticeHost
from plimsoll.core.head.groups.group_covers import GroupCovers
from plimsoll.core.head.groups.lag import GroupLags
from plimsoll.core.head.groups.removal import OVER, Removal, ending
from plimsoll.core.head.groups.report import group_report
from plimsoll.core.head.groups.restart import GroupRestart, RestartHost
from plimsoll.core.head.groups.slice_schedule import Announce, announce_to_none
from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.policies.consumer_groups.assignment_functions import stamper
from plimsoll.core.policies.consumer_groups.reported import report_field
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.transport.link import NEVER, Link


class WallClock(Protocol):
    """The time as it outlasts a process, in seconds since 1970."""

    @property
    def unix_now(self) -> float: ...


class GroupTableHost(GroupHost, NoticeHost, RestartHost, Protocol):
    """What the groups need of their head, beside what each needs."""

    covers: CoverUpdates
    group_lags: GroupLags
    journal: LogJournal | None
    publishers: PublisherTable

    @property
    def durable_places(self) -> WallClock: ...


class GroupTable(HeadPart):
    """`by_name`: the groups of this head. `stamps`: for these, and for those of other clusters. `changes`: how often
    groups have come, have gone, or have got another definition.
    """

    def __init__(self, host: GroupTableHost, times: GroupTimes) -> None:
        self.host, self.times = host, times
        self._announce: Announce = announce_to_none
        self._stamped: dict[str, GroupDefinition] = {}
        self.changes = 0
        self._next_ends = 0.0
        self.by_name: dict[str, ConsumerGroup] = {}
        self.restart = GroupRestart(host, times, self.by_name.keys())
        self.stamps = GroupStamps()
        self.covers = GroupCovers(host.covers)
        self.notices = FunctionNotices(host)

    def announce_by(self, announce: Announce) -> None:
        """Tell mediators in this way that a group is out of balance."""
        self._announce = announce
        for group in self.by_name.values():
            group.schedule.announce = announce

    # -- definitions

    def define(self, name: str, definition: GroupDefinition, maker: str = "") -> ConsumerGroup:
        """A group from here on; if the head has just started, members may still say which slices they have."""
        group = ConsumerGroup(self.host, name, definition, self.times, self.restart.hold_until(name))
        group.schedule.announce, group.maker = self._announce, maker
        self.by_name[name] = group
        if self.host.journal is not None:
            self.host.journal.group(name, is_served=True)
        self.changes += 1
        self.stamp(name, definition)
        # Without a log on a disk all that is logged of a group that is made now has come without its stamp.
        self._count_lag(group, from_start=self.host.journal is not None)
        self.restart.defined(name)
        return group

    def redefine(self, group: ConsumerGroup, definition: GroupDefinition) -> None:
        """A group goes on under another definition."""
        has_other_count = definition.count != group.definition.count
        group.redefine(definition)
        group.removal = None
        self.changes += 1
        self.stamp(group.name, definition)
        if has_other_count:
            self._count_lag(group, from_start=False)
        else:
            self.host.group_lags.by_group[group.name].stamper = self.stamps.by_group[group.name]

    def bring_back(self, group: ConsumerGroup, maker: str = "") -> None:
        """A group that was removed goes on."""
        group.removal, group.maker = None, maker
        self.changes += 1
        self.stamp(group.name, group.definition)

    def declare(self, group: ConsumerGroup) -> None:
        """A group is one of the custom resources, or is again."""
        group.is_declared = True
        self.covers.ask(group.name, group.definition.filter)

    def remove(self, group: ConsumerGroup, until: float) -> None:
        """A group that was declared is so no longer; it ends then at the latest, in seconds since 1970."""
        group.is_declared = False
        group.removal = Removal.of(group.name, until, self.times)
        self.stop_stamping(group.name)
        self.changes += 1

    def stamp(self, name: str, definition: GroupDefinition) -> None:
        """Stamp for a group from here on; clients that publish are told with the next tick."""
        self.stamps.add(stamper(name, definition))
        self._stamped[name] = definition
        self.notices.change(self._stamped)

    def stop_stamping(self, name: str) -> None:
        """Stamp for a group no more."""
        self.stamps.remove(name)
        del self._stamped[name]
        self.notices.change(self._stamped)

    def _count_lag(self, group: ConsumerGroup, *, from_start: bool) -> None:
        stamps = self.stamps.by_group[group.name]
        self.host.group_lags.begin(group.name, stamps, group.definition.count, from_start=from_start)

    # -- time

    def tick(self) -> None:
        self.notices.tell_all(self.host.publishers.links)
        self.host.group_lags.read()
        if not self.restart.look():
            return
        for group in self.by_name.values():
            if group.memory.hold_until == NEVER:
                group.memory.hold(self.restart.hold_until(group.name))
            group.tick()
        if self.host.now < self._next_ends:
            return
        self._next_ends = self.host.now + self.times.beat / 10
        for group in [each for each in self.by_name.values() if each.is_over or self._is_removed(each)]:
            self._end(group)

    def expire(self) -> None:
        members = (member for group in self.by_name.values() for member in group.members.values())
        self.host.group_links.keep({member.link for member in members if member.link is not None})

    def client_lost(self, link: Link) -> None:
        self.notices.lost(link)
        for group in self.by_name.values():
            group.lost(link)

    def wake_at(self) -> float:
        return self.host.now if self.host.group_lags.is_reading else self.notices.wake_at()

    def _lags(self, group: ConsumerGroup) -> list[int]:
        return self.host.group_lags.of(group.name, [each.token for each in group.slices])

    def _is_removed(self, group: ConsumerGroup) -> bool:
        """Whether it was declared, is no longer, and nothing is left to be given."""
        removal, host = group.removal, self.host
        if removal is None:
            return False
        knows_lag = not group.memory.is_waiting and host.group_lags.has_read(group.name)
        is_over = knows_lag and removal.is_over(sum(self._lags(group)), host.now, self.times)
        return is_over or host.durable_places.unix_now > removal.until

    def _end(self, group: ConsumerGroup) -> None:
        """A group that was removed, or has had no member for long, is forgotten, with the places of its slices."""
        text = ending(group.name, sum(self._lags(group)))
        for member in group.members.values():
            group.say(member, msg.GroupRefused(group.name, OVER, text))
        del self.by_name[group.name]
        if self.host.journal is not None:
            self.host.journal.group(group.name, is_served=False)
        self.covers.end(group.name)
        self.changes += 1
        if group.removal is None:
            self.stop_stamping(group.name)
        self.host.group_lags.end(group.name)
        for each in group.slices:
            for side in (0, 1):
                self.host.end_place(slice_name(group.name, each.number, side))

    # -- what it shows

    def status(self) -> dict[str, Any]:
        return {"groups": sorted(self.by_name)}

    def by_group(self) -> dict[str, Any]:
        """Of each group: its slices, its consumers and what waits, what has moved, and why the last plan ended."""
        return {
            name: group_report(group, self.stamps, self._lags(group)) for name, group in sorted(self.by_name.items())
        }

    def report(self) -> dict[str, Any]:
        """Fields of a head's load report."""
        return report_field(self.by_group())
