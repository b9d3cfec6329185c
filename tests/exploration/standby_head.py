"""A head with a standby, as an abstract model whose reachable states are visited.

Two processes, 0 and 1. One leads in a term that the store has given out, logs what publisher p sends, and sends its log
to the other. Edge E and p attach to a process that leads. Nothing tells a process that the other has been promoted, and
the mediator may be wrong about who has died: it promotes a standby, or gives one up, at any moment at which its store
allows that. Channels are FIFO and arbitrarily slow; a process that crashes loses its log, and what is on its channels.
A state is a value; a step copies what it changes. Rules are switched off by name (`without`), to show that the search
finds the violation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import Result, ViolationError, search, visit

GAP = -1


class Config(NamedTuple):
    """`crashes`, `mistakes`: how many; a mistake promotes a standby, or gives one up, of processes that live."""

    publications: int = 2
    crashes: int = 1
    mistakes: int = 1
    cuts: int = 0
    """How often the link between the two processes breaks while both live."""
    repeats: int = 0
    """How often p opens again where it is, and a command to go on alone comes again."""
    waits: bool = False
    """Whether a process that starts waits to be told what it is, as where containers start again by themselves."""
    late: int = 0
    """How often a mediator repeats what was true before: that a process leads, follows, or is promoted."""
    switches: int = 0
    """How often `standby` is set or removed: `standby_switch`."""
    without: tuple[str, ...] = ()


class Leadership(NamedTuple):
    """As stored: `HeadLeadership`."""

    term: int = 1
    leader: int = 0
    standby: int = 0
    sync: int = 0
    ended: int = 0
    leads: int = 1


@dataclass(frozen=True)
class Process:
    """`life`: 0 is down. `role`: lead or follow. `stored`: what the standby has said that it has.

    `held`: what is to be sent once the standby has that many entries. `in_sync`: of a leader, the life of the standby
    that it waits for; of a follower, whether it is in sync.
    """

    life: int = 0
    role: str = ""
    term: int = 0
    log: tuple[int, ...] = ()
    in_sync: int = 0
    syncs: int = 0
    stored: int = 0
    follower: int = 0
    sent: int = 0
    has_edge: bool = False
    held: tuple[tuple[int, str, Message], ...] = ()


@dataclass(frozen=True)
class Publisher:
    at: tuple[int, int] = (0, 1)
    term: int = 1
    is_open: bool = True
    made: int = 0
    unanswered: tuple[int, ...] = ()
    accepted: int = 0


@dataclass(frozen=True)
class Edge:
    at: tuple[int, int] = (0, 1)
    term: int = 1
    position: int = 0
    received: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairState(ChannelWorld):
    """The two processes, the store, the publisher and the edge, and what is on its way."""

    config: Config
    store: Leadership = field(default_factory=Leadership)
    both: tuple[Process, Process] = (
        Process(1, "lead", 1, has_edge=True),
        Process(2, "follow", 0),
    )
    p: Publisher = field(default_factory=Publisher)
    e: Edge = field(default_factory=Edge)
    lives: int = 2
    crashes: int = 0
    mistakes: int = 0
    cuts: int = 0
    repeats: int = 0
    late: int = 0
    may_lose: bool = False
    """One that was alone has died: what only it had is lost."""

    def put(self, number: int, **changes: Any) -> Self:
        both = list(self.both)
        both[number] = replace(both[number], **changes)
        return replace(self, both=(both[0], both[1]))

    def without_channels(self, name: str, others: str = "01pEm") -> Self:
        return self.losing(lambda pair: name in pair and (pair[0] if pair[1] == name else pair[1]) in others)

    def _told(self, busy: set[tuple[str, str]]) -> list[Message]:
        """What a mediator tells processes that wait, or lead without right; it may know only what was true before."""
        found: list[Message] = []
        leader, to = self.store.leader, 1 - self.store.leader
        other = self.both[to]
        if other.role == "wait" and self._leads() and ("m", str(to)) not in busy:
            found.append(("tell", to, "BEFOLLOW", other.life))
        if other.role == "lead" and other.term < self.store.term and ("m", str(to)) not in busy:
            found.append(("tell", to, "REPLACED", self.store.term))
        if self.late < self.config.late and self.both[leader].life:
            found.append(("fault", "late", leader, "LEAD", self.store.term, self.store.leads))
            found.append(("fault", "late", leader, "PROMOTE", self.store.term))
        return found

    def _leads(self) -> bool:
        """Whether the process that the store names leads, or is about to."""
        one = self.both[self.store.leader]
        is_meant = one.life == self.store.leads or not self.config.waits
        is_told = ("m", str(self.store.leader)) in dict(self.channels)
        return bool(one.life) and (one.term == self.store.term or (is_meant and is_told))

    def _is_linked(self, number: int) -> bool:
        return self.both[1 - number].follower == self.both[number].life

    def _has_standby(self) -> bool:
        """Whether the standby that the store names lives."""
        return 0 < self.store.standby == self.both[1 - self.store.leader].life

    def say(self, number: int, dst: str, *message: Any) -> Self:
        """Send what depends on all that has been logged so far, once the standby has that."""
        one = self.both[number]
        if message[0] == "OPENED" and self.is_off("what-is-told-at-an-opening-is-held"):
            return self.send(str(number), dst, *message)
        return self.put(number, held=(*one.held, (len(one.log), dst, message))).release(number)

    def release(self, number: int) -> Self:
        w = self
        while (one := w.both[number]).held:
            (size, dst, message), *rest = one.held
            is_free = not one.in_sync or one.stored >= size or w.is_off("held-for-the-standby")
            if not is_free:
                return w
            w = w.put(number, held=tuple(rest))
            at = w.p.at if dst == "p" else w.e.at
            if at == (number, one.life):  # else it has gone elsewhere
                w = w.send(str(number), dst, *message)
        return w

    def do_crash(self, number: int) -> Self:
        w = self.without_channels(str(number)).put(
            number,
            life=0,
            role="",
            term=0,
            log=(),
            in_sync=0,
            syncs=0,
            stored=0,
            sent=0,
            follower=0,
            held=(),
            has_edge=False,
        )
        w = w.put(1 - number, follower=0, sent=0)
        return replace(w, crashes=w.crashes + 1, may_lose=not w._leads() and not w._has_standby())

    def do_restart(self, number: int) -> Self:
        """It follows, or waits to be told so; the head only if no standby is in sync and the head has died."""
        store, lives = self.store, self.lives + 1
        w = replace(self, lives=lives).put(number, life=lives, role="wait" if self.config.waits else "follow")
        return w.do_begin() if store.leader == number and self.is_off("no-head-begins-beside-a-standby-in-sync") else w

    def do_begin(self) -> Self:
        """Make a process the head that has nothing: both that had something have died, or were given up."""
        store = Leadership(self.store.term + 1, self.store.leader)
        w = replace(self, store=store, may_lose=self.may_lose or not self.store.standby)
        return w.put(store.leader, role="lead", term=store.term, log=())


class HeadRules(PairState):
    """A process that leads: nothing leaves it before its standby has it."""

    def h_on_follow(self, number: int, src: str, life: int, term: int, size: int) -> Self:
        one = self.both[number]
        if one.role != "lead" or self.both[int(src)].role != "follow":
            return self
        w = self
        start = size
        if term != one.term or size > len(one.log):
            w, start = w.send(str(number), src, "BEGINS", one.term), 0
        w = w.put(number, follower=life, stored=start)
        for entry in one.log[start:]:
            w = w.send(str(number), src, "PART", entry)
        if not one.in_sync:
            w = w.put(number, in_sync=life, syncs=one.syncs + 1)
            w = w.send(str(number), src, "INSYNC", one.term, one.syncs + 1)
        return w.release(number)

    def h_on_stored(self, number: int, _src: str, size: int) -> Self:
        one = self.both[number]
        if one.role != "lead" or one.follower != one.in_sync:
            return self
        return self.put(number, stored=max(one.stored, size)).release(number)

    def h_on_alone(self, number: int, _src: str, term: int, sync: int) -> Self:
        one = self.both[number]
        is_this = sync == one.syncs or self.is_off("times-in-sync-are-numbered")
        if one.role != "lead" or term != one.term or not one.in_sync or not is_this:
            return self
        return self.without_channels("0", "1").put(number, in_sync=0, follower=0).release(number)

    def h_on_publish(self, number: int, _src: str, seq: int) -> Self:
        one = self.both[number]
        if one.role != "lead":
            return self
        if seq in one.log and not self.is_off("numbers-are-known-from-the-log"):
            return self.say(number, "p", "ACCEPTED", seq)
        w = self.put(number, log=(*one.log, seq))
        if one.follower and one.follower == self.both[1 - number].life:
            w = w.send(str(number), str(1 - number), "PART", seq)
        w = w.say(number, "p", "ACCEPTED", seq)
        return w.say(number, "E", "PUB", len(one.log) + 1, seq) if one.has_edge else w

    def h_on_open(self, number: int, _src: str) -> Self:
        log = () if self.is_off("numbers-are-known-from-the-log") else self.both[number].log
        return self.say(number, "p", "OPENED", max(log, default=0))

    def h_on_report(self, number: int, _src: str, position: int) -> Self:
        one = self.both[number]
        if one.role != "lead":
            return self
        if position > len(one.log) or self.is_off("an-edge-goes-on-from-its-position"):
            return self.say(number, "E", "GAP", len(one.log))
        w = self.put(number, has_edge=True)
        for at, entry in enumerate(one.log[position:], position + 1):
            w = w.say(number, "E", "PUB", at, entry)
        return w


class StandbyRules(PairState):
    """A process that follows, or is told what it is now."""

    def h_on_lead(self, number: int, _src: str, term: int, life: int) -> Self:
        one = self.both[number]
        is_meant = life == one.life or self.is_off("a-term-is-given-to-one-incarnation")
        return self.put(number, role="lead", term=term) if one.role == "wait" and is_meant else self

    def h_on_befollow(self, number: int, _src: str, life: int) -> Self:
        one = self.both[number]
        return self.put(number, role="follow") if one.role == "wait" and life == one.life else self

    def h_on_replaced(self, number: int, _src: str, term: int) -> Self:
        """One that leads without right ends at once, and starts again; what only it had was told to no other."""
        one = self.both[number]
        if one.role != "lead" or one.term >= term:
            return self
        w = self.do_crash(number)
        return replace(w.do_restart(number), crashes=self.crashes)

    def h_on_begins(self, number: int, _src: str, term: int) -> Self:
        one = self.both[number]
        if one.role != "follow":
            return self
        return self.put(number, term=term, log=(), in_sync=0, syncs=0)

    def h_on_part(self, number: int, src: str, entry: int) -> Self:
        one = self.both[number]
        if one.role != "follow":
            if self.is_off("one-that-leads-gives-no-word"):
                return self.send(str(number), src, "STORED", one.sent + 1).put(number, sent=one.sent + 1)
            return self
        w = self.put(number, log=(*one.log, entry), sent=len(one.log) + 1)
        return w.send(str(number), src, "STORED", len(one.log) + 1)

    def h_on_insync(self, number: int, _src: str, term: int, sync: int) -> Self:
        one = self.both[number]
        return self.put(number, in_sync=1, syncs=sync) if one.role == "follow" and term == one.term else self

    def h_on_promote(self, number: int, _src: str, term: int) -> Self:
        one = self.both[number]
        is_ready = one.in_sync or self.is_off("only-one-in-sync-is-promoted")
        if one.role != "follow" or not is_ready:
            return self
        return self.put(number, role="lead", term=term, in_sync=0, syncs=0, stored=0, held=())


class ClientRules(PairState):
    """The publisher and the edge."""

    def p_on_opened(self, _src: str, last: int) -> Self:
        p = self.p
        rest = tuple(seq for seq in p.unanswered if seq > last)
        accepted = max(p.accepted, min(last, p.made))
        w = replace(self, p=replace(p, is_open=True, unanswered=rest, accepted=accepted))
        for seq in rest:
            w = w.send("p", str(p.at[0]), "PUBLISH", seq)
        return w

    def p_on_accepted(self, _src: str, seq: int) -> Self:
        p = self.p
        rest = tuple(each for each in p.unanswered if each > seq)
        return replace(self, p=replace(p, unanswered=rest, accepted=max(p.accepted, seq)))

    def e_on_pub(self, _src: str, position: int, entry: int) -> Self:
        e = self.e
        if position <= e.position:
            return self
        return replace(self, e=replace(e, position=position, received=(*e.received, entry)))

    def e_on_gap(self, _src: str, position: int) -> Self:
        return replace(self, e=replace(self.e, position=position, received=(*self.e.received, GAP)))


class Faults(HeadRules, StandbyRules, ClientRules):
    """What may fail, come late or twice, and a mediator that is wrong."""

    def do_fault(self, kind: str, *rest: Any) -> Self:
        result: Self = getattr(self, f"do_{kind}")(*rest)
        return result

    def do_tell(self, number: int, *message: Any) -> Self:
        return self.send("m", str(number), *message)

    def do_late(self, number: int, *message: Any) -> Self:
        return replace(self, late=self.late + 1).send("m", str(number), *message)

    def do_repeat(self) -> Self:
        store = self.store
        return replace(self, repeats=self.repeats + 1).send("m", str(store.leader), "ALONE", store.term, store.ended)

    def do_both_died(self) -> Self:
        return replace(self, store=self.store._replace(standby=0, sync=0), may_lose=True)

    def do_cut(self) -> Self:
        w = replace(self.without_channels("0", "1"), cuts=self.cuts + 1)
        for number in (0, 1):
            w = w.put(number, follower=0, sent=0)
            if w.is_off("alone-only-by-the-store"):
                w = w.put(number, in_sync=0 if w.both[number].role == "lead" else w.both[number].in_sync)
                w = w.release(number)
        return w

    def do_report(self, number: int) -> Self:
        one = self.both[number]
        standby = one.life if one.role == "follow" else one.in_sync
        return self.send(str(number), "m", "STATUS", one.term, one.syncs, standby)

    def m_on_status(self, _src: str, term: int, sync: int, standby: int) -> Self:
        store = self.store
        ended = 0 if self.is_off("what-is-over-is-not-noted-again") else store.ended
        if term != store.term or not standby or sync <= max(ended, store.sync):
            return self
        return replace(self, store=store._replace(standby=standby, sync=sync))

    def do_promote(self, is_mistake: bool = False) -> Self:
        store = self.store
        to = 1 - store.leader
        store = Leadership(store.term + 1, to, leads=store.standby)
        w = replace(self, store=store, mistakes=self.mistakes + is_mistake)
        return w.send("m", str(to), "PROMOTE", store.term) if w.both[to].life else w

    def do_give_up(self, is_mistake: bool = False) -> Self:
        store = self.store
        leader = self.both[store.leader]
        said = leader.syncs if leader.role == "lead" and leader.term == store.term else 0
        sync = max(store.sync, store.ended, said)
        if self.is_off("given-up-in-the-store-first"):
            w = self
        else:
            w = replace(self, store=store._replace(standby=0, sync=0, ended=sync))
        w = replace(w, mistakes=w.mistakes + is_mistake)
        return w.send("m", str(store.leader), "ALONE", store.term, sync) if w.both[store.leader].life else w


class World(Faults):
    """The steps, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        if self.may_lose:
            return []  # as without a standby from here on: epochs, gaps and unknown publications
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        busy = {pair for pair, _ in self.channels}
        config, p, e, store = self.config, self.p, self.e, self.store
        leader_died = not self._leads()
        for number, one in enumerate(self.both):
            other = self.both[1 - number]
            asks = (str(number), str(1 - number)) in busy
            if one.life and one.role == "follow" and other.role == "lead" and not asks and not self._is_linked(number):
                found.append(("follow", number))
            says = "lead" if self.is_off("the-standby-itself-says-that-it-is-in-sync") else "follow"
            if one.role == says and one.syncs and (str(number), "m") not in busy and self._has_news(number):
                found.append(("report", number))
            if one.role == "lead" and (p.at != (number, one.life)) and one.term > p.term:
                found.append(("open", number))
            if one.role == "lead" and e.at != (number, one.life) and self._may_attach(one.term):
                found.append(("attach", number))
            if one.life and self.crashes < config.crashes:
                found.append(("fault", "crash", number))
            if not one.life:
                found.append(("restart", number))
        if leader_died and store.standby and store.standby != self.both[1 - store.leader].life:
            found.append(("both_died",))
        if leader_died and not store.standby and self.both[store.leader].life:
            found.append(("begin",))
        if p.is_open and p.made < config.publications and self.both[p.at[0]].life == p.at[1]:
            found.append(("publish",))
        standby = self.both[1 - store.leader].life
        is_ready = 0 < standby == store.standby or (standby and self.is_off("only-one-in-sync-is-promoted"))
        if is_ready and (leader_died or self.mistakes < config.mistakes):
            found.append(("promote",) if leader_died else ("fault", "promote", True))
        leader = self.both[store.leader]
        waits_for = leader.in_sync if leader.role == "lead" and leader.syncs > store.ended else 0
        waits_for = waits_for or store.standby
        is_mistake = self.both[1 - store.leader].life == waits_for
        may_give_up = self._leads() or self.is_off("one-is-given-up-only-for-a-head-that-lives")
        if waits_for and may_give_up and (not is_mistake or self.mistakes < config.mistakes):
            found.append(("fault", "give_up", True) if is_mistake else ("give_up",))
        if self.repeats < config.repeats:
            if p.is_open and self.both[p.at[0]].life == p.at[1]:
                found.append(("fault", "open_again"))
            if store.ended and self.both[store.leader].life and ("m", str(store.leader)) not in busy:
                found.append(("fault", "repeat"))
        if config.waits:
            found += self._told(busy)
        if self.cuts < config.cuts and all(one.life for one in self.both):
            found.append(("fault", "cut"))
        return found

    def _may_attach(self, term: int) -> bool:
        return term > self.e.term or self.is_off("the-higher-term-is-followed")

    def _has_news(self, number: int) -> bool:
        """A status is of use if it says something that the store does not have; an old one may be on its way."""
        one, store = self.both[number], self.store
        return one.term == store.term and bool(one.in_sync) and one.syncs > max(store.sync, store.ended)

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        return w.heard("h", kind, int(dst), src, *rest) if dst in "01" else w.heard(dst.lower(), kind, src, *rest)

    def do_follow(self, number: int) -> Self:
        one = self.both[number]
        return self.send(str(number), str(1 - number), "FOLLOW", one.life, one.term, len(one.log))

    def do_publish(self) -> Self:
        p = self.p
        w = replace(self, p=replace(p, made=p.made + 1, unanswered=(*p.unanswered, p.made + 1)))
        return w.send("p", str(p.at[0]), "PUBLISH", p.made + 1)

    def do_open(self, number: int) -> Self:
        one, p = self.both[number], self.p
        w = self.without_channels("p")
        w = replace(w, p=replace(p, at=(number, one.life), term=one.term, is_open=False))
        return w.send("p", str(number), "OPEN")

    def do_open_again(self) -> Self:
        """The connection of p to its head has broken."""
        p = self.p
        w = replace(self.without_channels("p"), p=replace(p, is_open=False), repeats=self.repeats + 1)
        return w.send("p", str(p.at[0]), "OPEN")

    def do_attach(self, number: int) -> Self:
        one, e = self.both[number], self.e
        w = replace(self.without_channels("E"), e=replace(e, at=(number, one.life), term=one.term))
        return w.send("E", str(number), "REPORT", e.position)

    def check(self) -> None:
        if self.may_lose:
            return
        given = [entry for entry in self.e.received if entry != GAP]
        if len(set(given)) != len(given):
            raise ViolationError(f"once: E received {self.e.received}")
        if given != sorted(given):
            raise ViolationError(f"in order: E received {self.e.received}")
        if GAP in self.e.received:
            raise ViolationError(f"no gap: E received {self.e.received}")
        # What has been told to others is in the log of the process that the store names, or of its standby.
        told = {*given, *range(1, self.p.accepted + 1)}
        store = self.store
        safe = [self.both[store.leader].log] if self.both[store.leader].life else []
        if store.standby and self.both[1 - store.leader].life == store.standby:
            safe.append((*self.both[1 - store.leader].log, *self._under_way(store.leader)))
        if safe and not any(told <= set(log) for log in safe):
            raise ViolationError(f"kept: {sorted(told)} is told, {self.both} has it not")

    def _under_way(self, leader: int) -> list[int]:
        messages = dict(self.channels).get((str(leader), str(1 - leader)), ())
        return [message[1] for message in messages if message[0] == "PART"]

    def outcomes(self) -> Iterable[str]:
        if self.may_lose:
            yield "lost"
        elif self.store.term > 1:
            yield "promoted"
        if all(one.role == "lead" for one in self.both):
            yield "two lead"

    def check_end(self) -> None:
        if self.may_lose:
            return
        if not self._leads() or self.both[self.store.leader].role != "lead":
            raise ViolationError(f"ends: nobody leads in term {self.store.term}: {self.both}")
        if self.p.unanswered or not self.p.is_open or self.p.made < self.config.publications:
            raise ViolationError(f"ends: {self.p}, {self.both}")
        lost = set(range(1, self.p.accepted + 1)) - set(self.e.received)
        if lost:
            raise ViolationError(f"complete: E lost {sorted(lost)}, received {self.e.received}")


def explore(config: Config) -> Result:
    """Visit every reachable state once, breadth first."""
    return search(World(config), visit)
