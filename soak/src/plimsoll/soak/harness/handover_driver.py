"""Drives hand-overs with a mediator's commands, without a mediator's plans and policies.

As in a mediator, a hand-over is stored before its command is sent, and the command is repeated until the head reports a
final state. After a restart the next driver, with a higher epoch, continues it. A head that has restarted has lost its
sessions: they failed, and their members are at the edges that serve them now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from plimsoll.core.protocol import messages as msg

REPEAT_SECONDS = 0.3
FINAL_STATES = ("done", "aborted", "failed")
STATE_RANKS = {
    state: rank for rank, state in enumerate(("", "unknown", "preparing", "ready", "cutting", "cut", *FINAL_STATES))
}

Step = Literal["prepare", "cut", "abort"]
SendCommand = Callable[[str, msg.Command], None]
"""Sends a command to a head; it may be lost."""


class DrivenHandover(msgspec.Struct, kw_only=True):
    """One hand-over as the ledger stores it; times by the driver's clock.

    `until`: the state at which the driver stops and waits for `request_step`. `waits`: seconds from `ready` to the cut
    that members still attaching have.
    """

    session: str
    head: str
    head_epoch: int
    plan: msg.HandoverPlan
    began_at: float
    wanted: Step = "prepare"
    until: Literal["ready", "done"] = "done"
    waits: float = 1.0
    state: str = ""
    members: list[tuple[str, str]] = []
    reason: str = ""
    ready_at: float | None = None
    ended_at: float | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def seconds(self) -> float:
        return (self.ended_at or self.began_at) - self.began_at


class HandoverLedger:
    """The hand-overs by session, which outlive a driver. With a file, they are saved before a command is sent."""

    def __init__(self, path: Path | None = None) -> None:
        self.handovers: dict[str, DrivenHandover] = {}
        self._path = path
        if path is not None and path.exists():
            for one in msgspec.json.decode(path.read_bytes(), type=list[DrivenHandover]):
                self.handovers[one.session] = one

    def save(self, one: DrivenHandover) -> None:
        self.handovers[one.session] = one
        if self._path is not None:
            beside = self._path.with_name(self._path.name + ".new")
            beside.write_bytes(msgspec.json.encode(list(self.handovers.values())))
            beside.replace(self._path)

    def forget(self, session: str) -> None:
        """Drop a hand-over; only in a ledger without a file, which would keep it."""
        del self.handovers[session]


class HandoverDriver:
    """One life of a driver; its `epoch` is higher than those before. `on_state` is called at each new state."""

    def __init__(
        self,
        epoch: int,
        ledger: HandoverLedger,
        send: SendCommand,
        on_state: Callable[[DrivenHandover], None] = lambda one: None,
    ) -> None:
        self.epoch, self.ledger = epoch, ledger
        self._send, self._on_state = send, on_state
        self._number = 0
        self._due = {one.session: 0.0 for one in ledger.handovers.values() if not one.is_final}
        self._answered: set[str] = set()

    def begin(
        self, head: str, head_epoch: int, plan: msg.HandoverPlan, now: float, *,
        until: Literal["ready", "done"] = "done", waits: float = 1.0,
    ) -> DrivenHandover:  # fmt: skip
        """Store a new hand-over and send its first command."""
        self._number += 1
        one = DrivenHandover(
            session=f"{self.epoch}.{self._number}", head=head, head_epoch=head_epoch, plan=plan, began_at=now,
            until=until, waits=waits,
        )  # fmt: skip
        self.ledger.save(one)
        self._send_command(one, now)
        return one

    def request_step(self, session: str, step: Step, now: float) -> None:
        """Continue a hand-over: cut, or abort if it is not cut yet."""
        one = self.ledger.handovers[session]
        if not one.is_final:
            one.wanted = step
            self.ledger.save(one)
            self._send_command(one, now)

    def tick(self, now: float) -> None:
        """Resend the commands that are due."""
        for session in [session for session, at in self._due.items() if at <= now]:
            one = self.ledger.handovers[session]
            if self._may_cut(one, now):
                one.wanted = "cut"
                self.ledger.save(one)
            self._send_command(one, now)

    def on_outcome(self, head: str, outcome: msg.Outcome, now: float) -> None:
        """Take a head's report. An error that leaves the hand-over undecided, and an outdated state, are ignored."""
        one = self.ledger.handovers.get(outcome.session)
        if one is None or one.is_final or one.head != head:
            return
        if outcome.state == "failed":
            code = outcome.reason.partition(":")[0]
            if code not in ("starting", "mediator-epoch"):
                self._end(one, "failed", outcome, now)
        elif outcome.head_epoch != one.head_epoch:
            self._end(one, "failed", outcome, now)
        elif outcome.state == "unknown":
            if one.wanted != "prepare" or one.state:
                self._end(one, "failed", outcome, now)
        elif STATE_RANKS[outcome.state] >= STATE_RANKS[one.state]:
            self._advance(one, outcome, now)

    def _advance(self, one: DrivenHandover, outcome: msg.Outcome, now: float) -> None:
        was, one.state, one.members = one.state, outcome.state, list(outcome.members)
        one.reason = outcome.reason or one.reason
        if one.is_final:
            self._end(one, outcome.state, outcome, now)
            return
        if outcome.state == "ready" and one.ready_at is None:
            one.ready_at = now
        self._answered.add(one.session)
        if self._may_cut(one, now):
            self.request_step(one.session, "cut", now)
        if one.state != was:
            self._on_state(one)

    def _may_cut(self, one: DrivenHandover, now: float) -> bool:
        """Whether all members are attached, or the others have had their time."""
        if one.wanted != "prepare" or one.until == "ready" or one.state != "ready":
            return False
        waiting = any(state == "preparing" for _, state in one.members)
        return not waiting or now >= (one.ready_at or now) + one.waits

    def _end(self, one: DrivenHandover, state: str, outcome: msg.Outcome, now: float) -> None:
        one.state, one.ended_at, one.reason = state, now, outcome.reason or one.reason
        one.members = list(outcome.members) or one.members
        self._due.pop(one.session, None)
        self.ledger.save(one)
        self._on_state(one)

    def _send_command(self, one: DrivenHandover, now: float) -> None:
        self._due[one.session] = now + REPEAT_SECONDS
        inherited = not one.session.startswith(f"{self.epoch}.") and one.session not in self._answered
        step: Literal["prepare", "cut", "abort", "ask"] = "ask" if inherited else one.wanted
        plan = one.plan if step == "prepare" else None
        self._send(one.head, msg.Command(self.epoch, one.head_epoch, one.session, step, plan))


class SoakListings:
    """Lists the subscribers of edges page by page. `send` sends a LIST_SUBSCRIBERS to a head."""

    def __init__(self, send: Callable[[str, msg.ListSubscribers], None]) -> None:
        self._send = send
        self._ids = 0
        self._asked: dict[int, tuple[str, str, list[str], float]] = {}
        self.complete: dict[str, list[str]] = {}

    def request(self, head: str, edge: str, now: float) -> None:
        """Request the list of an edge from its start; the answer will be in `complete`."""
        self.complete.pop(edge, None)
        self._asked = {number: asked for number, asked in self._asked.items() if asked[1] != edge}
        self._request_page(head, edge, [], now)

    def request_all(self, edges: Iterable[tuple[str, str]], now: float) -> None:
        for head, edge in edges:
            self.request(head, edge, now)

    def on_page(self, head: str, served: msg.SubscriberPage, now: float) -> None:
        asked = self._asked.pop(served.id, None)
        if asked is None:
            return
        names = [*asked[2], *served.subscribers]
        if served.more and served.subscribers:
            self._request_page(head, served.edge, names, now)
        else:
            self.complete[served.edge] = names

    def tick(self, now: float) -> None:
        """Repeat unanswered requests."""
        for number, (head, edge, names, at) in list(self._asked.items()):
            if now - at > REPEAT_SECONDS:
                del self._asked[number]
                self._request_page(head, edge, names, now)

    def _request_page(self, head: str, edge: str, names: Sequence[str], now: float) -> None:
        self._ids += 1
        self._asked[self._ids] = (head, edge, list(names), now)
        self._send(head, msg.ListSubscribers(self._ids, edge, names[-1] if names else ""))
