"""The parts of a slice that moves (`slice_move.py`), and their rules: the head, the edges, and the consumers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld

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
class SliceState(ChannelWorld):
    """All that the parts know, and what is on its way."""

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

    def consumer(self, name: str) -> Consumer:
        return self.consumers[CONSUMERS.index(name)]

    def edge_of(self, name: str) -> str:
        return self.config.edges[CONSUMERS.index(name)]

    def with_c(self, name: str, **changes: Any) -> Self:
        changed = [replace(c, **changes) if n == name else c for n, c in zip(CONSUMERS, self.consumers, strict=True)]
        return replace(self, consumers=(changed[0], changed[1]))

    def with_h(self, **changes: Any) -> Self:
        return replace(self, h=replace(self.h, **changes))

    def drop_with(self, node: str) -> Self:
        """What is on its way to this node, and from it, is lost."""
        return self.losing(lambda pair: node in pair)

    def serve(self, edge: str, name: str, number: int) -> Self:
        served = dict(self.edges)
        if number:
            served[edge, name] = number
        else:
            served.pop((edge, name), None)
        return replace(self, edges=tuple(sorted(served.items())))

    def resume(self, name: str, token: int) -> Self:
        """The consumer attaches the slice at its edge, from behind `token`; a new attachment each time."""
        number = self.consumer(name).attached + 1
        w = self.with_c(name, attached=number, received=token, queue=())
        return w.send(name, self.edge_of(name), "RESUME", w.consumer(name).epoch, number, token)

    def resume_again(self, name: str) -> Self:
        """As after any lost attachment: from what has come, and the queue stays."""
        at = self.consumer(name)
        return self.resume(name, at.received).with_c(name, queue=at.queue)

    def let_go(self, name: str) -> Self:
        """The consumer has the slice no more: what it had queued is dropped here."""
        at = self.consumer(name)
        w = self.with_c(name, epoch=0, state="gives", queue=())
        return w.send(name, self.edge_of(name), "DETACH", at.attached)

    @property
    def published(self) -> int:
        return self.h.log[-1] if self.h.log else self.log_before


class HeadRules(SliceState):
    """The head: it keeps who has the slice, and leads the session."""

    def assign(self, to: str, *, is_certain: bool) -> Self:
        """Give the slice to a consumer, in a new epoch, from the last acknowledgement.

        Not `is_certain`: what was given behind it is not known, so all that is logged may have been given before.
        """
        logged = self.h.log[-1] if self.h.log else 0
        marked = 0 if is_certain or self.is_off("given-before-is-marked") else max(logged, self.h.token)
        # By 2: above the epoch under which a taker may have begun to cache.
        w = self.forget() if to != "B" else self
        w = w.with_h(holder=to, epoch=self.h.epoch + 2, phase="owned")
        return w.send("H", to, "ASSIGN", w.h.epoch, w.h.token, marked)

    def forget(self) -> Self:
        """A taker that may be caching is told that its session is over."""
        return self.send("H", "B", "FORGET", self.h.epoch + 1) if self.h.phase in ("adding", "removing") else self

    def fall_back(self, why: str) -> Self:
        """The session cannot go on: the giver lets go, as by Deliver, and the taker forgets what it has cached."""
        w = replace(self.forget().with_h(phase="revoking"), outcome=self.outcome or why)
        return w.send("H", "A", "REVOKE", w.h.epoch)

    def decide(self) -> Self:
        """A restarted head that has heard of all consumers, or knows that they have stopped."""
        h = self.h
        if h.phase != "unknown" or h.waits:
            return self
        if h.holder:
            return self.with_h(phase="owned")
        first = next((each for each in reversed(CONSUMERS) if self.consumer(each).is_alive), "")
        return self.with_h(members=h.members or CONSUMERS).assign(first, is_certain=False)

    def head_on_ack(self, _h: str, src: str, epoch: int, item: int) -> Self:
        is_holder = src == self.h.holder and epoch == self.h.epoch
        return self.with_h(token=max(item, self.h.token)) if is_holder else self

    def head_on_released(self, _h: str, src: str, epoch: int, token: int) -> Self:
        if self.h.phase == "owned" or (self.h.holder, self.h.epoch) != (src, epoch):
            return self
        w = replace(self, h=replace(self.h, token=token), outcome=self.outcome or "moved")
        return w.assign("B" if "B" in self.h.members else "A", is_certain=True)

    def head_on_holds(self, _h: str, src: str, epoch: int, acked: int) -> Self:
        h = self.h
        w = self.with_h(waits=tuple(each for each in h.waits if each != src), members=(*h.members, src))
        if epoch and not h.holder:
            w = w.with_h(holder=src, epoch=h.epoch + 1, token=acked).send("H", src, "KEEP", h.epoch + 1)
        return w.decide()

    def head_on_lost(self, _h: str, src: str, epoch: int) -> Self:
        """The taker cannot cache any more; if the slice is its own already, it has given nothing of it."""
        if (self.h.phase, self.h.holder, self.h.epoch) == ("owned", src, epoch):
            return self.assign(src, is_certain=True)
        is_session = src == "B" and self.h.phase in ("adding", "removing") and epoch == self.h.epoch + 1
        return self.fall_back("full") if is_session else self

    def head_on_resume_up(self, _h: str, src: str, name: str, epoch: int, number: int, token: int) -> Self:
        h = self.h
        is_added = h.phase in ("adding", "removing") and name == "B" and epoch == h.epoch + 1
        is_holder = name == h.holder and epoch == h.epoch
        if not (is_holder or is_added) and h.phase != "unknown":
            return self.send("H", src, "RELEASE", name, number)
        logged = h.log[-1] if h.log else self.log_before
        start = logged if token < 0 else token
        missed = tuple(item for item in h.log if item > start)
        return self.send("H", src, "RESUMED", name, number, start, missed)

    def head_on_caching(self, _h: str, src: str, epoch: int, received: int) -> Self:
        if (self.h.phase, self.h.holder, self.h.epoch) != ("caching", src, epoch):
            return self
        start = -1 if self.is_off("it-caches-from-where-the-giver-is") else received
        return self.with_h(phase="adding").send("H", "B", "ADD", epoch + 1, start)

    def head_on_added(self, _h: str, src: str, epoch: int) -> Self:
        if self.h.phase != "adding" or epoch != self.h.epoch + 1:
            return self
        return self.with_h(phase="removing").send("H", "A", "REMOVE", self.h.epoch)

    def head_on_sent(self, _h: str, src: str, epoch: int, token: int, items: tuple[int, ...]) -> Self:
        """The giver has left, and this is its cache; if the session has ended meanwhile, its place counts alone."""
        h = self.h
        if h.phase != "removing" and not self.is_off("a-late-cache-is-not-merged"):
            return self.head_on_released(_h, src, epoch, token)
        if (h.holder, h.epoch) != (src, epoch):
            return self
        w = self.with_h(phase="owned", holder="B", epoch=epoch + 1, token=token)
        w = replace(w, outcome=w.outcome or "merged")
        return w.send("H", "B", "MERGE", epoch + 1, token, items)


class EdgeRules(SliceState):
    """The edges: each serves the consumers that have attached the slice there."""

    def edge_on_pub(self, edge: str, _src: str, item: int) -> Self:
        w = self
        for (at, name), number in self.edges:
            if at == edge:
                w = w.send(edge, name, "DELIVER", number, item)
        return w

    def edge_on_resume(self, edge: str, src: str, epoch: int, number: int, token: int) -> Self:
        w = self.serve(edge, src, 0)
        return w.send(edge, "H", "RESUME_UP", src, epoch, number, token)

    def edge_on_resumed(self, edge: str, _src: str, name: str, number: int, start: int, items: tuple[int, ...]) -> Self:
        if number != self.consumer(name).attached or not self.consumer(name).is_alive:
            return self
        w = self.serve(edge, name, number).send(edge, name, "RESUMED", number, start)
        for item in items:
            w = w.send(edge, name, "DELIVER", number, item)
        return w

    def edge_on_release(self, edge: str, _src: str, name: str, number: int) -> Self:
        return self.serve(edge, name, 0) if dict(self.edges).get((edge, name)) == number else self

    def edge_on_detach(self, edge: str, src: str, number: int) -> Self:
        return self.serve(edge, src, 0) if dict(self.edges).get((edge, src)) == number else self


class ConsumerRules(SliceState):
    """The consumers: what an application has in hand is finished before they let go."""

    def _stopped(self, name: str) -> Self:
        """Nothing is in hand: a consumer that was told to stop says so."""
        at = self.consumer(name)
        if at.state == "stopping":
            token = at.received if self.is_off("from-the-last-acknowledgement") else at.acked
            return self.let_go(name).send(name, "H", "RELEASED", at.epoch, token)
        if at.state == "halting":
            return self.with_c(name, state="caching").send(name, "H", "CACHING", at.epoch, at.received)
        return self

    def consumer_on_deliver(self, name: str, _src: str, number: int, item: int) -> Self:
        at = self.consumer(name)
        is_seen = item <= at.received
        if not at.epoch or number != at.attached or is_seen:
            return self
        return self.with_c(name, received=item, queue=(*at.queue, item))

    def consumer_on_resumed(self, name: str, _src: str, number: int, start: int) -> Self:
        at = self.consumer(name)
        if number != at.attached or not at.epoch:
            return self
        if at.state == "adding":
            return self.with_c(name, received=max(start, at.received)).send(name, "H", "ADDED", at.epoch)
        return self

    def consumer_on_revoke(self, name: str, _src: str, epoch: int) -> Self:
        at = self.consumer(name)
        if at.epoch != epoch:
            return self
        w = self.with_c(name, state="stopping")
        return w if at.hand and not self.is_off("what-is-in-hand-is-finished") else w._stopped(name)

    def consumer_on_assign(self, name: str, _src: str, epoch: int, token: int, marked_to: int) -> Self:
        w = self.with_c(name, epoch=epoch, acked=token, marked_to=marked_to, state="gives", queue=())
        return w.resume(name, token)

    def consumer_on_keep(self, name: str, _src: str, epoch: int) -> Self:
        """A restarted head has heard that it has the slice, which goes on under a new epoch."""
        return self.with_c(name, epoch=epoch).resume_again(name) if self.consumer(name).epoch else self

    def consumer_on_forget(self, name: str, _src: str, epoch: int) -> Self:
        return self.let_go(name) if self.consumer(name).epoch == epoch else self

    def consumer_on_cache(self, name: str, _src: str, epoch: int) -> Self:
        at = self.consumer(name)
        if at.epoch != epoch:
            return self
        w = self.with_c(name, state="halting")
        return w if at.hand and not self.is_off("what-is-in-hand-is-finished") else w._stopped(name)

    def consumer_on_add(self, name: str, _src: str, epoch: int, start: int) -> Self:
        return self.with_c(name, epoch=epoch, state="adding", queue=(), marked_to=0).resume(name, start)

    def consumer_on_remove(self, name: str, _src: str, epoch: int) -> Self:
        at = self.consumer(name)
        if at.epoch != epoch or at.state != "caching":
            return self
        return self.let_go(name).send(name, "H", "SENT", at.epoch, at.acked, at.queue)

    def consumer_on_merge(self, name: str, _src: str, epoch: int, token: int, items: tuple[int, ...]) -> Self:
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
