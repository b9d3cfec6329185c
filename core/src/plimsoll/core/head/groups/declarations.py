"""Groups of the custom resources: those of this cluster are served here, and all heads stamp for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from plimsoll.core.head.durability.records import GroupKept
from plimsoll.core.head.groups.definition import Declared, definition_fault
from plimsoll.core.head.groups.group_table import GroupTable, WallClock
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.transport.link import Peer


class DeclarationsHost(Protocol):
    """What declarations need of their head."""

    name: str
    counters: Counter[str]

    @property
    def durable_places(self) -> WallClock: ...


class GroupDeclarations(HeadPart):
    """`cluster`: of this head. Groups of other clusters that are declared no longer are kept for their time, in seconds
    since 1970.
    """

    def __init__(self, host: DeclarationsHost, groups: GroupTable, cluster: str) -> None:
        self.host, self.groups, self.cluster = host, groups, cluster
        self._own: dict[str, GroupDefinition] = {}
        self._elsewhere: dict[str, Declared] = {}
        self._ended_elsewhere: dict[str, tuple[Declared, float]] = {}
        self._held_up: set[str] = set()

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_mediators.add(msg.ClusterGroups, self.on_declared)

    def on_declared(self, _: Peer, said: msg.ClusterGroups) -> None:
        """A mediator names the groups of the custom resources, all of them."""
        self.declare([Declared(each.cluster, each.name, each.definition, each.head) for each in said.groups])

    def elsewhere(self, group: str) -> Declared | None:
        """A group of another cluster. One that is declared no longer is still its head's: members have its log."""
        ended = self._ended_elsewhere.get(group)
        return self._elsewhere.get(group) or (ended[0] if ended is not None else None)

    # -- what outlasts a restart

    def restore(self, kept: Iterable[GroupKept]) -> None:
        """Take over what the log says of groups, before `begin`."""
        for each in kept:
            declared = Declared(each.cluster, each.name, each.definition, each.head)
            if each.cluster == self.cluster:
                self._restore_own(each)
            elif each.ends_at:
                self._ended_elsewhere[each.name] = declared, each.ends_at
            else:
                self._elsewhere[each.name] = declared
                self.groups.stamp(each.name, each.definition)

    def _restore_own(self, kept: GroupKept) -> None:
        self.groups.restart.recalled.add(kept.name)
        group = self.groups.define(kept.name, kept.definition)
        group.since = kept.since
        self.groups.declare(group)
        if kept.ends_at:
            self.groups.remove(group, kept.ends_at)

    def begin(self, configured: Iterable[Declared]) -> None:
        """The groups that this process is started with; those of its log are declared, too, until a mediator says."""
        known = dict(self._elsewhere)
        for name, group in self.groups.by_name.items():
            if group.is_declared:
                known[name] = Declared(self.cluster, name, group.definition, self.host.name)
        self.declare((known | {each.name: each for each in configured}).values())

    def kept(self) -> Iterator[GroupKept]:
        """What a head that starts again has to know."""
        for name, group in self.groups.by_name.items():
            if group.is_declared or group.removal is not None:
                ends_at = group.removal.until if group.removal is not None else 0.0
                yield GroupKept(name, self.cluster, self.host.name, group.definition, ends_at, group.since)
        for name, each in self._elsewhere.items():
            yield GroupKept(name, each.cluster, each.head, each.definition)
        for name, (each, until) in self._ended_elsewhere.items():
            if name not in self.groups.by_name:
                yield GroupKept(name, each.cluster, each.head, each.definition, until)

    # -- declarations

    def declare(self, declared: Iterable[Declared]) -> None:
        """The groups of the custom resources, all of them: stamp for each, and serve those of this cluster.

        A group that is declared no longer ends once its members have what the log has of it; one that members have
        made stays.
        """
        all_of_them = {each.name: each for each in declared}
        self.groups.changes += 1
        own = {name: x.definition for name, x in all_of_them.items() if x.cluster == self.cluster}
        self._held_up.clear()
        self._remove_others(set(own), all_of_them)
        faulty = {name for name, each in all_of_them.items() if definition_fault(name, each.definition)}
        if faulty:
            self.host.counters["groups_refused"] += len(faulty)
        self._own = {name: definition for name, definition in own.items() if name not in faulty}
        for name, definition in self._own.items():
            self._declare_own(name, definition)
        for name, each in all_of_them.items():
            is_new = name not in self.groups.by_name and self._elsewhere.get(name) != each
            if name not in own and name not in faulty and is_new:
                self._elsewhere[name] = each
                self.groups.stamp(name, each.definition)

    def _remove_others(self, own: set[str], declared: dict[str, Declared]) -> None:
        """Those that are no longer declared: they end in time."""
        until = self.host.durable_places.unix_now + self.groups.times.kept
        for name, group in self.groups.by_name.items():
            if group.is_declared and name not in own and group.removal is None:
                self.groups.remove(group, until)
            group.is_declared = name in own
        for name in [name for name in self._elsewhere if name in own or name not in declared]:
            self._ended_elsewhere[name] = self._elsewhere.pop(name), until
            self.groups.stop_stamping(name)
        for name in declared.keys() & self._ended_elsewhere.keys():
            del self._ended_elsewhere[name]

    def _declare_own(self, name: str, definition: GroupDefinition) -> None:
        group = self.groups.by_name.get(name)
        self._held_up.discard(name)
        if group is None:
            group = self.groups.define(name, definition)
        elif group.definition != definition:
            is_used = bool(group.members) or group.memory.is_waiting
            if is_used and group.has_other_slices(definition):
                self.host.counters["groups_refused"] += 1  # its members know it as it is
                if group.memory.is_waiting:
                    self._held_up.add(name)  # it may have none, after a restart
                return
            self.groups.redefine(group, definition)
        elif group.removal is not None:
            self.groups.bring_back(group)
        self.groups.declare(group)

    def _no_longer_held_up(self) -> Iterator[str]:
        """Groups whose members have had time to come back after a restart."""
        for name in self._held_up:
            group = self.groups.by_name.get(name)
            if group is None or not group.memory.is_waiting:
                yield name

    def tick(self) -> None:
        """Declare again a group that has ended: its members had held up another definition."""
        for name in sorted((self._own.keys() - self.groups.by_name.keys()) | set(self._no_longer_held_up())):
            self._declare_own(name, self._own[name])
        now = self.host.durable_places.unix_now
        for name in [name for name, (_, until) in self._ended_elsewhere.items() if now > until]:
            del self._ended_elsewhere[name]
            self.groups.changes += 1
