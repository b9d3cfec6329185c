"""The head that the parts of its hand-over side need, played by a few dictionaries that record all messages."""

from __future__ import annotations

from typing import Any, TypeVar

from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.protocol import messages as msg

T = TypeVar("T")
SERVED = "served: is served as before"
A, B, C, FAR = "a#1", "b#1", "c#1", "k1"


class FakePlaces:
    """The places that sources keep; `kept`: with the entry before the cut."""

    def __init__(self) -> None:
        self.are_needed = False
        self.kept: dict[str, OwnerEntry | None] = {}

    def swapped(self, subscriber: str, old: OwnerEntry | None) -> None:
        self.kept[subscriber] = old


class FakeHost:
    """A head `h` in epoch 5 with the edges `a`, `b` and `c`, one link each; `k` is another head, with the edge `k1`."""

    def __init__(self) -> None:
        self.now, self.epoch, self.name = 100.0, 5, "h"
        self.owners = OwnershipTable()
        self.edges = {"a": A, "b": B, "c": C}
        self.heads = {"k"}
        self.remote_members: set[str] = set()
        self.held_places = FakePlaces()
        self.log = Log(10**6)
        self.said: list[tuple[str, str, Any]] = []
        self.revoked: list[tuple[str, msg.Revoke]] = []
        self.outcomes: list[msg.Outcome] = []
        self.answered = 0

    def serve(self, key: str, *subscribers: str, epoch: tuple[int, int] = (1, 4)) -> None:
        for x in subscribers:
            self.owners.swap(x, key, epoch, (5, 0))

    def edge_of(self, owner: OwnerEntry) -> str:
        return next((edge for edge, key in self.edges.items() if key == owner.key), "")

    def send_to_edge(self, head: str, edge: str, message: object) -> None:
        self.said.append((head, edge, message))

    def send(self, to: str, message: object) -> None:
        self.said.append((to, "", message))

    def revoke(self, edge: str, message: msg.Revoke) -> None:
        self.revoked.append((edge, message))

    def has_edge(self, edge: str) -> bool:
        return edge in self.edges

    def reaches(self, head: str) -> bool:
        return head in self.heads

    def broadcast(self, outcome: msg.Outcome) -> None:
        self.outcomes.append(outcome)

    def answer(self, coordinator: Coordinator, reason: str = SERVED) -> None:
        """The source answers each ABORT that asks, and that it has not answered yet."""
        asks = [(edge, record) for _, edge, record in self.said if isinstance(record, msg.Abort) and record.ask]
        for edge, ask in asks[self.answered :]:
            assert edge == "a", "only the source is asked"
            names = [item.subscriber for item in ask.members]
            coordinator.on_rejected(msg.HandoverRejected(ask.session, names, reason))
        self.answered = len(asks)

    def of(self, where: str, kind: type[T]) -> list[T]:
        """Records of a kind that were sent to an edge, or to a head, oldest first."""
        return [
            record for head, edge, record in self.said if where in (edge, edge or head) and isinstance(record, kind)
        ]


def plan(*members: str, target: str = "b", **changed: Any) -> msg.HandoverPlan:
    """By default from `a` to `b`, by drain; to `k1` across clusters."""
    given: dict[str, Any] = {
        "source": "a",
        "target": target,
        "target_head": "k" if target == FAR else "h",
        "members": list(members),
        "replay": False,
        "prepare_seconds": 10.0,
        "drain_seconds": 20.0,
        **changed,
    }
    return msg.HandoverPlan(**given)


def items(*members: str, epoch: tuple[int, int] = (1, 4)) -> list[msg.MemberItem]:
    return [msg.MemberItem(x, epoch) for x in members]


def coordinator_of(host: FakeHost) -> Coordinator:
    """A coordinator; the host plays its head, links and mediators."""
    return Coordinator(host, host, host.broadcast, 0.25)


def begun(host: FakeHost, *members: str, session: str = "1.1", **changed: Any) -> Coordinator:
    """A coordinator with one session, prepared."""
    host.serve(A, *members)
    coordinator = coordinator_of(host)
    coordinator.prepare(session, plan(*members, **changed))
    return coordinator


def ready(host: FakeHost, *members: str, session: str = "1.1", **changed: Any) -> Coordinator:
    """All of them are attached."""
    coordinator = begun(host, *members, session=session, **changed)
    coordinator.on_slot(msg.Slot(session, list(members), "mem://b", ""))
    coordinator.on_attached(msg.TargetAttached(session, list(members)))
    return coordinator


def cutting(host: FakeHost, *members: str, session: str = "1.1", **changed: Any) -> Coordinator:
    """The cut was commanded, and INSTALL is under way."""
    coordinator = ready(host, *members, session=session, **changed)
    coordinator.cut(session)
    return coordinator


def cut(host: FakeHost, *members: str, session: str = "1.1", **changed: Any) -> Coordinator:
    """All of them are cut."""
    coordinator = cutting(host, *members, session=session, **changed)
    if changed.get("target") == FAR:
        coordinator.cut_decision.on_marker(msg.Marker(session, list(members), ("k", 8, 30)))
    elif not changed.get("replay"):
        coordinator.cut_decision.cut_members(session, items(*members, epoch=(1, 5)), B, ("h", 5, 70))
    return coordinator


def states(coordinator: Coordinator, session: str = "1.1") -> dict[str, str]:
    return dict(coordinator.table.outcome(session).members)


def woken_until(coordinator: Coordinator, host: FakeHost, end: float) -> list[float]:
    """Let time pass as a shell does: from one requested time to the next."""
    woken = []
    while (at := coordinator.wake_at()) <= end:
        host.now = max(host.now, at)
        woken.append(host.now)
        coordinator.tick()
        assert coordinator.wake_at() > host.now, "a head that wants to be woken at once for ever spins"
    return woken
