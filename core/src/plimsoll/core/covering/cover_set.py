"""Covering: the fewest subscriptions that together select the same as all, maintained under additions and removals.

Laws. A broker's covering set is the set of most general subscriptions, those that no other covers (PADRES 2006,
section 2). Equal subscriptions are represented by one of them. The announced set is exactly that set after every step,
and a step is a `CoverDelta`: what to announce, then what to withdraw, so that nothing is uncovered in between.
Covering is a partial order, so what an unannounced subscription covers is covered by an announced one too.

Every member that is not announced has a witness, a member that covers it. Only the removal of its witness can expose
a subscription, which then needs another one. Witnesses are found in the tables of `frontier`.

A step may be bounded (`units`), since one broad subscription can cover, and its removal expose, all others of a broker.
What is left over is done by `tidy`, in as many bounded steps as it takes. Until then the announced set is larger than
needed: what a removed subscription covered stays covered by it (it is *retiring*, announced still), and what a new
one covers stays announced beside it (it is *sweeping*).
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from plimsoll.core.covering.frontier import CoverFrontier, CoverNode, SearchBudget
from plimsoll.core.predicates import Subscription

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CoverDelta(Generic[K]):
    """One step of an announced set: announce first, then withdraw.

    Announcing a key replaces the subscription announced under it; no key is both announced and withdrawn.
    """

    announce: tuple[tuple[K, Subscription], ...] = ()
    withdraw: tuple[K, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.announce or self.withdraw)


WITNESS_UNITS = 60
"""Of a search that compares nothing: hashes, look-ups, and the books of the node."""
FILING_UNITS = 30
"""Of each constraint of a subscription that is announced or withdrawn: its place among those on the same attribute."""
UNBOUNDED = 2**62
SWEEPS_AT_MOST = 16
"""Announced subscriptions whose comparison with others waits; each may hold a reference to every other one."""


def reading_units(text: str) -> int:
    """The work of parsing a subscription and filing it in an index."""
    return 60 + len(text) // 4 + 24 * text.count("[") + 4 * text.count(",")


class CoveringSet(Generic[K]):
    """Subscriptions by key, of which the covering set is announced.

    Equal subscriptions are represented by the one that already does so, else by the smallest key of the step that added
    them, else by the oldest. Results do not depend on the order in which a step lists its members.
    """

    def __init__(self) -> None:
        self._nodes: dict[Subscription, CoverNode[K]] = {}
        self._members: dict[K, CoverNode[K]] = {}
        self._announced: dict[K, Subscription] = {}
        self._frontier: CoverFrontier[K] = CoverFrontier()
        self._serial = 0  # of the latest node
        self._retiring: dict[K, CoverNode[K]] = {}  # removed, and announced until its dependents have other witnesses
        self._sweeping: deque[tuple[CoverNode[K], list[CoverNode[K]]]] = deque()  # each with those to be compared
        self._left = UNBOUNDED
        self.units_spent = 0
        """Of the latest step; a unit is some quarter of a microsecond."""

    def add(self, key: K, subscription: Subscription) -> CoverDelta[K]:
        """Add one. ValueError when the key is taken."""
        return self.apply([(key, subscription)], ())

    def remove(self, key: K) -> CoverDelta[K]:
        """Remove one. KeyError when the key is unknown."""
        return self.apply((), [key])

    def apply(
        self, adds: Iterable[tuple[K, Subscription]], removes: Iterable[K], *, units: int = UNBOUNDED
    ) -> CoverDelta[K]:
        """Remove, then add, as one step: a key may be removed and added again. Changes nothing when it raises.

        `units` bounds the work of the step. What is left then, as `is_tidy` says, is the work of `tidy`.
        """
        leaving = sorted_keys(removes)
        coming = [(key, subscription) for key, subscription in adds]
        self._check([key for key, _ in coming], leaving)
        before: dict[K, Subscription | None] = {}
        pending: dict[CoverNode[K], None] = {}
        self._left = units
        for key in leaving:
            self._remove_member(key, before, pending)
        by_key = dict(coming)
        for key in sorted_keys(by_key):
            if key in self._retiring:
                self._release(key, UNBOUNDED, before, pending)
            self._add_member(key, by_key[key], pending)
        self._reannounce(before, pending)
        self.units_spent = units - self._left
        return self._delta(before)

    @property
    def is_tidy(self) -> bool:
        """Whether the announced set is no larger than needed, as far as searches find coverers."""
        return not self._retiring and not self._sweeping

    def tidy(self, units: int) -> CoverDelta[K]:
        """Continue the work that bounded steps have left, for about this number of units."""
        before: dict[K, Subscription | None] = {}
        pending: dict[CoverNode[K], None] = {}
        self._left = units
        while self._left > 0 and self._retiring:
            self._release(next(iter(self._retiring)), 1, before, pending)
            self._reannounce(before, pending)
            pending.clear()
        while self._left > 0 and self._sweeping:
            node, others = self._sweeping.popleft()
            self._sweep(node, others, before)
        self.units_spent = units - self._left
        return self._delta(before)

    def is_covered(self, subscription: Subscription) -> bool:
        """Whether some member covers the subscription, or equals it."""
        return subscription in self._nodes or self._frontier.witness(subscription) is not None

    def items(self) -> list[tuple[K, Subscription]]:
        """The announced members, in key order."""
        return [(key, self._announced[key]) for key in sorted_keys(self._announced)]

    def __len__(self) -> int:
        return len(self._announced)

    def __contains__(self, key: object) -> bool:
        return key in self._announced

    def member(self, key: K) -> Subscription:
        """The subscription of a key, announced or not. KeyError when the key is unknown."""
        return self._members[key].subscription

    @property
    def member_count(self) -> int:
        """The number of subscriptions, announced or not."""
        return len(self._members)

    def _check(self, coming: list[K], leaving: list[K]) -> None:
        gone = set(leaving)
        if len(gone) != len(leaving):
            raise ValueError("a key is removed twice in one step")
        if len(set(coming)) != len(coming):
            raise ValueError("a key is added twice in one step")
        for key in leaving:
            if key not in self._members:
                raise KeyError(key)
        for key in coming:
            if key in self._members and key not in gone:
                raise ValueError(
                    f"key {key!r} is in the covering set already; remove it in the same step to replace it"
                )

    def _remove_member(self, key: K, before: dict[K, Subscription | None], pending: dict[CoverNode[K], None]) -> None:
        node = self._members.pop(key)
        self._left -= FILING_UNITS
        node.keys.pop(key)
        if node.keys:
            if node.announced and node.representative == key:
                self._withdraw(node, before)
                pending[node] = None
            return
        del self._nodes[node.subscription]
        pending.pop(node, None)
        was_announced = node.announced
        if was_announced:
            self._withdraw(node, before)
        heir = node.witness or self._frontier.chain_extreme(node)
        if node.witness is not None:
            del node.witness.dependents[node]
            node.witness = None
        exposed = self._frontier.remove(node)
        if exposed is not None and not exposed.announced and exposed.witness is None:
            pending[exposed] = None
        if not was_announced and heir is not None:
            for ward in node.dependents:
                _assign_witness(ward, heir)
        elif len(node.dependents) * WITNESS_UNITS > self._left:
            before.setdefault(key, self._announced.get(key))
            self._announced[key] = node.subscription
            self._retiring[key] = node
        else:
            _release_wards(node, len(node.dependents), pending)

    def _release(
        self, key: K, most: int, before: dict[K, Subscription | None], pending: dict[CoverNode[K], None]
    ) -> None:
        """Let at most this number of dependents of a retiring node go; it is withdrawn with the last of them."""
        node = self._retiring[key]
        _release_wards(node, most, pending)
        if not node.dependents:
            del self._retiring[key]
            before.setdefault(key, self._announced.pop(key))

    def _add_member(self, key: K, subscription: Subscription, pending: dict[CoverNode[K], None]) -> None:
        node = self._nodes.get(subscription)
        if node is None:
            self._serial += 1
            node = self._nodes[subscription] = CoverNode(subscription, self._serial)
            if self._frontier.insert(node):
                pending[node] = None
        node.keys[key] = None
        self._members[key] = node

    def _reannounce(self, before: dict[K, Subscription | None], pending: dict[CoverNode[K], None]) -> None:
        """Give every pending node a witness or announce it."""
        for node in sorted(pending, key=_generality):
            if node.announced or node.witness is not None or not node.keys or not self._frontier.is_extreme(node):
                continue
            budget = SearchBudget()
            witness = self._frontier.witness(node.subscription, budget, node.size)
            self._left -= WITNESS_UNITS + budget.spent
            if witness is not None:
                _assign_witness(node, witness)
                continue
            searched = SearchBudget()
            candidates = self._frontier.candidate_covered(node, searched)
            self._left -= searched.spent
            self._announce(node, before)
            self._sweep(node, candidates, before)

    def _sweep(self, node: CoverNode[K], candidates: list[CoverNode[K]], before: dict[K, Subscription | None]) -> None:
        """Withdraw those that an announced node covers."""
        while candidates and node.announced:
            if self._left <= 0:
                self._put_off(node, candidates)
                return
            other = candidates.pop()
            self._left -= node.size + node.pieces * other.size
            if other.announced and node.subscription.covers(other.subscription):
                self._withdraw(other, before)
                _assign_witness(other, node)

    def _put_off(self, node: CoverNode[K], candidates: list[CoverNode[K]]) -> None:
        if len(self._sweeping) < SWEEPS_AT_MOST:
            self._sweeping.append((node, candidates))
        # Else what it covers stays announced, too: larger than needed, and right.

    def _announce(self, node: CoverNode[K], before: dict[K, Subscription | None]) -> None:
        key = next(iter(node.keys))
        before.setdefault(key, self._announced.get(key))
        self._left -= FILING_UNITS * len(node.subscription.constraints)
        node.representative, node.announced = key, True
        self._announced[key] = node.subscription
        self._frontier.announce(node)

    def _withdraw(self, node: CoverNode[K], before: dict[K, Subscription | None]) -> None:
        key = node.representative
        if key is None:
            raise RuntimeError(f"{node.subscription} is announced without a key")
        before.setdefault(key, self._announced[key])
        self._left -= FILING_UNITS * len(node.subscription.constraints)
        node.representative, node.announced = None, False
        del self._announced[key]
        self._frontier.withdraw(node)

    def _delta(self, before: dict[K, Subscription | None]) -> CoverDelta[K]:
        now = self._announced
        changed = [key for key in sorted_keys(before) if before[key] != now.get(key)]
        announce = tuple((key, now[key]) for key in changed if key in now)
        return CoverDelta(announce, tuple(key for key in changed if key not in now))


def sorted_keys(keys: Iterable[K]) -> list[K]:
    """Keys in an order independent of how they are listed: their own order, else by type and text."""
    listed = list(keys)
    try:
        return sorted(listed)  # type: ignore[type-var]  # refused by the keys themselves if they have no order
    except TypeError:
        return sorted(listed, key=lambda key: (type(key).__qualname__, repr(key)))


def _assign_witness(ward: CoverNode[K], witness: CoverNode[K]) -> None:
    ward.witness = witness
    witness.dependents[ward] = None


def _release_wards(node: CoverNode[K], most: int, pending: dict[CoverNode[K], None]) -> None:
    while node.dependents and most > 0:
        ward, _ = node.dependents.popitem()
        most -= 1
        ward.witness = None
        pending[ward] = None


def _generality(node: CoverNode[K]) -> int:
    """Sort key, most general first: a subscription has at least as many constraints as one that covers it."""
    return len(node.subscription.constraints)
