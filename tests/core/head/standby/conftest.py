"""A head's feed and a standby's follower, with a wire between them that a test holds in its hand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plimsoll.core.config import BrokerConfig, LinkSecurity, PeerBroker
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_feed import LogFeed, LogPlace
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.link import LinkLimits

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="sim://h", control="sim://h/c", security=LinkSecurity(plain=True)
)
SIZE = 64 * 1024


class Pair:
    """`feed` belongs to a head of term 1; `follower` is linked to it as long as `is_linked`."""

    def __init__(self) -> None:
        self.now, self.is_linked, self._ids = 0.0, True, itertools.count(1)
        self.lead(1, 100)
        self.follow(900)

    def lead(self, term: int, epoch: int, store: LogStore | None = None) -> None:
        """A head begins, with what is in the store."""
        self.store = store or LogStore(MemoryFiles(), "h", SIZE)
        recovered = recovered_log(self.store, self.store.recover(), is_synced=True, is_replica=store is not None)
        self.head = Head(CONFIG, epoch, self._id, recovered)
        self.commit = RoundCommit(self.store, self.head)
        self.commit.begin(self.now)
        self.commit.write(self.now)
        self.feed = LogFeed("h", epoch, term, LinkLimits(), self._id, 1 << 20)
        self.feed.begin(self.store)

    def follow(self, incarnation: int) -> None:
        """A standby starts."""
        self.copy = LogStore(MemoryFiles(), "h", SIZE)
        self.follower = LogFollower(
            PeerBroker(name="h", data="sim://h"), incarnation, self.copy, LinkLimits(), self._id, 1 << 20
        )
        self.peer = f"peer{incarnation}".encode()

    def _id(self) -> int:
        return next(self._ids)

    def log(self, gaps: int = 1) -> LogPlace:
        """The head logs something; returns the place that depends on it."""
        for _ in range(gaps):
            self.head.distributor.log_uncertainty("")
            self.commit.write(self.now)
        return self.feed.end

    def to_feed(self) -> None:
        self.follower.poll(self.now)
        frames = [frame for _, frame in self.follower.data_to_send()]
        if self.is_linked and frames:
            # As in the event loop: what is not the feed's is the head's, which asks who this is.
            node = self.feed if self.feed.claims(self.peer, frames) else self.head
            node.receive(self.peer, frames, self.now)

    def to_follower(self) -> None:
        self.feed.poll(self.now)
        said = [*self.head.data_to_send(), *self.feed.data_to_send()]
        frames = [frame for peer, frame in said if peer == self.peer]
        if self.is_linked and frames:
            self.follower.receive("h", frames, self.now)

    def exchange(self, seconds: float = 0.2) -> None:
        """Let all arrive that is under way, in both directions."""
        until = self.now + seconds
        while self.now < until:
            self.to_feed()
            self.to_follower()
            self.now += 0.01

    def control(self, node: Any, *records: Any) -> None:
        """A mediator says something."""
        node.receive_control("m", wire.control_frame(msg.Identify("m", "mediator", 1), *records), self.now)


@pytest.fixture
def pair() -> Pair:
    return Pair()
