"""`confirm: edges`: publications whose publisher, or whose neighbour, waits until edges have them.

An edge has what it acknowledges. A neighbour sends CONFIRMED once all edges behind it have a publication. Links that
are lost, or do not confirm within `confirm_seconds`, are named in the answer; nothing is refused once it is logged.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.core.head.open_publisher import PendingConfirmation
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_answers import PublisherAnswers
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg


@dataclass(slots=True)
class AwaitedConfirmation:
    """One logged publication.

    `pending`: of a publisher here; without one it came from `neighbor`, and has `neighbor_position` in its log.
    """

    missing: set[str]
    late: set[str]
    deadline: float
    publisher: str
    pending: PendingConfirmation | None
    neighbor: str
    neighbor_position: int


class Confirmations(HeadPart):
    """Publications of a head that wait for edges, by position."""

    def __init__(self, outboxes: Outboxes, answers: PublisherAnswers, confirm_seconds: float) -> None:
        self.outboxes, self.answers, self.confirm_seconds = outboxes, answers, confirm_seconds
        self._awaited: dict[int, AwaitedConfirmation] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.Confirmed, self.confirmed)

    def tick(self) -> None:
        self.end_late(self.outboxes.node.now)

    def await_for_publisher(
        self, position: int, publisher: str, pending: PendingConfirmation, keys: set[str], now: float
    ) -> None:
        """Let a publisher here wait for these links."""
        deadline = now + self.confirm_seconds
        self._begin(position, AwaitedConfirmation(set(), set(), deadline, publisher, pending, "", 0), keys)

    def await_for_neighbor(
        self, position: int, neighbor: str, neighbor_position: int, keys: set[str], now: float
    ) -> None:
        """Let the neighbour that a publication came from wait for these links."""
        deadline = now + self.confirm_seconds
        self._begin(position, AwaitedConfirmation(set(), set(), deadline, "", None, neighbor, neighbor_position), keys)

    def _begin(self, position: int, awaited: AwaitedConfirmation, keys: set[str]) -> None:
        outboxes = self.outboxes.by_key
        awaited.missing = {key for key in keys if key in outboxes}
        awaited.late = {_name(key) for key in keys - awaited.missing}
        self._awaited[position] = awaited
        for key in awaited.missing:
            outboxes[key].await_answer(position)
        if not awaited.missing:
            self._done(position)

    def acknowledged(self, outbox: Outbox, through: int) -> None:
        """An edge has acknowledged everything up to a position."""
        while not outbox.is_head and outbox.awaiting and outbox.awaiting[0] <= through:
            self._has(outbox.awaiting.popleft(), outbox.key, ())

    def confirmed(self, outbox: Outbox, confirmed: msg.Confirmed) -> None:
        """All edges behind a neighbour have these positions, except those that it names."""
        for position in confirmed.positions:
            if position in outbox.awaiting:
                outbox.awaiting.remove(position)
                self._has(position, outbox.key, confirmed.missing)

    def lost(self, outbox: Outbox) -> None:
        """A link is over: name it in all that it has not confirmed."""
        key = outbox.key
        outbox.awaiting.clear()
        for position in [p for p, awaited in self._awaited.items() if key in awaited.missing]:
            self._has(position, key, [_name(key)])

    def end_late(self, now: float) -> None:
        """Wait no longer for links that have not confirmed in time, and name them."""
        for position in [p for p, awaited in self._awaited.items() if awaited.deadline <= now]:
            awaited = self._awaited[position]
            awaited.late |= {_name(key) for key in awaited.missing}
            for key in awaited.missing:
                if (outbox := self.outboxes.by_key.get(key)) is not None and position in outbox.awaiting:
                    outbox.awaiting.remove(position)
            self._done(position)

    def _has(self, position: int, key: str, late: list[str] | tuple[str, ...]) -> None:
        awaited = self._awaited.get(position)
        if awaited is not None:
            awaited.missing.discard(key)
            awaited.late |= set(late)
            if not awaited.missing:
                self._done(position)

    def _done(self, position: int) -> None:
        awaited = self._awaited.pop(position)
        if awaited.pending is not None:
            awaited.pending.missing = False
            awaited.pending.late = sorted(awaited.late)
            self.answers.touch(awaited.publisher)
        elif (outbox := self.outboxes.by_key.get(awaited.neighbor)) is not None:
            self.outboxes.send(outbox, msg.Confirmed([awaited.neighbor_position], sorted(awaited.late)))


def _name(key: str) -> str:
    return key.partition("#")[0]
