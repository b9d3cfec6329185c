"""A silent head that has a standby is dialled again: its links go on, or start over at another process."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.handshakes import introduce
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import Dial, OverlayNode
from plimsoll.core.transport.silent_heads import EVEN_ATTEMPTS, GOODBYE_SECONDS, SPREAD, STEPS, Attempts

LIMITS = LinkLimits(heartbeat_seconds=1.0, dead_seconds=60.0)
SILENCE = 3.25
HEAD = Info("h", "head", 7, 0, int(SILENCE * 1000))
DIAL = Dial("home", "tcp://h")


class Node(OverlayNode):
    """Either side; it records what it is told."""

    def __init__(self, info: Info) -> None:
        ids = iter(range(info.incarnation * 100, 9_999)).__next__
        super().__init__(info, LIMITS, ids, max_frame_bytes=10_000)
        self.told: list[Any] = []

    def on_open(self, link: Link) -> None:
        self.told.append("open")

    def on_lost(self, link: Link) -> None:
        self.told.append("lost")

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.told += [msgspec.msgpack.decode(raw) for raw in frame.records]
        self.took(link)


class Pair:
    """A node that has dialled a head, and the connection between them, which breaks when it is dialled again."""

    def __init__(self, info: Info = HEAD, incarnation: int = 3) -> None:
        self.near, self.far = Node(Info("c", "client", incarnation)), Node(info)
        self.now, self.connection = 0.0, 0
        self.dials: list[float] = []
        self.link = self.near.dial(DIAL.peer, DIAL.endpoint)
        self.run(1.0)

    def run(self, seconds: float, *, is_silent: bool = False) -> None:
        """Let time pass in steps of 50 ms; a silent head neither reads nor writes."""
        until = self.now + seconds
        while self.now < until:
            self.now += 0.05
            self.near.poll(self.now)
            dials = self.near.dials_to_make()
            assert set(dials) <= {DIAL}
            self.connection += len(dials)
            self.dials += [self.now] * len(dials)
            frames = [frame for _, frame in self.near.data_to_send()]
            if is_silent:
                continue
            peer = b"%d" % self.connection
            self.far.receive(peer, frames, self.now)
            self.far.poll(self.now)
            self.near.receive(DIAL.peer, [frame for to, frame in self.far.data_to_send() if to == peer], self.now)

    def say(self, value: int) -> None:
        self.near.put(self.link, msgspec.msgpack.encode(value))


def test_a_head_that_is_heard_is_not_dialled_again():
    pair = Pair()
    pair.run(30.0)
    assert len(pair.dials) == 1


def test_a_silent_head_is_dialled_again_once_its_standby_may_lead_and_then_less_and_less_often():
    pair = Pair()
    heard = pair.link.last_heard
    pair.run(20.0, is_silent=True)
    waits = [at - heard for at in pair.dials[1:]]
    assert SILENCE <= waits[0] < SILENCE + 0.1
    pauses = [later - earlier for earlier, later in pairwise(waits)]
    assert all(pause < SILENCE / STEPS * (1 + SPREAD) + 0.1 for pause in pauses[: EVEN_ATTEMPTS - 1])
    later = pauses[EVEN_ATTEMPTS - 1 :]
    growing = [pause for pause in later if pause < 0.9 * max(later)]
    assert all(second > 1.8 * first for first, second in pairwise(growing))
    assert len(growing) > 1
    assert max(later) < SILENCE * (1 + SPREAD) + 0.1
    assert len(waits) < EVEN_ATTEMPTS + 8
    assert pair.near.counters["heads_dialled_again"] == len(waits)


def test_a_head_that_is_away_for_a_day_is_dialled_again_all_the_time():
    attempts = Attempts(SILENCE / STEPS, 0.0)
    while attempts.at < 86_400.0:
        before, attempts = attempts.at, attempts.made(attempts.at, SILENCE, 1.0)
        assert attempts.at - before <= SILENCE
    assert attempts.count > 86_400.0 / SILENCE


def test_a_head_that_was_only_slow_goes_on_with_the_link_where_it_was():
    pair = Pair()
    pair.say(1)
    pair.run(5.0, is_silent=True)
    pair.say(2)
    pair.run(1.0)
    assert len(pair.dials) > 1
    assert (pair.near.told, pair.far.told) == (["open"], ["open", 1, 2])
    count = len(pair.dials)
    pair.run(10.0)
    assert len(pair.dials) == count


def test_another_process_that_leads_there_is_found_and_the_link_starts_over():
    pair = Pair()
    pair.run(3.3, is_silent=True)
    pair.far = Node(msgspec.structs.replace(HEAD, incarnation=8))
    pair.run(1.0)
    assert pair.near.told == ["open", "lost", "open"]
    pair.say(3)
    pair.run(0.2)
    assert pair.far.told == ["open", 3]
    assert pair.now < 1.0 + SILENCE + 1.5


def test_a_head_without_a_standby_is_waited_for():
    pair = Pair(Info("h", "head", 7))
    pair.run(20.0, is_silent=True)
    assert len(pair.dials) == 1


def test_a_link_that_was_hung_up_is_not_dialled_again():
    pair = Pair()
    pair.near.hang_up(DIAL.peer, "enough")
    pair.near.dials_to_make()
    pair.run(10.0, is_silent=True)
    assert len(pair.dials) == 1


def test_a_head_that_says_goodbye_is_dialled_again_at_once_and_its_successor_is_found():
    pair = Pair()
    (link,) = pair.far.handshakes.accepted_links()
    pair.far.handshakes.close(link, "the head is leaving")
    pair.run(0.04)
    then = pair.now
    pair.run(0.3, is_silent=True)
    pair.far = Node(msgspec.structs.replace(HEAD, incarnation=8))
    pair.run(GOODBYE_SECONDS + 0.1)
    assert pair.near.told == ["open", "lost", "open"]
    assert then <= pair.dials[1] < then + GOODBYE_SECONDS + 0.1
    count = len(pair.dials)
    pair.run(10.0)
    assert len(pair.dials) == count


def test_a_goodbye_of_a_head_without_a_standby_is_no_reason_to_dial():
    pair = Pair(Info("h", "head", 7))
    (link,) = pair.far.handshakes.accepted_links()
    pair.far.handshakes.close(link, "the head is leaving")
    pair.run(3.0)
    assert len(pair.dials) == 1


def test_a_head_that_takes_on_a_standby_says_so_on_links_that_are_open_and_they_go_on():
    pair = Pair(msgspec.structs.replace(HEAD, silence_ms=0))
    introduce(pair.far.handshakes, HEAD)
    pair.run(0.2)
    assert pair.near.told == pair.far.told == ["open"], "the link has gone on"
    assert (pair.link.remote, pair.link.open) == (HEAD, True)
    pair.run(SILENCE + 1.0, is_silent=True)
    assert len(pair.dials) > 1, "another process may lead there"


def test_a_head_cannot_have_its_peers_dial_more_often_than_they_would_hear_it():
    pair = Pair(msgspec.structs.replace(HEAD, silence_ms=1))
    pair.run(30.0)
    assert len(pair.dials) == 1, "it is heard every second"
    pair.run(20.0, is_silent=True)
    assert len(pair.dials) < 20


def test_the_peers_of_a_head_that_leaves_do_not_all_come_at_once():
    waits = set()
    for incarnation in range(3, 43):
        pair = Pair(incarnation=incarnation)
        (link,) = pair.far.handshakes.accepted_links()
        pair.far.handshakes.close(link, "the head is leaving")
        pair.run(0.04)
        waits.add(round(pair.near.handshakes.silent.next_at - pair.now, 5))
    assert len(waits) == 40
    assert min(waits) >= GOODBYE_SECONDS * (1 - SPREAD)
    assert max(waits) <= GOODBYE_SECONDS * (1 + SPREAD)
    assert max(waits) - min(waits) > GOODBYE_SECONDS * SPREAD
