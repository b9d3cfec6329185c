"""Consumer groups of real heads, edges and client machines in virtual time, with applications that write down what they
are given and finish.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.core.fleet import Fleet

from plimsoll.core.client import Address, Client, ClientLimits, GapNotice, GroupMember, HandedItem, SlicesChanged
from plimsoll.core.config import DeclaredGroup
from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.verify.slice_laws import GivenItem, SliceVerdict, judge_slices

GROUP = "readings"
STEP_SECONDS = 0.01


class IdentityFleet(Fleet):
    """Each client has a key of its own."""

    def start(self, *names: str) -> None:
        super().start(*names)
        for name in names or list(self.configs):
            self.nodes[name].identity_of = self._dialler

    def _dialler(self, peer: Any) -> str:
        return next((c.dialler for c in self.connections if c.id == peer), "")


def definition(count: int = 4, **fields: Any) -> msg.GroupDefinition:
    return msg.GroupDefinition("[class,=,'R']", count, **{"function": "Modulo", "by": "sensor", **fields})


@dataclass
class Consumer:
    """An application: it takes an item, works for `work` seconds, and takes the next. `life`: of the process."""

    name: str
    life: int
    client: Client
    member: GroupMember
    work: float
    hand: HandedItem | None = None
    at: float = 0.0
    due: float = 0.0
    changes: list[SlicesChanged] = field(default_factory=list)
    is_paused: bool = False


class GroupPlay:
    """A cluster, a publisher, and consumers by name. `west`: a second cluster beside it. `durable`: heads keep their
    logs on disks.
    """

    def __init__(
        self, edges: int = 2, seed: int = 1, count: int = 4, sensors: int = 8, west: bool = False,
        durable: bool = False, **fields: Any,
    ) -> None:  # fmt: skip
        self.fleet = IdentityFleet(seed)
        self.fleet.cluster("h", [f"e{i}" for i in range(1, edges + 1)], ("w",) if west else ())
        self.draw = random.Random(seed)
        self.definition, self.sensors = definition(count, **fields), sensors
        if west:
            self._add_west()
        if durable:
            self.fleet.disks = {head: MemoryFiles() for head in ("h", "w") if head in self.fleet.configs}
        self.fleet.start()
        self.fleet.run(1.0)
        self.consumers: dict[str, Consumer] = {}
        self.given: list[GivenItem] = []
        self.gaps: list[tuple[float, str, GapNotice]] = []
        self.lives = self.said = 0
        self.publishing = self._client("feed")
        self.publisher = self.publishing.publisher("p")
        self.run(0.5)

    def _add_west(self) -> None:
        """A second cluster, and the group declared: it is that of `h`."""
        self.fleet.cluster("w", ["x1"], ("h",))
        what = self.definition
        group = DeclaredGroup(
            cluster="h", name=GROUP, filter=what.filter, count=what.count, function=what.function, by=what.by,
            balancing=what.balancing, head="h",
        )  # fmt: skip
        for head in ("h", "w"):
            self.fleet.configs[head] = msgspec.structs.replace(self.fleet.configs[head], groups=(group,))

    def _client(self, name: str, home: str = "h") -> Client:
        self.lives += 1
        limits = ClientLimits(
            link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), backoff_seconds=0.05, backoff_max_seconds=0.5,
            attach_seconds=1.0, answer_seconds=1.0, away_seconds=0.5,
        )  # fmt: skip
        client = Client(name, 1000 * self.lives, self.fleet.ids(), [Address(f"mem://{home}")], limits)
        client.now = self.fleet.now
        self.fleet.nodes[name] = client
        return client

    # -- consumers

    def join(self, name: str, work: float = 0.0, *, defines: bool = True, home: str = "h") -> Consumer:
        client = self._client(name, home)
        member = client.group_member(GROUP, name, self.definition if defines else None)
        consumer = self.consumers[name] = Consumer(name, self.lives, client, member, work)
        return consumer

    def leave(self, name: str) -> None:
        self.consumers[name].member.leave()

    def crash(self, name: str) -> None:
        """The process is killed: what it has in hand is never finished."""
        consumer = self.consumers.pop(name)
        if consumer.hand is not None:
            self._note(consumer, consumer.hand, None)
        self.fleet.crash(name)

    def has(self, name: str) -> list[int]:
        return sorted(self.consumers[name].member.slices)

    @property
    def group(self) -> Any:
        return self.fleet.head().groups.by_name[GROUP]

    # -- time

    def run(self, seconds: float, rate: float = 0.0) -> None:
        """Let time pass, with `rate` publications a second."""
        for _ in range(round(seconds / STEP_SECONDS)):
            due = rate * STEP_SECONDS
            for _ in range(int(due) + (self.draw.random() < due % 1)):
                self.publish(self.draw.randrange(self.sensors))
            self.fleet.run(STEP_SECONDS)
            self.publishing.take_events()
            for consumer in list(self.consumers.values()):
                self._work(consumer)

    def publish(self, sensor: int, **attributes: Any) -> None:
        self.said += 1
        self.publisher.publish({"class": "R", "sensor": sensor, "n": self.said, **attributes}, sent_us=0)

    def publish_at(self, head: str) -> Callable[[int], None]:
        """A publisher at another head."""
        publisher = self._client(f"feed-{head}", head).publisher(f"p-{head}")
        self.run(0.5)

        def publish(sensor: int) -> None:
            self.said += 1
            publisher.publish({"class": "R", "sensor": sensor, "n": self.said}, sent_us=0)

        return publish

    def _work(self, consumer: Consumer) -> None:
        now, member = self.fleet.now, consumer.member
        for owner, events in consumer.client.take_events():
            if owner is member:
                consumer.changes += [event for event in events if isinstance(event, SlicesChanged)]
        if consumer.name in self.fleet.frozen or consumer.is_paused:
            return
        consumer.client.now = now
        for _ in range(100):
            if consumer.hand is not None:
                if now < consumer.due:
                    return
                self._note(consumer, consumer.hand, now)
                member.items.finish(consumer.hand)
                consumer.hand = None
            taken = member.items.take(1)
            if not taken:
                return
            consumer.hand, consumer.at = taken[0], now
            consumer.due = max(consumer.due, now - STEP_SECONDS) + consumer.work

    def _note(self, consumer: Consumer, handed: HandedItem, until: float | None) -> None:
        item = handed.item
        if isinstance(item, GapNotice):
            self.gaps.append((consumer.at, consumer.name, item))
            return
        number = item.attributes["n"]
        assert isinstance(number, int)
        who = f"{consumer.name}/{consumer.life}"
        slice_number = handed.owned.slice
        self.given.append(
            GivenItem(slice_number, item.publisher, number, who, consumer.at, until, handed.is_redelivered)
        )

    # -- laws

    def verdict(self) -> SliceVerdict:
        return judge_slices(self.given, {"p": range(1, self.said + 1)})

    def check(self, *, is_exact: bool = True, seconds: float = 3.0) -> SliceVerdict:
        """All that was published is processed, once and in order per slice; `is_exact`: and nothing came again."""
        self.run(seconds)
        verdict = self.verdict()
        assert verdict.holds, verdict
        assert not self.gaps, self.gaps[:3]
        if is_exact:
            assert (verdict.redelivered, verdict.processed_once) == (0, self.said), verdict
        return verdict
