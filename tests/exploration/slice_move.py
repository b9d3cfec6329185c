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

from dataclasses import replace
from typing import Any, Self

from tests.exploration.search import Result, ViolationError, search, visit
from tests.exploration.slice_rules import CONSUMERS, Config, ConsumerRules, EdgeRules, Given, HeadRules


class Faults(HeadRules, EdgeRules, ConsumerRules):
    """What may fail once: a process, a connection, or a bound of the session."""

    def do_fault(self, fault: str) -> Self:
        w, (kind, node) = replace(self, fault=fault), fault.split()
        after: Self = getattr(w, "fault_" + kind)(node)
        return after

    def fault_crash(self, node: str) -> Self:
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

    def fault_slow(self, _node: str) -> Self:
        """The session takes too long for the head."""
        return self.fall_back("slow") if self.h.phase in ("caching", "adding", "removing") else self

    def fault_full(self, node: str) -> Self:
        """The cache of a consumer is at its bound."""
        at = self.consumer(node)
        if at.state == "caching":
            return self.let_go(node).send(node, "H", "RELEASED", at.epoch, at.acked)
        if at.state == "adding":
            return self.let_go(node).send(node, "H", "LOST", at.epoch)
        return self

    def fault_cut(self, node: str) -> Self:
        return self.with_c(node, is_cut_off=True)

    def _head_restarts(self) -> Self:
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


class World(Faults):
    """The steps, and the laws that each state keeps."""

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

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        if dst in CONSUMERS and not w.consumer(dst).is_alive:
            return w
        role = "consumer" if dst in CONSUMERS else "head" if dst == "H" else "edge"
        return w.heard(role, kind, dst, src, *rest)

    def do_publish(self) -> Self:
        item = self.published + 1
        w = self.with_h(log=(*self.h.log, item))
        for edge in sorted(set(self.config.edges)):
            w = w.send("H", edge, "PUB", item)
        return w

    def do_command(self) -> Self:
        """A plan gives the slice of A to B."""
        w, h = replace(self, is_commanded=True), self.h
        if h.holder != "A" or "B" not in h.members:
            return replace(w, outcome="refused")
        if self.config.mode == "Cache":
            return w.with_h(phase="caching").send("H", "A", "CACHE", h.epoch)
        w = w.with_h(phase="revoking").send("H", "A", "REVOKE", h.epoch)
        return w.assign("B", is_certain=True) if self.is_off("assigned-when-released") else w

    def do_give(self, name: str) -> Self:
        at = self.consumer(name)
        item, *rest = at.queue
        given = Given(item, name, at.epoch, item <= at.marked_to)
        w = self.with_c(name, queue=tuple(rest), hand=item)
        return replace(w, history=(*w.history, given))

    def do_finish(self, name: str) -> Self:
        """The application has finished an item: it is acknowledged, though perhaps too late for the head."""
        at = self.consumer(name)
        w = replace(self, done=tuple(sorted({*self.done, at.hand})))
        if not at.epoch:
            return w.with_c(name, hand=0)
        w = w.with_c(name, hand=0, acked=at.hand).send(name, "H", "ACK", at.epoch, at.hand)
        return w._stopped(name)

    def do_lease_out(self, name: str) -> Self:
        """The consumer has had no answer for its lease: it stops by itself."""
        return self.with_c(name, has_lease=False)

    def do_evict(self, name: str) -> Self:
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

    def do_heal(self, name: str) -> Self:
        """It reaches the head again, which no longer knows it; its slice has gone on elsewhere."""
        w = self.drop_with(name).with_c(name, is_cut_off=False, epoch=0, queue=(), state="gives", has_lease=True)
        return w.serve(self.edge_of(name), name, 0).with_h(members=(*w.h.members, name))

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
