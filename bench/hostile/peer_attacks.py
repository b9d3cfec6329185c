"""Attacks of a peer that is admitted, by name: frames that the protocol allows, or nearly, made to be dear.

An attack is a generator of bursts; a burst is what a broker may find on one connection at once. `HostilePeer` keeps
the numbers of its link right where the attack does not lie about them. Everything is made without random numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec import Raw, Struct

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info

FRAMES = 256
"""Of one burst: as many as a broker takes in a round."""
HUGE_BYTES = 1_000_000
"""Of a huge record: it has to fit into a frame of 1 MiB."""
CREDIT = 1 << 40


class HostilePeer:
    """One link of the attacker, as its own side numbers it. `reads`: whether it acknowledges what it is sent."""

    def __init__(self, name: str, link: int) -> None:
        self.name, self.link = name, link
        self.sent = self.received = 0

    def hello(self, *, known: bool = False, link: int | None = None, name: str = "") -> bytes:
        info = Info(name or self.name, "client", 1)
        return wire.hello_frame(self.link if link is None else link, 0, known, info)

    def data(self, records: list[bytes], seq: int | None = None) -> bytes:
        if seq is None:
            self.sent += 1
            seq = self.sent
        return wire.data_frame(self.link, 0, seq, self.received, CREDIT, records, len(records))

    def say(self, *records: Struct) -> bytes:
        return self.data([wire.encode(record) for record in records])


Bursts = Callable[[HostilePeer], Iterator[list[bytes]]]


@dataclass(frozen=True)
class PeerAttack:
    """`at`: the broker that it is sent to. `links`: of the one attacker. `reads`: acknowledges what it is sent."""

    name: str
    at: Literal["edge", "head"]
    bursts: Bursts
    links: int = 1
    reads: bool = True


def resume(
    x: str, n: int = 1, attachment: int = 1, texts: tuple[str, ...] = (), token: int | None = None
) -> msg.Resume:
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(texts, 1)]
    at = None if token is None else ("h", 1, token)
    return msg.Resume(attachment, x, (1, n), 1, items, msg.Policy(), at, [], None)


def repeated(make: Callable[[HostilePeer, int], bytes], frames: int = FRAMES) -> Bursts:
    """Bursts of frames that `make` makes from a running number."""

    def bursts(peer: HostilePeer) -> Iterator[list[bytes]]:
        numbers = itertools.count(1)
        while True:
            yield [make(peer, next(numbers)) for _ in range(frames)]

    return bursts


def filled(record: Callable[[int], Struct], size: int = 32 * 1024, before: tuple[Struct, ...] = ()) -> Bursts:
    """Frames full of one small record, with a running number."""

    def bursts(peer: HostilePeer) -> Iterator[list[bytes]]:
        if before:
            yield [peer.say(*before)]
        numbers = itertools.count(1)
        while True:
            records: list[bytes] = []
            while sum(map(len, records[-1:])) * len(records) < size:
                records.append(wire.encode(record(next(numbers))))
            yield [peer.data(records)]

    return bursts


def huge(make: Callable[[int], Struct], before: tuple[Struct, ...] = ()) -> Bursts:
    """Frames with one record of nearly a frame's size. `make` gets how many bytes it may have."""

    def bursts(peer: HostilePeer) -> Iterator[list[bytes]]:
        if before:
            yield [peer.say(*before)]
        record = wire.encode(make(HUGE_BYTES))
        while True:
            yield [peer.data([record])]

    return bursts


def raw_records(record: bytes, count: int) -> Bursts:
    def bursts(peer: HostilePeer) -> Iterator[list[bytes]]:
        while True:
            yield [peer.data([record] * count)]

    return bursts


def _lengths(peer: HostilePeer, number: int) -> bytes:
    """A frame whose array of records claims more than there is, and one whose record does."""
    if number % 2:
        return wire.data_head(wire.data_link(peer.link, 0), peer.sent + 1, wire.data_answer(0, CREDIT), 2**32 - 1)
    return peer.data([b"\x93\x22\xdd\x7f\xff\xff\xff\x01", b"\x93\x22\xdb\xff\xff\xff\xff"][:1])


def _detached(peer: HostilePeer, number: int) -> bytes:
    x, n = f"x{number}", number
    return peer.say(resume(x, 1, n), msg.Detach([n], withdraw=True))


def _behind(peer: HostilePeer) -> Iterator[list[bytes]]:
    """One subscriber with a long list comes back far behind in the log, again and again."""
    texts = tuple(f"[a,=,{i}],[b,>,{i}]" for i in range(9_000))
    for n in itertools.count(1, 2):
        yield [peer.say(resume("behind", n, n, texts, token=1))]
        yield from itertools.repeat([], 50)


def _asks_again(peer: HostilePeer) -> Iterator[list[bytes]]:
    """Fill the window of the broker with answers that are never acknowledged, and ask for them again and again."""
    refused = [resume("x" * 250, 1, n, token=2**62) for n in range(500)]
    yield from ([peer.say(*refused)] for _ in range(40))
    for _ in itertools.count():
        yield [peer.hello(known=True) for _ in range(FRAMES)]


def _incarnations(peer: HostilePeer, number: int) -> bytes:
    return peer.say(*(msg.Open(i, "again", i) for i in range(number * 64, number * 64 + 64)))


def _opened(peer: HostilePeer, number: int) -> bytes:
    return peer.say(*(msg.Open(i, f"p{peer.link}.{i}", 1) for i in range(number * 64, number * 64 + 64)))


def _dropped(peer: HostilePeer, number: int) -> bytes:
    handles = range(number * 32, number * 32 + 32)
    return peer.say(*(each for i in handles for each in (msg.Open(i, f"q{i % 4_000}", i), msg.Close(i))))


def _attributes(peer: HostilePeer) -> Iterator[list[bytes]]:
    yield [peer.say(msg.Open(1, "wide", 1))]
    body = wire.encode(msg.Body({f"{i:04}abcdefg": i for i in range(1024)}))
    for number in itertools.count(1):
        yield [peer.say(msg.Publish(1, number, 0, 0, Raw(body)))]


def _misplaced(peer: HostilePeer, number: int) -> bytes:
    """Records of other roles, and the two that are for the other kind of broker."""
    cover = msg.Cover(number, [], [])
    return peer.say(
        cover, msg.Leaving(), msg.EdgeReport("", "", cover, []), msg.MediatorEpoch(2**62), msg.Forget("s0", (1, 1)),
        msg.Expire("s0", (1, 1)), msg.Subs(1, number, [], []), msg.Publish(1, number, 0, 0, Raw(b"\x91\x80")),
    )  # fmt: skip


ITEM = msg.SubscriptionItem(1, "")
OPTIONS_ITEM = msg.SubscriptionItem(1, "", {f"{i}": i for i in range(4)})
RECORDS, LISTED, MARKS = 32_768, 16_384, 4_096
"""The limits of brokers, written out: at a broker without them the same is sent."""
STOCK = "[kind,=,'never']"

ATTACKS: tuple[PeerAttack, ...] = (
    PeerAttack("HELLO again and again", "edge", repeated(lambda p, n: p.hello(known=n > 1))),
    PeerAttack("HELLO with a window unacknowledged", "edge", _asks_again, links=8, reads=False),
    PeerAttack("HELLO with new links", "edge", repeated(lambda p, n: p.hello(link=n + 2**20))),
    PeerAttack("HELLO with new links and names", "edge", repeated(lambda p, n: p.hello(link=n + 2**20, name=f"~{n}"))),
    PeerAttack("HELLO of others", "edge", repeated(lambda p, n: p.hello(link=n, name="victims"))),
    PeerAttack("PING", "edge", repeated(lambda p, n: wire.ping_frame(p.link, n))),
    PeerAttack("PING, never read", "edge", repeated(lambda p, n: wire.ping_frame(p.link, n)), links=20, reads=False),
    PeerAttack("frames of unknown links", "edge", repeated(lambda p, n: wire.ack_frame(p.link + n, n, n))),
    PeerAttack("acknowledgements and credit", "edge", repeated(lambda p, n: wire.ack_frame(p.link, n, 2**62 + n))),
    PeerAttack("frames again, and numbers too high", "edge", repeated(lambda p, n: p.data([], seq=1 + n % 2 * 10**6))),
    PeerAttack("frames without records", "edge", repeated(lambda p, n: p.data([]))),
    PeerAttack("lengths that lie", "edge", repeated(_lengths)),
    PeerAttack("a million records in a frame", "edge", raw_records(b"\x90", 1_000_000)),
    PeerAttack("small records that fill frames", "edge", raw_records(b"\x92\x25\x01", 21_000)),
    PeerAttack("a record nested as deep as it is long", "edge", raw_records(b"\x91" * 900_000, 1)),
    PeerAttack("RESUME of one name", "edge", filled(lambda n: resume("again", n, n))),
    PeerAttack("RESUME and ATTACHMENT_CLOSED", "edge", filled(lambda n: resume("again", 1, n))),
    PeerAttack("RESUME of many names", "edge", filled(lambda n: resume(f"x{n}", 1, n, (STOCK,)))),
    PeerAttack("RESUME and DETACH of many names", "edge", repeated(_detached, 64)),
    PeerAttack("RESUME with a long list, far behind", "edge", _behind),
    PeerAttack("RESUME with 190,000 watermarks", "edge", huge(
        lambda size: msg.Resume(1, "x", (1, 1), 1, [], msg.Policy(), None, [("h", 1, 1)] * (size // 5)))),
    PeerAttack("RESUME with 250,000 subscriptions", "edge", huge(
        lambda size: msg.Resume(1, "x", (1, 1), 1, [ITEM] * (size // 4), msg.Policy(), None, []))),
    PeerAttack("SUBS that change nothing", "edge", filled(lambda n: msg.Subs(1, n + 1, [], []), before=(resume("x"),))),
    PeerAttack("SUBS with 190,000 removals", "edge", huge(
        lambda size: msg.Subs(1, 2**40, [], list(range(70_000, 70_000 + size // 5))), before=(resume("x"),))),
    PeerAttack("DETACH of a million", "edge", huge(lambda size: msg.Detach([1] * size, withdraw=False))),
    PeerAttack("ATTACH without a slot", "edge", filled(lambda n: msg.Attach("1.1", [
        msg.AttachItem(n, f"x{n}", (1, 1), 1, [], msg.Policy())]))),
    PeerAttack("GO of 330,000", "edge", huge(lambda size: msg.Go("1.1", [msg.GoItem(1)] * (size // 4)))),
    PeerAttack("AUDIT_REPLY of 160,000", "edge", huge(
        lambda size: msg.AuditReply("1.1", [msg.AuditReplyItem(1, 0, 0, 0, 0)] * (size // 6)))),
    PeerAttack("RESUME with 4,096 watermarks", "edge", huge(
        lambda size: msg.Resume(1, "x", (1, 1), 1, [], msg.Policy(), None, [("h", 1, 1)] * MARKS))),
    PeerAttack("RESUME with 16,384 subscriptions", "edge", huge(
        lambda size: msg.Resume(1, "x", (1, 1), 1, [OPTIONS_ITEM] * LISTED, msg.Policy(), None, []))),
    PeerAttack("SUBS with 16,384 removals", "edge", huge(
        lambda size: msg.Subs(1, 2**40, [], list(range(LISTED))), before=(resume("x"),))),
    PeerAttack("DETACH of 16,384", "edge", huge(lambda size: msg.Detach([1] * LISTED, withdraw=False))),
    PeerAttack("GO of 16,384", "edge", huge(lambda size: msg.Go("1.1", [msg.GoItem(1)] * LISTED))),
    PeerAttack("AUDIT_REPLY of 16,384", "edge", huge(
        lambda size: msg.AuditReply("1.1", [msg.AuditReplyItem(1, 0, 0, 0, 0)] * LISTED))),
    PeerAttack("32,768 records in a frame", "edge", raw_records(b"\x90", RECORDS)),
    PeerAttack("32,768 records in a frame, at a head", "head", raw_records(b"\x90", RECORDS)),
    PeerAttack("JOIN with 4,096 exclusions", "head", huge(lambda size: msg.Join("x", ["e"] * MARKS))),
    PeerAttack("PAUSE and CONTINUE", "edge", filled(
        lambda n: msg.Pause(1) if n % 2 else msg.Continue(1), before=(resume("x"),))),
    PeerAttack("records of other roles, at an edge", "edge", repeated(_misplaced, 64)),
    PeerAttack("HELLO with new links, at a head", "head", repeated(
        lambda p, n: p.hello(link=n + 2**20, name=f"~{n}"))),
    PeerAttack("JOIN", "head", filled(lambda n: msg.Join("x"))),
    PeerAttack("JOIN with 490,000 exclusions", "head", huge(lambda size: msg.Join("x", ["e"] * (size // 2 - 10_000)))),
    PeerAttack("OPEN of many names", "head", repeated(_opened, 16)),
    PeerAttack("OPEN with rising incarnations", "head", repeated(_incarnations, 16)),
    PeerAttack("OPEN and CLOSE", "head", repeated(_dropped, 16)),
    PeerAttack("CLOSE", "head", filled(lambda n: msg.Close(1))),
    PeerAttack("PUBLISH without OPEN", "head", filled(lambda n: msg.Publish(1, 1, 0, 0, Raw(b"\x90")))),
    PeerAttack("1,024 attributes", "head", _attributes),
    PeerAttack("records of other roles, at a head", "head", repeated(_misplaced, 64)),
    PeerAttack("a million records in a frame, at a head", "head", raw_records(b"\x90", 1_000_000)),
)  # fmt: skip
