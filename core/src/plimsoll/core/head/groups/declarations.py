"""Groups of the custom resources: those of this cluster are served here, and all heads stamp for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from plimsoll.core.head.groups.definition import Declared, definition_fault
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.removal import Removal
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.transport.link import Peer


class DeclarationsHost(Protocol):
    """What declarations need of their head."""

    now: float
    counters: Counter[str]


class GroupDeclarations(HeadPart):
    """`cluster`: of this head."""

    def __init__(self, host: DeclarationsHost, groups: GroupTable, cluster: str) -> None:
        self.host, self.groups, self.cluster = host, groups, cluster
        self._own: dict[str, GroupDefinition] = {}
        self._elsewhere: dict[str, Declared] = {}
        self._ended_elsewhere: dict[str, tuple[Declared, float]] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_mediators.add(msg.ClusterGroups, self.on_declared)

    def on_declared(self, _: Peer, said: msg.ClusterGroups) -> None:
        """A mediator names the groups of the custom resources, all of them."""
        self.declare([Declared(each.cluster, each.name, each.definition, each.head) for each in said.groups])

    def elsewhere(self, group: str) -> Declared | None:
        """A group of another cluster. One that is declared no longer is still its head's: members have its log."""
        ended = self._ended_elsewhere.get(group)
        return self._elsewhere.get(group) or (ended[0] if ended is not None else None)

    def declare(self, declared: Iterable[Declared]) -> None:
        """The groups of the custom resources, all of them: stamp for each, and serve those of this cluster.

        A group that is declared no longer ends once its members have what the log has of it; one that members have
        made stays.
        """
        all_of_them = {each.name: each for each in declared}
        own = {name: x.definition for name, x in all_of_them.items() if x.cluster == self.cluster}
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
        host, times = self.host, self.groups.times
        for name, group in self.groups.by_name.items():
            if group.is_declared and name not in own and group.removal is None:
                group.removal = Removal.of(name, host.now, times)
                self.groups.stop_stamping(name)
            group.is_declared = name in own
        for name in [name for name in self._elsewhere if name in own or name not in declared]:
            self._ended_elsewhere[name] = self._elsewhere.pop(name), host.now + times.kept
            self.groups.stop_stamping(name)
        for name in declared.keys() & self._ended_elsewhere.keys():
            del self._ended_elsewhere[name]

    def _declare_own(self, name: str, definition: GroupDefinition) -> None:
        group = self.groups.by_name.get(name)
        if group is None:
            group = self.groups.define(name, definition)
        elif group.definition != definition:
            if group.members and group.has_other_slices(definition):
                self.host.counters["groups_refused"] += 1  # its members know it as it is
                return
            self.groups.redefine(group, definition)
        elif group.removal is not None:
            self.groups.bring_back(group)
        group.is_declared = True

    def tick(self) -> None:
        """Declare again a group that has ended: its members had held up another definition."""
        for name in self._own.keys() - self.groups.by_name.keys():
            self._declare_own(name, self._own[name])
        for name in [name for name, (_, until) in self._ended_elsewhere.items() if self.host.now > until]:
            del self._ended_elsewhere[name]
