"""Polls the brokers of a fleet for their status, and keeps their last answers and reports.

It goes on even while the API server is away: heads that are not polled would take the mediator for gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from plimsoll.core.config import PeerBroker, Role
from plimsoll.mediator import fleet_view
from plimsoll.mediator.control_plane import (
    ClusterEdges,
    ControlEvent,
    ControlPlane,
    HeadCommand,
    HeadMessageReceived,
    LeadershipReceived,
    ListingReceived,
    LoadReportReceived,
    MalformedReply,
    MediatorKeyPair,
    StatusReceived,
    UndialledBrokerError,
)

log = logging.getLogger(__name__)

POLL_SECONDS = 0.02
STATUS_QUERY_SECONDS = 0.5
EDGE_QUERY_ROUNDS = 3
"""Heads are asked every STATUS_QUERY_SECONDS, edges in one round of this many: they also report by themselves."""


@dataclass(frozen=True)
class BrokerReading:
    """The last status answer and the last load report of one broker; ages in seconds, None if there was none."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    answer_age: float | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    report_age: float | None = None


class BrokerPoller:
    """The connections of one mediator to its brokers. All callbacks are called from `run`.

    `on_message`: a head reports on a hand-over. `on_malformed`: a broker sent what cannot be. `on_change`: a head's
    epoch, readiness or edges have changed.
    """

    def __init__(
        self,
        on_message: Callable[[HeadMessageReceived], None],
        on_malformed: Callable[[MalformedReply], None],
        on_change: Callable[[], None],
    ) -> None:
        self._on_message, self._on_malformed, self._on_change = on_message, on_malformed, on_change
        self._peers: Mapping[str, tuple[PeerBroker, Role]] = {}
        self._edges: Mapping[str, ClusterEdges] = {}
        self._answers: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._control: ControlPlane | None = None
        self._undialled: set[PeerBroker] = set()
        self.draining: frozenset[str] = frozenset()
        self.known = fleet_view.FleetReadings()

    @property
    def readings(self) -> Mapping[str, BrokerReading]:
        """By broker: its last answer and report."""
        now = time.monotonic()
        return {name: self._reading_of(name, now) for name in self._answers.keys() | self.known.reports.keys()}

    def _reading_of(self, name: str, now: float) -> BrokerReading:
        answer, answered_at = self._answers.get(name, ({}, None))
        report = self.known.reports.get(name)
        return BrokerReading(
            answer, None if answered_at is None else now - answered_at,
            {} if report is None else report.content, None if report is None else now - report.at,
        )  # fmt: skip

    def open(self, name: str, key_pair: MediatorKeyPair | None, epoch: int) -> None:
        """Connect to the brokers as the mediator of an epoch; earlier answers and reports are kept."""
        self._control = ControlPlane(name, key_pair, epoch)
        self._sync_connections()

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def update_peers(self, peers: Mapping[str, tuple[PeerBroker, Role]], edges: Mapping[str, ClusterEdges]) -> None:
        """Connect to these brokers and to no others. `edges`: by head, the edges of its cluster to send it."""
        self._peers, self._edges = dict(peers), dict(edges)
        self._sync_connections()

    def _sync_connections(self) -> None:
        if self._control is None:
            return
        for gone in self._control.dialled - self._peers.keys():
            self._control.hang_up(gone)
            self._answers.pop(gone, None)
            self.known.reports.pop(gone, None)
            self.known.answers.pop(gone, None)
        for peer, role in self._peers.values():
            try:
                self._control.dial(peer, role)
            except UndialledBrokerError as error:  # one broker keeps no other waiting
                if peer not in self._undialled:
                    log.error("%s", error)
                self._undialled.add(peer)

    def send(self, head: str, message: HeadCommand) -> None:
        """Send a command to a head; it is lost if there is no connection, and the session engine sends it again."""
        if self._control is not None:
            self._control.send(head, message)

    async def run(self) -> None:
        """Query and poll the brokers, until cancelled."""
        queried_at, rounds = float("-inf"), 0
        while self._control is not None:
            control = self._control
            now = time.monotonic()
            if now - queried_at >= STATUS_QUERY_SECONDS:
                queried_at, rounds = now, rounds + 1
                for name, (_, role) in self._peers.items():
                    if role == "head" or rounds % EDGE_QUERY_ROUNDS == 1:
                        control.ask(name, self._edges_of(name))
            for event in control.poll(0):
                self.receive(event, time.monotonic())
            await asyncio.sleep(POLL_SECONDS)

    def _edges_of(self, head: str) -> ClusterEdges | None:
        """The edges of a head's cluster; those that sessions drain now are cordoned, too."""
        found = self._edges.get(head)
        if found is None:
            return None
        draining = self.draining.intersection(found.edges)
        return replace(found, cordoned=tuple(sorted(draining.union(found.cordoned))))

    def receive(self, event: ControlEvent, now: float) -> None:
        match event:
            case StatusReceived(broker, status):
                self._answers[broker] = status, now
                if self.known.note_answer(broker, status, now):
                    self._on_change()
            case LoadReportReceived(broker, report):
                self.known.note_report(broker, report, now)
            case MalformedReply():
                self._on_malformed(event)
            case HeadMessageReceived():
                self._on_message(event)
            case ListingReceived() | LeadershipReceived():  # nothing here asks for them: one that comes changes nothing
                return
            case _:
                assert_never(event)
