"""Faults planted into the machines, one at a time: the simulator must find each, or a clean run would prove nothing.

A mutant patches a machine while its test runs; the product has no switches for this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.client.subscriber import ClientSubscriber
from plimsoll.core.edge.machine import Edge
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.publisher_answers import PublisherAnswers
from plimsoll.core.head.record_input import RecordInput
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import Link
from plimsoll.simulator.run import run_seed

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = 40


def edge_drops_some(patch: pytest.MonkeyPatch) -> None:
    """An edge drops one publication in thirty."""
    original = Edge.deliver

    def mutant(self: Edge, pub: Any, piece: bytes) -> None:
        if pub.offset % 30:
            original(self, pub, piece)
        else:
            self.position = pub.position

    patch.setattr(Edge, "deliver", mutant)


def edge_serves_twice(patch: pytest.MonkeyPatch) -> None:
    """An edge delivers a publication once per matching subscription, and the client does not drop the duplicates."""
    patch.setattr(SubscriptionTable, "once", lambda self, ids, position: ids)
    without_watermarks(patch)


def without_watermarks(patch: pytest.MonkeyPatch) -> None:
    """The client forgets its watermarks."""
    original = SubscriberStream.take

    def mutant(self: SubscriberStream, *args: Any) -> None:
        self.watermarks.clear()
        original(self, *args)

    patch.setattr(SubscriberStream, "take", mutant)


def gaps_are_hidden(patch: pytest.MonkeyPatch) -> None:
    """A client does not report gaps to the application."""
    patch.setattr(SubscriberStream, "on_gap", lambda self, attachment, gap, now: self._place(
        attachment, (gap.head, gap.epoch), gap.high
    ))  # fmt: skip


def suback_too_early(patch: pytest.MonkeyPatch) -> None:
    """A head acknowledges subscriptions before its neighbours have them."""
    patch.setattr(RoutingTable, "settled", settled_at_once)


def settled_at_once(self: RoutingTable) -> list[tuple[str, int, list[str]]]:
    waits, self.waits = self.waits, []
    return [(wait.key, wait.seq, []) for wait in waits]


def tokens_are_not_sent(patch: pytest.MonkeyPatch) -> None:
    """A subscriber that resumes is served from the current position, not from its token."""
    record = ClientSubscriber.resume_record
    patch.setattr(ClientSubscriber, "resume_record", lambda self, at: replace(record(self, at), token=None))


def frames_are_not_resent(patch: pytest.MonkeyPatch) -> None:
    """A reliable link does not resend the frames that were lost with a connection."""
    patch.setattr(link_handshake, "_again", lambda link: [])


def frames_in_any_order(patch: pytest.MonkeyPatch) -> None:
    """A link accepts frames in the order in which they arrive."""
    original = Link.accept

    def mutant(self: Link, frame: wire.Data, size: int, now: float) -> bool:
        self.expected = frame.seq
        return original(self, frame, size, now)

    patch.setattr(Link, "accept", mutant)
    without_watermarks(patch)


def backlog_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A head drops its backlog for a neighbour that was down, and does not report a gap."""
    original = Outbox.renew

    def mutant(self: Outbox, link: Link, again: Any) -> None:
        self.backlog.clear()
        original(self, link, [])

    patch.setattr(Outbox, "renew", mutant)


def relays_while_starting(patch: pytest.MonkeyPatch) -> None:
    """A restarted head relays publications before its neighbours have reported their covers."""
    original = RecordInput.deal

    def mutant(self: RecordInput, link: Link, record: Any, ends_frame: bool) -> None:
        startup = self.host.startup
        missing = startup.missing
        if isinstance(record, msg.Pub | msg.Gap):
            startup.missing = set()
        original(self, link, record, ends_frame)
        if isinstance(record, msg.Pub | msg.Gap):
            startup.missing = missing

    patch.setattr(RecordInput, "deal", mutant)


def offsets_hide_the_next_gap(patch: pytest.MonkeyPatch) -> None:
    """The first of two gaps names the last offsets of both."""
    patch.setattr(Log, "lost", lambda self, low, high: dict(self.gone))


def answers_are_lost(patch: pytest.MonkeyPatch) -> None:
    """A head answers no publication."""
    patch.setattr(PublisherAnswers, "due", lambda self, now: iter(()))


MUTANTS: list[tuple[Patch, str, int]] = [
    (edge_drops_some, "calm", 0),
    (edge_serves_twice, "calm", 0),
    (gaps_are_hidden, "frozen-subscriber", 0),
    (suback_too_early, "far-apart", 0),
    (tokens_are_not_sent, "edge-restart", 0),
    (frames_are_not_resent, "storm", 0),
    (frames_in_any_order, "lossy", 0),
    (backlog_is_dropped, "head-restart-tree", 0),
    (relays_while_starting, "head-restart-tree", 0),
    (offsets_hide_the_next_gap, "sessions-lag", 150),
    (answers_are_lost, "calm", 0),
]
"""Each mutant with the scenario that finds it and the first seed to try; one that shows rarely starts at its find."""


@pytest.mark.parametrize(("mutant", "scenario", "first"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_fault_is_found(mutant: Patch, scenario: str, first: int, monkeypatch: pytest.MonkeyPatch):
    mutant(monkeypatch)
    for seed in range(first, first + SEEDS):
        if not run_seed(scenario, seed).ok:
            return
    raise AssertionError(f"{SEEDS} seeds of {scenario} did not find it: {mutant.__doc__}")
