"""Where a covering set looks: who can cover a subscription, and whom can it cover.

Laws. A coverer asks for no attribute that the covered does not constrain, and for no equality that the covered does not
ask for too. So coverers of a subscription are found by its equalities, projected on each set of equalities that is in
use: one hash look-up per such set. Within a cell, bounds on one attribute and side form a chain, of which the loosest
covers the others: the extreme answers for all of it. Other residuals are compared one by one, announced ones only.
The covered are found the other way round, by the rarest of the subscription's own constraints.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Generic, TypeVar

from plimsoll.core.matching.shape import Names, Side, filed
from plimsoll.core.predicates import Exactly, Interval, Subscription, Value
from plimsoll.core.predicates.constraints import AnyConstraint

K = TypeVar("K", bound=Hashable)
Constraints = dict[str, AnyConstraint]


class Node(Generic[K]):
    """A distinct subscription: the keys that have it, and who stands in for it while it is not announced."""

    __slots__ = ("announced", "keys", "representative", "subscription", "wards", "witness")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.keys: dict[K, None] = {}
        self.announced = False
        self.representative: K | None = None
        self.witness: Node[K] | None = None
        self.wards: dict[Node[K], None] = {}


class Chain(Generic[K]):
    """Bounds on one side of one attribute, ascending; the loosest is the extreme."""

    __slots__ = ("attribute", "bounds", "nodes", "side")

    def __init__(self, attribute: str, side: Side) -> None:
        self.attribute = attribute
        self.side = side
        self.bounds: list[float] = []
        self.nodes: list[Node[K]] = []

    def extreme(self) -> Node[K]:
        return self.nodes[0] if self.side <= Side.AT_LEAST else self.nodes[-1]

    def insert(self, bound: float, node: Node[K]) -> None:
        at = bisect_right(self.bounds, bound)
        self.bounds.insert(at, bound)
        self.nodes.insert(at, node)

    def remove(self, bound: float) -> None:
        at = bisect_left(self.bounds, bound)  # distinct subscriptions, so distinct bounds
        del self.bounds[at], self.nodes[at]

    def covers(self, constraint: AnyConstraint) -> bool:
        """Whether the extreme's bound admits all that the constraint admits."""
        bound = self.bounds[0] if self.side <= Side.AT_LEAST else self.bounds[-1]
        if isinstance(constraint, Interval):
            if self.side == Side.ABOVE:
                return constraint.low > bound or (constraint.low == bound and constraint.low_open)
            if self.side == Side.AT_LEAST:
                return constraint.low >= bound
            if self.side == Side.BELOW:
                return constraint.high < bound or (constraint.high == bound and constraint.high_open)
            return constraint.high <= bound
        mine = dict(self.extreme().subscription.constraints)[self.attribute]
        return mine.covers(constraint)


class Cell(Generic[K]):
    """The nodes of one set of equality values."""

    __slots__ = ("bags", "chains", "plain")

    def __init__(self) -> None:
        self.plain: Node[K] | None = None  # the equalities alone
        self.chains: dict[tuple[str, Side], Chain[K]] = {}
        self.bags: dict[tuple[str, ...], dict[Node[K], tuple[AnyConstraint, ...]]] = {}  # announced, by attributes

    def is_empty(self) -> bool:
        return self.plain is None and not self.chains and not self.bags


class Frontier(Generic[K]):
    """The nodes of a covering set, arranged for the two questions."""

    def __init__(self) -> None:
        self._tables: dict[Names, dict[tuple[Value, ...], Cell[K]]] = {}
        self._projections: dict[Names, list[tuple[list[int], dict[tuple[Value, ...], Cell[K]]]]] = {}
        self._announced: dict[tuple[str, object], dict[Node[K], None]] = {}  # by each constraint's own place

    def insert(self, node: Node[K]) -> bool:
        """Take a node in. False when another of its chain covers it for certain: it needs no witness of its own."""
        filing = filed(node.subscription)
        if filing is None:
            return True
        cell = self._open(*_equalities(node.subscription))
        (_, attribute, side), _, bound = filing
        if not attribute:
            cell.plain = node
            return True
        chain = cell.chains.get((attribute, side))
        if chain is None:
            chain = cell.chains[attribute, side] = Chain(attribute, side)
        chain.insert(bound, node)
        return chain.extreme() is node

    def remove(self, node: Node[K]) -> Node[K] | None:
        """Let a node go (withdrawn before). The next extreme of its chain, if it was the extreme."""
        filing = filed(node.subscription)
        if filing is None:
            return None
        names, values = _equalities(node.subscription)
        cell = self._tables[names][values]
        exposed = None
        (_, attribute, side), _, bound = filing
        if attribute:
            chain = cell.chains[attribute, side]
            was_extreme = chain.extreme() is node
            chain.remove(bound)
            if not chain.nodes:
                del cell.chains[attribute, side]
            elif was_extreme:
                exposed = chain.extreme()
        else:
            cell.plain = None
        self._close(names, values, cell)
        return exposed

    def leads(self, node: Node[K]) -> bool:
        """Whether no other of the node's chain covers it."""
        filing = filed(node.subscription)
        if filing is None or not filing[0][1]:
            return True
        names, values = _equalities(node.subscription)
        return self._tables[names][values].chains[filing[0][1:]].extreme() is node

    def announce(self, node: Node[K]) -> None:
        for place in _places(node.subscription):
            self._announced.setdefault(place, {})[node] = None
        if filed(node.subscription) is None:
            rest = _rest(node.subscription)
            cell = self._open(*_equalities(node.subscription))
            bag = cell.bags.setdefault(tuple(name for name, _ in rest), {})
            bag[node] = tuple(constraint for _, constraint in rest)

    def withdraw(self, node: Node[K]) -> None:
        for place in _places(node.subscription):
            nodes = self._announced[place]
            del nodes[node]
            if not nodes:
                del self._announced[place]
        if filed(node.subscription) is None:
            names, values = _equalities(node.subscription)
            cell = self._tables[names][values]
            attributes = tuple(name for name, _ in _rest(node.subscription))
            del cell.bags[attributes][node]
            if not cell.bags[attributes]:
                del cell.bags[attributes]
            self._close(names, values, cell)

    def witness(self, subscription: Subscription) -> Node[K] | None:
        """A node, not equal to the subscription, that covers it; None when there is none."""
        names, values = _equalities(subscription)
        projections = self._projections.get(names)
        if projections is None:
            projections = self._projections[names] = self._project(names)
        constraints: Constraints = dict(subscription.constraints)
        for at, cells in projections:
            cell = cells.get(tuple([values[i] for i in at]))
            if cell is not None:
                node = _witness_in(cell, constraints, subscription)
                if node is not None:
                    return node
        return None

    def covered_by(self, node: Node[K]) -> list[Node[K]]:
        """The announced nodes that the node covers."""
        fewest: dict[Node[K], None] | None = None
        for name, constraint in node.subscription.constraints:
            place = (name, constraint) if isinstance(constraint, Exactly) else (name, None)
            nodes = self._announced.get(place)
            if nodes is None:
                return []
            fewest = nodes if fewest is None or len(nodes) < len(fewest) else fewest
        return [other for other in fewest or () if node.subscription.covers(other.subscription)]

    def _open(self, names: Names, values: tuple[Value, ...]) -> Cell[K]:
        table = self._tables.get(names)
        if table is None:
            table = self._tables[names] = {}
            self._projections.clear()
        cell = table.get(values)
        if cell is None:
            cell = table[values] = Cell()
        return cell

    def _close(self, names: Names, values: tuple[Value, ...], cell: Cell[K]) -> None:
        if cell.is_empty():
            table = self._tables[names]
            del table[values]
            if not table:
                del self._tables[names]
                self._projections.clear()

    def _project(self, names: Names) -> list[tuple[list[int], dict[tuple[Value, ...], Cell[K]]]]:
        """The tables whose equalities are among `names`, each with where its values stand; the fewest first."""
        positions = {name: at for at, name in enumerate(names)}
        inside = [known for known in self._tables if all(name in positions for name in known)]
        return [([positions[name] for name in known], self._tables[known]) for known in sorted(inside, key=len)]


def _witness_in(cell: Cell[K], constraints: Constraints, subscription: Subscription) -> Node[K] | None:
    plain = cell.plain
    if plain is not None and len(plain.subscription.constraints) < len(constraints):
        return plain
    for chain in cell.chains.values():
        constraint = constraints.get(chain.attribute)
        if constraint is not None and chain.covers(constraint):
            extreme = chain.extreme()
            if extreme.subscription != subscription:
                return extreme
    for attributes, bag in cell.bags.items():
        theirs = [constraints.get(name) for name in attributes]
        if None in theirs:
            continue
        for node, mine in bag.items():
            covered = all(a.covers(b) for a, b in zip(mine, theirs, strict=True) if b is not None)
            if covered and node.subscription != subscription:
                return node
    return None


def _equalities(subscription: Subscription) -> tuple[Names, tuple[Value, ...]]:
    equalities = [(name, c) for name, c in subscription.constraints if isinstance(c, Exactly)]
    return tuple([(name, c.kind) for name, c in equalities]), tuple([c.value for _, c in equalities])


def _rest(subscription: Subscription) -> list[tuple[str, AnyConstraint]]:
    return [(name, c) for name, c in subscription.constraints if not isinstance(c, Exactly)]


def _places(subscription: Subscription) -> list[tuple[str, object]]:
    """Under what an announced subscription is found: each equality, and each constrained attribute."""
    places: list[tuple[str, object]] = []
    for name, constraint in subscription.constraints:
        if isinstance(constraint, Exactly):
            places.append((name, constraint))
        places.append((name, None))
    return places
