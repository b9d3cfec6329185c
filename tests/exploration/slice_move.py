"""A slice of a consumer group that moves from consumer A to consumer B: a model of which every state is visited.

The head H logs items, keeps who has the slice (its assignment, with an epoch), and sends its stream to the edges; an
edge serves the consumers that have attached the slice there. Channels are FIFO and arbitrarily slow. A state is a
value; a step copies what it changes. Rules are switched off by name (`without`), to show that the search finds the
violation.

Deliver: H tells A to let go (REVOKE). A finishes what its application has in hand and answers with the place of its
last acknowledgement (RELEASED). Only then has B the slice (ASSIGN), and resumes it from there: what A had queued comes
again from H's log. Cache, as the thesis has it: A stops and caches (CACHE, CACHING with the place of what it has), B
attaches as well, from that place, and caches (ADD, ADDED), A leaves and sends its cache (REMOVE, SENT), B merges
(MERGE). Whatever is in the way of a session (the taker goes, a bound, a time-out), it goes on by Deliver: A is told to
let go (REVOKE), B forgets its cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.exploration.channel_world import ChannelWorld
from tests.exploration.search import Result, ViolationError, search, visit

CONSUMERS = ("A", "B")


class Config(NamedTuple):
    """`edges`: of A and of B. `faults`: one of them happens, at any time. `without`: rules that are switched off."""

    items: int = 2
    mode: str = "Deliver"
    edges: tuple[str, str] = ("E1", "E2")
    faults: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Given(NamedTuple):
    """An item that an application was given, under an epoch of the assignment."""

    item: int
    consumer: str
    epoch: int
    is_marked: bool


@dataclass(frozen=True)
class Head:
    """`holder`, `epoch`: the assignment. `phase`: owned, revoking, caching, adding, removing; unknown after a restart.

    `token`: the last acknowledgement that is known.
    `waits`: consumers that a restarted head has not heard of. `members`: those that may have the slice.
    """

    log: tuple[int, ...] = ()
    members: tuple[str, ...] = CONSUMERS
    holder: str = "A"
    epoch: int = 1
    phase: str = "owned"
    token: int = 0
    waits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Consumer:
    """`epoch`: under which it has the slice; 0 if it has not. `received`: the last item that came. `hand`: what its
    application has been given and has not finished. `marked_to`: items up to this may have been given before.

    `state`: gives, stopping, halting (caches once nothing is in hand), caching, adding.
    """

    is_alive: bool = True
    is_cut_off: bool = False
    has_lease: bool = True
    epoch: int = 0
    attached: int = 0
    state: str = "gives"
    queue: tuple[int, ...] = ()
    received: int = 0
    acked: int = 0
    hand: int = 0
    marked_to: int = 0


@dataclass(frozen=True)
class World(ChannelWorld):
    config: Config
    h: Head = field(default_factory=Head)
    consumers: tuple[Consumer, Consumer] = (Consumer(epoch=1, attached=1), Consumer())
    edges: tuple[tuple[tuple[str, str], int], ...] = ((("E1", "A"), 1),)
    """The attachment (its number) of each consumer that an edge serves."""
    history: tuple[Given, ...] = ()
    done: tuple[int, ...] = ()
    is_commanded: bool = False
    outcome: str = ""
    fault: str = ""
    log_before: int = 0
    """The last item that was logged by an earlier life of the head."""

    # -- parts of steps

    def consumer(self, name: str) -> Consumer:
        return self.consumers[CONSUMERS.index(name)]

    def edge_of(self, name: str) -> str:
        return self.config.edges[CONSUMERS.index(name)]

    def with_c(self, name: str, **changes: Any) -> World:
        changed = [replace(c, **changes) if n == name else c for n, c in zip(CONSUMERS, self.consumers, strict=True)]
        return replace(self, consumers=(changed[0], changed[1]))

    def with_h(self, **changes: Any) -> World:
        return replace(self, h=replace(self.h, **changes))

    def drop_with(self, node: str) -> World:
        """What is on its way to this node, and from it, is lost."""
        return self.losing(lambda pair: node in pair)

    def serve(self, edge: str, name: str, number: int) -> World:
        served = dict(self.edges)
        if number:
            served[edge, name] = number
        else:
            served.pop((edge, name), None)
        return replace(self, edges=tuple(sorted(served.items())))

    def resume(self, name: str, token: int) -> World:
        """The consumer attaches the slice at its edge, from behind `token`; a new attachment each time."""
        number = self.consumer(name).attached + 1
        w = self.with_c(name, attached=number, received=token, queue=())
        return w.send(name, self.edge_of(name), "RESUME", w.consumer(name).epoch, number, token)

    def let_go(self, name: str) -> World:
        """The consumer has the slice no more: what it had queued is dropped here."""
        at = self.consumer(name)
        w = self.with_c(name, epoch=0, state="gives", queue=())
        return w.send(name, self.edge_of(name), "DETACH", at.attached)

    def assign(self, to: str, *, is_certain: bool) -> World:
        """Give the slice to a consumer, in a new epoch, from the last acknowledgement.

        Not `is_certain`: what was given behind it is not known, so all that is logged may have been given before.
        """
        logged = self.h.log[-1] if self.h.log else 0
        marked = 0 if is_certain or self.is_off("given-before-is-marked") else max(logged, self.h.token)
        # By 2: above the epoch under which a taker may have begun to cache.
        w = self.forget() if to != "B" else self
        w = w.with_h(holder=to, epoch=self.h.epoch + 2, phase="owned")
        return w.send("H", to, "ASSIGN", w.h.epoch, w.h.token, marked)

    def forget(self) -> World:
        """A taker that may be caching is told that its session is over."""
        return self.send("H", "B", "FORGET", self.h.epoch + 1) if self.h.phase in ("adding", "removing") else self

    def fall_back(self, why: str) -> World:
        """The session cannot go on: the giver lets go, as by Deliver, and the taker forgets what it has cached."""
        w = replace(self.forget().with_h(phase="revoking"), outcome=self.outcome or why)
        return w.send("H", "A", "REVOKE", w.h.epoch)

    # -- steps

    def steps(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for pair, _ in self.channels:
            if not any(self.consumer(name).is_cut_off for name in pair if name in CONSUMERS):
                found.append(("deliver", *pair))
        if self.published < self.config.items:
            found.append(("publish",))
        if not self.is_commanded and self.h.phase == "owned":
            found.append(("command",))
        for name in CONSUMERS:
            found += self._own_steps(name)
        if not self.fault:
            found += [("fault", fault) for fault in self.config.faults]
        return found

    @property
    def published(self) -> int:
        return self.h.log[-1] if self.h.log else self.log_before

    def _own_steps(self, name: str) -> list[tuple[Any, ...]]:
        at, found = self.consumer(name), list[tuple[Any, ...]]()
        if at.is_alive and at.hand:
            found.append(("finish", name))
        elif at.is_alive and at.epoch and at.queue and at.state == "gives" and at.has_lease:
            found.append(("give", name))
        if at.is_alive and at.is_cut_off and at.has_lease and not self.is_off("a-silent-consumer-stops"):
            found.append(("lease_out", name))
        is_silent = at.is_cut_off and (not at.has_lease or self.is_off("a-silent-consumer-stops"))
        if (not at.is_alive or is_silent) and name in self.h.members + self.h.waits:
            found.append(("evict", name))
        if at.is_cut_off and name not in self.h.members:
            found.append(("heal", name))
        return found

    def do_deliver(self, src: str, dst: str) -> World:
        (kind, *rest), w = self.taken(src, dst)
        if dst in CONSUMERS and not w.consumer(dst).is_alive:
            return w
        role = "consumer" if dst in CONSUMERS else "head" if dst == "H" else "edge"
        return w.heard(role, kind, dst, src, *rest)

    def do_publish(self) -> World:
        item = self.published + 1
        w = self.with_h(log=(*self.h.log, item))
        for edge in sorted(set(self.config.edges)):
            w = w.send("H", edge, "PUB", item)
        return w

    def do_command(self) -> World:
        """A plan gives the slice of A to B."""
        w, h = replace(self, is_commanded=True), self.h
        if h.holder != "A" or "B" not in h.members:
            return replace(w, outcome="refused")
        if self.config.mode == "Cache":
            return w.with_h(phase="caching").send("H", "A", "CACHE", h.epoch)
        w = w.with_h(phase="revoking").send("H", "A", "REVOKE", h.epoch)
        return w.assign("B", is_certain=True) if self.is_off("assigned-when-released") else w

    def do_give(self, name: str) -> World:
        at = self.consumer(name)
        item, *rest = at.queue
        given = Given(item, name, at.epoch, item <= at.marked_to)
        w = self.with_c(name, queue=tuple(rest), hand=item)
        return replace(w, history=(*w.history, given))

    def do_finish(self, name: str) -> World:
        """The application has finished an item: it is acknowledged, though perhaps too late for the head."""
        at = self.consumer(name)
        w = replace(self, done=tuple(sorted({*self.done, at.hand})))
        if not at.epoch:
            return w.with_c(name, hand=0)
        w = w.with_c(name, hand=0, acked=at.hand).send(name, "H", "ACK", at.epoch, at.hand)
        return w._stopped(name)

    def _stopped(self, name: str) -> World:
        """Nothing is in hand: a consumer that was told to stop says so."""
        at = self.consumer(name)
        if at.state == "stopping":
            token = at.received if self.is_off("from-the-last-acknowledgement") else at.acked
            return self.let_go(name).send(name, "H", "RELEASED", at.epoch, token)
        if at.state == "halting":
            return self.with_c(name, state="caching").send(name, "H", "CACHING", at.epoch, at.received)
        return self

    # -- faults

    def do_fault(self, fault: str) -> World:
        w, (kind, node) = replace(self, fault=fault), fault.split()
        after: World = getattr(w, "fault_" + kind)(node)
        return after

    def fault_crash(self, node: str) -> World:
        if node in CONSUMERS:
            w = self.with_c(node, is_alive=False, epoch=0, hand=0, queue=(), state="gives").drop_with(node)
            return w.serve(self.edge_of(node), node, 0)
        if node == "H":
            return self._head_restarts()
        w = self.drop_with(node)
        for name in CONSUMERS:
            if w.edge_of(name) == node:
                at = w.consumer(name)
                w = w.serve(node, name, 0)
                if at.epoch:
                    w = w.resume_again(name)  # from what has come, so a cache goes on without a break
        return w

    def resume_again(self, name: str) -> World:
        """As after any lost attachment: from what has come, and the queue stays."""
        at = self.consumer(name)
        return self.resume(name, at.received).with_c(name, queue=at.queue)

    def _head_restarts(self) -> World:
        """Its log and its table are gone. It knows epochs above all earlier ones, and asks who has the slice."""
        w = replace(self.drop_with("H"), log_before=self.published)
        w = w.with_h(log=(), holder="", epoch=self.h.epoch + 10, phase="unknown", members=(), waits=CONSUMERS)
        w = replace(w, is_commanded=True, outcome=w.outcome or "restarted")
        for name in CONSUMERS:
            at = w.consumer(name)
            if at.is_alive:
                if at.epoch and at.state != "gives":
                    w = w.with_c(name, state="gives")  # what was asked of it is void
                    if at.state == "adding":
                        w = w.let_go(name)
                w = w.send(name, "H", "HOLDS", w.consumer(name).epoch, at.acked)
                if w.consumer(name).epoch:
                    w = w.resume_again(name)
        if self.is_off("a-restarted-head-waits"):
            return w.with_h(waits=()).decide()
        return w

    def fault_slow(self, _node: str) -> World:
        """The session takes too long for the head."""
        return self.fall_back("slow") if self.h.phase in ("caching", "adding", "removing") else self

    def fault_full(self, node: str) -> World:
        """The cache of a consumer is at its bound."""
        at = self.consumer(node)
        if at.state == "caching":
            return self.let_go(node).send(node, "H", "RELEASED", at.epoch, at.acked)
        if at.state == "adding":
            return self.let_go(node).send(node, "H", "LOST", at.epoch)
        return self

    def fault_cut(self, node: str) -> World:
        return self.with_c(node, is_cut_off=True)

    def do_lease_out(self, name: str) -> World:
        """The consumer has had no answer for its lease: it stops by itself."""
        return self.with_c(name, has_lease=False)

    def do_evict(self, name: str) -> World:
        """The head has heard nothing of a consumer for longer than its lease."""
        h = self.h
        rest = tuple(each for each in h.members if each != name)
        w = self.with_h(members=rest, waits=tuple(each for each in h.waits if each != name))
        if h.phase == "unknown":
            return w.decide()
        if h.holder != name and h.phase in ("caching", "adding", "removing"):
            return w.fall_back("evicted")
        if h.holder == name:
            other = next((each for each in CONSUMERS if each in rest), "")
            w = replace(w, outcome=w.outcome or "evicted")
            return w.assign(other, is_certain=False) if other else w.with_h(holder="", phase="owned")
        return replace(w, outcome=w.outcome or "evicted")

    def do_heal(self, name: str) -> World:
        """It reaches the head again, which no longer knows it; its slice has gone on elsewhere."""
        w = self.drop_with(name).with_c(name, is_cut_off=False, epoch=0, queue=(), state="gives", has_lease=True)
        return w.serve(self.edge_of(name), name, 0).with_h(members=(*w.h.members, name))

    def decide(self) -> World:
        """A restarted head that has heard of all consumers, or knows that they have stopped."""
        h = self.h
        if h.phase != "unknown" or h.waits:
            return self
        if h.holder:
            return self.with_h(phase="owned")
        first = next((each for each in reversed(CONSUMERS) if self.consumer(each).is_alive), "")
        return self.with_h(members=h.members or CONSUMERS).assign(first, is_certain=False)

    # -- the head

    def head_on_ack(self, _h: str, src: str, epoch: int, item: int) -> World:
        is_holder = src == self.h.holder and epoch == self.h.epoch
        return self.with_h(token=max(item, self.h.token)) if is_holder else self

    def head_on_released(self, _h: str, src: str, epoch: int, token: int) -> World:
        if self.h.phase == "owned" or (self.h.holder, self.h.epoch) != (src, epoch):
            return self
        w = replace(self, h=replace(self.h, token=token), outcome=self.outcome or "moved")
        return w.assign("B" if "B" in self.h.members else "A", is_certain=True)

    def head_on_holds(self, _h: str, src: str, epoch: int, acked: int) -> World:
        h = self.h
        w = self.with_h(waits=tuple(each for each in h.waits if each != src), members=(*h.members, src))
        if epoch and not h.holder:
            w = w.with_h(holder=src, epoch=h.epoch + 1, token=acked).send("H", src, "KEEP", h.epoch + 1)
        return w.decide()

    def head_on_lost(self, _h: str, src: str, epoch: int) -> World:
        """The taker cannot cache any more; if the slice is its own already, it has given nothing of it."""
        if (self.h.phase, self.h.holder, self.h.epoch) == ("owned", src, epoch):
            return self.assign(src, is_certain=True)
        is_session = src == "B" and self.h.phase in ("adding", "removing") and epoch == self.h.epoch + 1
        return self.fall_back("full") if is_session else self

    def head_on_resume_up(self, _h: str, src: str, name: str, epoch: int, number: int, token: int) -> World:
        h = self.h
        is_added = h.phase in ("adding", "removing") and name == "B" and epoch == h.epoch + 1
        is_holder = name == h.holder and epoch == h.epoch
        if not (is_holder or is_added) and h.phase != "unknown":
            return self.send("H", src, "RELEASE", name, number)
        logged = h.log[-1] if h.log else self.log_before
        start = logged if token < 0 else token
        missed = tuple(item for item in h.log if item > start)
        return self.send("H", src, "RESUMED", name, number, start, missed)

    def head_on_caching(self, _h: str, src: str, epoch: int, received: int) -> World:
        if (self.h.phase, self.h.holder, self.h.epoch) != ("caching", src, epoch):
            return self
        start = -1 if self.is_off("it-caches-from-where-the-giver-is") else received
        return self.with_h(phase="adding").send("H", "B", "ADD", epoch + 1, start)

    def head_on_added(self, _h: str, src: str, epoch: int) -> World:
        if self.h.phase != "adding" or epoch != self.h.epoch + 1:
            return self
        return self.with_h(phase="removing").send("H", "A", "REMOVE", self.h.epoch)

    def head_on_sent(self, _h: str, src: str, epoch: int, token: int, items: tuple[int, ...]) -> World:
        """The giver has left, and this is its cache; if the session has ended meanwhile, its place counts alone."""
        h = self.h
        if h.phase != "removing" and not self.is_off("a-late-cache-is-not-merged"):
            return self.head_on_released(_h, src, epoch, token)
        if (h.holder, h.epoch) != (src, epoch):
            return self
        w = self.with_h(phase="owned", holder="B", epoch=epoch + 1, token=token)
        w = replace(w, outcome=w.outcome or "merged")
        return w.send("H", "B", "MERGE", epoch + 1, token, items)

    # -- an edge

    def edge_on_pub(self, edge: str, _src: str, item: int) -> World:
        w = self
        for (at, name), number in self.edges:
            if at == edge:
                w = w.send(edge, name, "DELIVER", number, item)
        return w

    def edge_on_resume(self, edge: str, src: str, epoch: int, number: int, token: int) -> World:
        w = self.serve(edge, src, 0)
        return w.send(edge, "H", "RESUME_UP", src, epoch, number, token)

    def edge_on_resumed(
        self, edge: str, _src: str, name: str, number: int, start: int, items: tuple[int, ...]
    ) -> World:
        if number != self.consumer(name).attached or not self.consumer(name).is_alive:
            return self
        w = self.serve(edge, name, number).send(edge, name, "RESUMED", number, start)
        for item in items:
            w = w.send(edge, name, "DELIVER", number, item)
        return w

    def edge_on_release(self, edge: str, _src: str, name: str, number: int) -> World:
        return self.serve(edge, name, 0) if dict(self.edges).get((edge, name)) == number else self

    def edge_on_detach(self, edge: str, src: str, number: int) -> World:
        return self.serve(edge, src, 0) if dict(self.edges).get((edge, src)) == number else self

    # -- a consumer

    def consumer_on_deliver(self, name: str, _src: str, number: int, item: int) -> World:
        at = self.consumer(name)
        is_seen = item <= at.received
        if not at.epoch or number != at.attached or is_seen:
            return self
        return self.with_c(name, received=item, queue=(*at.queue, item))

    def consumer_on_resumed(self, name: str, _src: str, number: int, start: int) -> World:
        at = self.consumer(name)
        if number != at.attached or not at.epoch:
            return self
        if at.state == "adding":
            return self.with_c(name, received=max(start, at.received)).send(name, "H", "ADDED", at.epoch)
        return self

    def consumer_on_revoke(self, name: str, _src: str, epoch: int) -> World:
        at = self.consumer(name)
        if at.epoch != epoch:
            return self
        w = self.with_c(name, state="stopping")
        return w if at.hand and not self.is_off("what-is-in-hand-is-finished") else w._stopped(name)

    def consumer_on_assign(self, name: str, _src: str, epoch: int, token: int, marked_to: int) -> World:
        w = self.with_c(name, epoch=epoch, acked=token, marked_to=marked_to, state="gives", queue=())
        return w.resume(name, token)

    def consumer_on_keep(self, name: str, _src: str, epoch: int) -> World:
        """A restarted head has heard that it has the slice, which goes on under a new epoch."""
        return self.with_c(name, epoch=epoch).resume_again(name) if self.consumer(name).epoch else self

    def consumer_on_forget(self, name: str, _src: str, epoch: int) -> World:
        return self.let_go(name) if self.consumer(name).epoch == epoch else self

    def consumer_on_cache(self, name: str, _src: str, epoch: int) -> World:
        at = self.consumer(name)
        if at.epoch != epoch:
            return self
        w = self.with_c(name, state="halting")
        return w if at.hand and not self.is_off("what-is-in-hand-is-finished") else w._stopped(name)

    def consumer_on_add(self, name: str, _src: str, epoch: int, start: int) -> World:
        return self.with_c(name, epoch=epoch, state="adding", queue=(), marked_to=0).resume(name, start)

    def consumer_on_remove(self, name: str, _src: str, epoch: int) -> World:
        at = self.consumer(name)
        if at.epoch != epoch or at.state != "caching":
            return self
        return self.let_go(name).send(name, "H", "SENT", at.epoch, at.acked, at.queue)

    def consumer_on_merge(self, name: str, _src: str, epoch: int, token: int, items: tuple[int, ...]) -> World:
        at = self.consumer(name)
        if at.epoch != epoch or (at.state != "adding" and not self.is_off("a-late-cache-is-not-merged")):
            return self
        merged = (*at.queue, *items)
        if not self.is_off("merged-once"):
            merged = tuple(dict.fromkeys(merged))
        if not self.is_off("merged-in-order"):
            merged = tuple(sorted(merged))
        received = max((at.received, *items)) if not self.is_off("a-merge-is-seen") else at.received
        return self.with_c(name, state="gives", queue=merged, acked=token, received=received)

    # -- laws

    def check(self) -> None:
        busy = [name for name in CONSUMERS if self.consumer(name).hand and not self.consumer(name).is_cut_off]
        if len(busy) > 1 and not self.fault.startswith("cut"):
            raise ViolationError(f"one holder: {busy} have items in hand")
        before: list[Given] = []
        for given in self.history:
            if before and given.epoch < before[-1].epoch:
                raise ViolationError(f"one holder: {given} after {before[-1]}")
            items = [each.item for each in before]
            if given.item in items and not given.is_marked:
                raise ViolationError(f"once: {self.history}")
            if any(each.epoch == given.epoch and each.item >= given.item for each in before):
                raise ViolationError(f"in order: {self.history}")
            if not given.is_marked and any(item > given.item for item in items):
                raise ViolationError(f"in order: {self.history}")
            if given.is_marked and not self.fault:
                raise ViolationError(f"once: {given} is marked, and nothing has failed")
            before.append(given)

    def check_end(self) -> None:
        if self.fault != "crash H":
            missing = set(range(1, self.config.items + 1)) - set(self.done)
            if missing:
                raise ViolationError(f"none lost: {sorted(missing)} of {self.history}")
        h = self.h
        if h.phase != "owned" or self.consumer(h.holder).epoch != h.epoch:
            raise ViolationError(f"ends: {h}, {self.consumers}")
        other = "B" if h.holder == "A" else "A"
        if self.consumer(other).epoch:
            raise ViolationError(f"ends: {other} has the slice as well, {self.consumers}")
        if dict(self.edges).get((self.edge_of(h.holder), h.holder)) != self.consumer(h.holder).attached:
            raise ViolationError(f"ends: {h.holder} is not served, {self.edges}")

    def outcomes(self) -> list[str]:
        return [self.outcome]


def explore(config: Config) -> Result:
    """Visit every reachable state once. `outcomes`: how the move ended, over all ends."""
    return search(World(config), visit)
