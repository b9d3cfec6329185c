"""A head that keeps its log on a disk, crashes and recovers, as an abstract model whose reachable states are visited.

A publisher p publishes to head H, which has an edge E and a neighbour N; N relays publications of its own to H. H
writes what it logs to its disk; a crash loses any suffix of what was not synced, which is a torn last record, too.
Channels are FIFO and arbitrarily slow; what is on them is lost with H. A state is a value; a step copies what it
changes. Rules are switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import Result, ViolationError, search, visit

PEERS = ("p", "E", "N")


class Config(NamedTuple):
    """`always`: nothing leaves H before it is synced; else it is sent at once. `without`: rules that are off."""

    always: bool = True
    publications: int = 2
    relays: int = 1
    crashes: int = 1
    without: tuple[str, ...] = ()


class Entry(NamedTuple):
    """An entry of the log. `origin`: head and epoch; `number`: of p (`of` has incarnation and number), or of N."""

    origin: tuple[str, int]
    offset: int
    of: tuple[int, int] = (0, 0)
    number: int = 0
    at: int = 0
    """The position in the log of N, for what N has relayed."""


class EpochRecord(NamedTuple):
    """The beginning of an epoch on the disk. `memory`: the epoch since which H has forgotten nothing."""

    epoch: int
    memory: int


GAP = Entry(("gap", 0), 0)


@dataclass(frozen=True)
class Head:
    """`disk`: all records, of which `synced` are safe. `held`: what is to be sent once that many are safe."""

    is_up: bool = True
    disk: tuple[Entry | EpochRecord, ...] = (EpochRecord(1, 1),)
    synced: int = 1
    offset: int = 0
    last: tuple[int, int] = (0, 0)
    seen: int = 0
    held: tuple[tuple[int, str, Message], ...] = ()
    missing: tuple[str, ...] = ()
    waiting: tuple[Message, ...] = ()
    opening: int = 0

    @property
    def log(self) -> tuple[Entry, ...]:
        return tuple(record for record in self.disk if isinstance(record, Entry))

    @property
    def epochs(self) -> list[EpochRecord]:
        return [record for record in self.disk if isinstance(record, EpochRecord)]

    def end_of(self, epoch: int) -> int | None:
        """The last position that an epoch has had; None if the log does not know of it."""
        end: int | None = None
        position, current = 0, 0
        for record in self.disk:
            if isinstance(record, EpochRecord):
                current = record.epoch
            else:
                position += 1
            if current == epoch:
                end = position
        return end


@dataclass(frozen=True)
class Publisher:
    incarnation: int = 1
    memory: int = 1
    is_open: bool = True
    made: int = 0
    last: int = 0
    sent: tuple[tuple[int, int], ...] = ()
    accepted: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reader:
    """E or N: how far it has had the log of H, and what it has received. `made`, `unacked`: what N relays."""

    epoch: int = 1
    position: int = 0
    received: tuple[Entry, ...] = ()
    made: int = 0
    unacked: tuple[int, ...] = ()
    memory: int = 1


@dataclass(frozen=True)
class LogState(ChannelWorld):
    """The publisher, the head and its readers, and what is on its way."""

    config: Config
    p: Publisher = field(default_factory=Publisher)
    h: Head = field(default_factory=Head)
    e: Reader = field(default_factory=Reader)
    n: Reader = field(default_factory=Reader)
    crashes: int = 0

    def say(self, dst: str, *message: Any, needs_log: bool = True) -> Self:
        """H sends: with `always` once all that it has logged so far is safe."""
        h = self.h
        waits = self.config.always and not (needs_log and self.is_off("sent-behind-its-sync"))
        if waits and not (message[0] == "RELAYED" and self.is_off("relays-acknowledged-behind-their-sync")):
            return replace(self, h=replace(h, held=(*h.held, (len(h.disk), dst, message)))).release()
        return self.send("H", dst, *message)

    def release(self) -> Self:
        w = self
        while w.h.held and w.h.held[0][0] <= w.h.synced:
            (_, dst, message), *rest = w.h.held
            w = replace(w, h=replace(w.h, held=tuple(rest))).send("H", dst, *message)
        return w

    def with_h(self, **changes: Any) -> Self:
        return replace(self, h=replace(self.h, **changes))

    def with_p(self, **changes: Any) -> Self:
        return replace(self, p=replace(self.p, **changes))


class PublisherRules(LogState):
    """The publisher: it goes on where the head has its numbers, or in a new incarnation."""

    def p_on_hello(self, _epoch: int, _memory: int) -> Self:
        return self.send("p", "H", "OPEN", self.p.incarnation)

    def p_on_opened(self, incarnation: int, memory: int, last: int) -> Self:
        p = self.p
        if incarnation != p.incarnation:
            return self
        if memory == p.memory:
            w = self.with_p(is_open=True)
            for seq, number in p.sent:
                if seq > last:
                    w = w.send("p", "H", "PUBLISH", p.incarnation, seq, number)
            return w
        w = self.with_p(
            unknown=(*p.unknown, *(number for _, number in p.sent)), sent=(), last=0, memory=memory,
            incarnation=p.incarnation + 1,
        )  # fmt: skip
        return w.send("p", "H", "OPEN", w.p.incarnation)

    def p_on_accepted(self, incarnation: int, through: int) -> Self:
        p = self.p
        if incarnation != p.incarnation:
            return self
        done = tuple(number for seq, number in p.sent if seq <= through)
        return self.with_p(sent=tuple(each for each in p.sent if each[0] > through), accepted=(*p.accepted, *done))


class HeadRules(LogState):
    """The head: its readers say how far they are before it accepts anything."""

    def h_on_open(self, incarnation: int) -> Self:
        if self.h.missing:
            return self.with_h(opening=incarnation)
        last = self.h.last[1] if self.h.last[0] == incarnation else 0
        now = self.h.epochs[-1]
        memory = now.epoch if self.is_off("a-memory-that-goes-on-is-named") else now.memory
        w = self.say("p", "OPENED", incarnation, memory, last)
        return w.say("p", "ACCEPTED", incarnation, last)

    def h_on_publish(self, incarnation: int, seq: int, number: int) -> Self:
        h = self.h
        last = h.last[1] if h.last[0] == incarnation else 0
        if seq <= last:
            return self.say("p", "ACCEPTED", incarnation, last)
        entry = Entry(("H", h.epochs[-1].epoch), h.offset + 1, (incarnation, seq), number)
        w = self.with_h(offset=h.offset + 1, last=(incarnation, seq))._log(entry, "EN")
        return w.say("p", "ACCEPTED", incarnation, seq)

    def _log(self, entry: Entry, to: str) -> Self:
        w = self.with_h(disk=(*self.h.disk, entry))
        for reader in to:
            if reader not in w.h.missing:
                w = w.say(reader, "PUB", len(w.h.log), entry)
        return w

    def h_on_relay(self, number: int) -> Self:
        h = self.h
        if h.missing:
            return self.with_h(waiting=(*h.waiting, (number,)))
        w = self
        if number > h.seen:
            w = w.with_h(seen=number)._log(Entry(("N", 1), number, number=number), "E")
        return w.say("N", "RELAYED", number)

    def h_on_report(self, name: str, epoch: int, position: int) -> Self:
        h = self.h
        log, end = h.log, h.end_of(epoch)
        if self.is_off("a-position-is-of-its-epoch"):
            end = len(log)
        missing = tuple(each for each in h.missing if each != name)
        w = self.with_h(missing=missing)
        now = h.epochs[-1].epoch
        if end is None or position > end or self.is_off(f"{name}-goes-on-from-its-position"):
            w = w.say(name, "WELCOME", now, None, len(log))
        else:
            w = w.say(name, "WELCOME", now, position, position)
            for at, entry in enumerate(log, 1):
                if at > position and (name == "E" or entry.origin[0] != "N" or self.is_off("nothing-is-sent-back")):
                    w = w.say(name, "PUB", at, entry)
        return w if missing else w._ready()

    def _ready(self) -> Self:
        h = self.h
        w = self.with_h(waiting=(), opening=0)
        for (number,) in h.waiting:
            w = w.h_on_relay(number)
        return w.h_on_open(h.opening) if h.opening else w


class ReaderRules(LogState):
    """The edge and the neighbour."""

    def e_on_hello(self, _epoch: int, _memory: int) -> Self:
        return self.send("E", "H", "REPORT", "E", self.e.epoch, self.e.position)

    def n_on_hello(self, _epoch: int, memory: int) -> Self:
        n = self.n
        w = self.send("N", "H", "REPORT", "N", n.epoch, n.position)
        w = replace(w, n=replace(n, memory=memory))
        for number in n.unacked:  # a head with another memory gets a gap for these, which is not modelled here
            w = w.send("N", "H", "RELAY", number)
        return w

    def n_on_relayed(self, number: int) -> Self:
        return replace(self, n=replace(self.n, unacked=tuple(each for each in self.n.unacked if each > number)))

    def e_on_welcome(self, epoch: int, start: int | None, position: int) -> Self:
        return replace(self, e=_welcomed(self.e, epoch, start, position))

    def n_on_welcome(self, epoch: int, start: int | None, position: int) -> Self:
        return replace(self, n=_welcomed(self.n, epoch, start, position))

    def e_on_pub(self, position: int, entry: Entry) -> Self:
        return replace(self, e=_given(self.e, position, entry))

    def n_on_pub(self, position: int, entry: Entry) -> Self:
        return replace(self, n=_given(self.n, position, entry))


class World(PublisherRules, HeadRules, ReaderRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        h, p, n = self.h, self.p, self.n
        if p.is_open and p.made < self.config.publications:
            found.append(("publish",))
        if n.made < self.config.relays:
            found.append(("relay",))
        if h.is_up and h.synced < len(h.disk):
            found.append(("sync",))
        if not h.is_up:
            found.append(("recover",))
        if h.is_up and self.crashes < self.config.crashes:
            found += [("fault", "crash", kept) for kept in range(h.synced, len(h.disk) + 1)]
        return found

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        return w.heard(dst.lower(), kind, *rest)

    def do_publish(self) -> Self:
        p = self.p
        number, seq = p.made + 1, p.last + 1
        w = self.with_p(made=number, last=seq, sent=(*p.sent, (seq, number)))
        return w.send("p", "H", "PUBLISH", p.incarnation, seq, number) if self.h.is_up else w

    def do_relay(self) -> Self:
        n = replace(self.n, made=self.n.made + 1, unacked=(*self.n.unacked, self.n.made + 1))
        w = replace(self, n=n)
        return w.send("N", "H", "RELAY", n.made) if self.h.is_up else w

    def do_sync(self) -> Self:
        return self.with_h(synced=len(self.h.disk)).release()

    def do_fault(self, _: str, kept: int) -> Self:
        disk = self.h.disk[:kept]
        return replace(
            self, h=Head(is_up=False, disk=disk, synced=kept), p=replace(self.p, is_open=False), channels=(),
            crashes=self.crashes + 1,
        )  # fmt: skip

    def do_recover(self) -> Self:
        disk, always = self.h.disk, self.config.always
        before = self.h.epochs[-1]
        # No two lives may share an epoch, even if the record of one was lost: the real ones come from the clock.
        epoch = 1 + self.crashes
        disk = (*disk, EpochRecord(epoch, before.memory if always else epoch))
        if not always and not self.is_off("an-unsure-log-has-a-gap"):
            disk = (*disk, GAP)
        h = Head(disk=disk, synced=self.h.synced, missing=("E", "N"))
        own = [entry.of for entry in h.log if entry.origin[0] == "H"]
        relayed = [entry.offset for entry in h.log if entry.origin[0] == "N"]
        if own and not self.is_off("numbers-of-publishers-recovered"):
            h = replace(h, last=max(own))
        if relayed and not self.is_off("offsets-of-neighbours-recovered"):
            h = replace(h, seen=max(relayed))
        w = replace(self, h=h)
        for peer in PEERS:
            w = w.say(peer, "HELLO", epoch, h.epochs[-1].memory, needs_log=False)
        return w

    def check(self) -> None:
        logged = [(entry.origin[0], entry.number) for entry in self.h.log if entry != GAP]
        if len(set(logged)) != len(logged):
            raise ViolationError(f"once: H has logged {logged}")
        for name, reader in (("E", self.e), ("N", self.n)):
            given = [entry for entry in reader.received if entry != GAP]
            if name == "N" and any(entry.origin[0] == "N" for entry in given):
                raise ViolationError(f"sent back: N received {given}")
            numbers = [(entry.origin[0], entry.number) for entry in given]
            if len(set(numbers)) != len(numbers):
                raise ViolationError(f"once: {name} received {given}")
            for origin in {number[0] for number in numbers}:
                order = [number for number in numbers if number[0] == origin]
                if order != sorted(order):
                    raise ViolationError(f"in order: {name} received {given}")
            if self.config.always and GAP in reader.received:
                raise ViolationError(f"no gap: {name} received {reader.received}")

    def check_end(self) -> None:
        p = self.p
        if not p.is_open or p.sent or self.h.missing:
            raise ViolationError(f"ends: {p}, {self.h}")
        if self.config.always and p.unknown:
            raise ViolationError(f"answered: {p.unknown} are unknown")
        for name, reader in (("E", self.e), ("N", self.n)):
            due = {("H", number) for number in p.accepted}
            if name == "E":
                due |= {("N", number) for number in range(1, self.n.made + 1)}
            lost = due - {(entry.origin[0], entry.number) for entry in reader.received}
            if lost and GAP not in reader.received:
                raise ViolationError(f"complete: {name} lost {sorted(lost)}, received {reader.received}")

    def outcomes(self) -> list[str]:
        return ["recovered"] * (self.crashes > 0) + ["with a gap"] * (GAP in self.e.received)


def _welcomed(reader: Reader, epoch: int, start: int | None, position: int) -> Reader:
    if start is None:
        return replace(reader, epoch=epoch, position=position, received=(*reader.received, GAP))
    return replace(reader, epoch=epoch, position=start)


def _given(reader: Reader, position: int, entry: Entry) -> Reader:
    """What comes below the watermark of its origin was had before."""
    is_known = entry != GAP and any(
        had.origin == entry.origin and had.offset >= entry.offset for had in reader.received
    )
    received = reader.received if is_known else (*reader.received, entry)
    return replace(reader, position=position, received=received)


def explore(config: Config) -> Result:
    """Visit every reachable state once. `outcomes`: behind a crash, and with a gap, over all ends."""
    return search(World(config), visit)
