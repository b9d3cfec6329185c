"""The mediator's outbox: the effects of one event, the pace of repeated commands, and the numbers of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from plimsoll.core.protocol.messages import (
    Command,
    HandoverPlan,
    PublisherCommand,
    PublisherPlan,
    SliceCommand,
    SliceMovesPlan,
)
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.events import CreateSession, DeleteSession, EmitEvent, HeadQuery, SaveMemory, SendMessage
from plimsoll.core.session.inputs import Timings
from plimsoll.core.session.state import Session, SessionKind


class CommandOutbox:
    """The clock and the effects of one life. Each name and number contains `epoch`, so those of two lives differ."""

    def __init__(self, epoch: int, timings: Timings) -> None:
        self.epoch, self.timings = epoch, timings
        self.now = 0.0
        self.effects: list[EmitEvent | CreateSession | DeleteSession | SendMessage | SaveMemory] = []
        self._last_sent: dict[str, float] = {}
        self._queries = self._batches = 0

    def begin(self, now: float) -> None:
        """Begin another event: no effects yet. A clock that goes back stands still."""
        self.now = max(self.now, now)
        self.effects = []

    def next_batch_id(self) -> str:
        """The name of a new batch on the wire, EPOCH.NUMBER."""
        self._batches += 1
        return f"{self.epoch}.{self._batches}"

    def next_query_id(self) -> int:
        """The number of a new query; replies to the queries of another life do not match it."""
        self._queries += 1
        return self.epoch << 32 | self._queries

    def is_due(self, key: str, seconds: float) -> bool:
        """Whether `key` was last sent at least `seconds` ago; if so, it counts as sent now."""
        if self.now - self._last_sent.get(key, float("-inf")) < seconds:
            return False
        self._last_sent[key] = self.now
        return True

    def forget(self, prefix: str) -> None:
        """Forget when keys with this prefix were sent."""
        self._last_sent = {key: at for key, at in self._last_sent.items() if not key.startswith(prefix)}

    def send(self, head: str, message: HeadQuery) -> None:
        self.effects.append(SendMessage(head, message))

    def command(self, batch: Batch, step: Literal["prepare", "cut", "abort", "ask"], seconds: float) -> None:
        """Send a command about a batch, unless the same one was sent less than `seconds` ago."""
        if self.is_due(f"{batch.id}/{step}", seconds):
            plan = handover_plan(batch) if step == "prepare" else None
            self.send(batch.head, Command(self.epoch, batch.head_epoch, batch.id, step, plan))

    def publisher_command(
        self, batch: Batch, step: Literal["move", "abort", "ask"], seconds: float, plan: PublisherPlan | None = None
    ) -> None:
        """Send a command about publishers, unless the same one was sent less than `seconds` ago."""
        if self.is_due(f"{batch.id}/{step}", seconds):
            self.send(batch.head, PublisherCommand(self.epoch, batch.head_epoch, batch.id, step, plan))

    def slice_command(
        self, batch: Batch, step: Literal["move", "abort", "ask"], seconds: float, plan: SliceMovesPlan | None = None
    ) -> None:
        """Send a command about slices, unless the same one was sent less than `seconds` ago."""
        if self.is_due(f"{batch.id}/{step}", seconds):
            self.send(batch.head, SliceCommand(self.epoch, batch.head_epoch, batch.id, step, plan))

    def end_or_ask(self, kind: SessionKind, batch: Batch, step: Literal["abort", "ask"], seconds: float) -> None:
        """Abort a batch, or ask about it, by the command of its kind of session, unless that was done lately."""
        if kind == "publishers":
            self.publisher_command(batch, step, seconds)
        elif kind == "slices":
            self.slice_command(batch, step, seconds)
        else:
            self.command(batch, step, seconds)

    def create(self, name: str, parent: Session | None, spec: Mapping[str, Any]) -> None:
        """Ask the shell for a session object, owned by `parent` if there is one."""
        owner = ("", "") if parent is None else (parent.uid, parent.name)
        self.effects.append(CreateSession(name, *owner, spec))

    def remember(self, cluster: str, policy: str, memory: Mapping[str, Any]) -> None:
        """Ask the shell to store what a policy remembers of a cluster."""
        self.effects.append(SaveMemory(cluster, policy, memory))

    def emit(self, session: Session, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        """Add an event about a session, for people."""
        self.effects.append(EmitEvent(session.uid, session.name, type_, reason, message))


def handover_plan(batch: Batch) -> HandoverPlan:
    """A batch in the form of a command for its head."""
    return HandoverPlan(
        batch.source, batch.target, batch.target_head, list(batch.members), batch.replay, batch.prepare_seconds,
        batch.drain_seconds,
    )  # fmt: skip
