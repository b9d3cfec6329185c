"""The tables of a covering set: which members can cover a subscription, and which members it can cover.

Laws. A coverer constrains only attributes that the covered one constrains too, and has only equalities that the covered
one has too. So coverers of a subscription are found by its equalities, projected on each set of equalities in use: one
hash look-up per such set. Within a cell, bounds on one attribute and side form a chain, of which the loosest covers the
others: the extreme answers for the whole chain. Other residuals are compared one by one: the announced ones on some of
the subscription's attributes whose first constraint spans no less (`spans`). Covered members are found the other way
round: they have all the subscription's equalities and constrain all its attributes.

A search has a bound of work (`SEARCH_UNITS`), since subscriptions come from strangers: where it runs out, a coverer may
be missed. That costs an announcement more than needed, and never one that is needed.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain as chained
from itertools import combinations, islice
from typing import Generic, TypeAlias, TypeVar

from plimsoll.core.covering.spans import SpanIndex
from plimsoll.core.matching.template import BoundSide, EqualityNames, template_filing
from plimsoll.core.predicates import Exactly, Interval, OneOf, Subscription, Text, Value
from plimsoll.core.predicates.constraints import AnyConstraint

K = TypeVar("K", bound=Hashable)
Constraints = dict[str, AnyConstraint]

SEARCH_UNITS = 4096
"""Bound of a search for a coverer; a unit is some quarter of a microsecond, and a usual comparison has five to ten."""
CANDIDATES_AT_MOST = 65_536
MEETINGS_A_UNIT = 8
"""Candidates that are looked up under one more constraint."""
MEETINGS_AT_MOST = 16
"""Constraints under which candidates are looked up, those of the fewest first: more would leave out hardly any."""
TABLES_AT_MOST = 256
"""Tables, or sets of attributes in one, that a search looks into."""


class SearchBudget:
    """What one search may still spend, in units."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, units: int) -> bool:
        """Take this from the budget; whether it was there."""
        self.spent += units
        return self.spent <= SEARCH_UNITS


class CoverNode(Generic[K]):
    """A distinct subscription: the keys that have it, and its witness while it is not announced."""

    __slots__ = (
        "announced", "dependents", "keys", "pieces", "representative", "serial", "size", "subscription", "witness",
    )  # fmt: skip

    def __init__(self, subscription: Subscription, serial: int) -> None:
        self.subscription = subscription
        self.serial = serial  # no two nodes of a set have the same
        self.size, self.pieces = comparison_size(subscription)
        self.keys: dict[K, None] = {}
        self.announced = False
        self.representative: K | None = None
        self.witness: CoverNode[K] | None = None
        self.dependents: dict[CoverNode[K], None] = {}


class BoundChain(Generic[K]):
    """Bounds on one side of one attribute, ascending; the loosest is the extreme."""

    __slots__ = ("attribute", "bounds", "nodes", "side")

    def __init__(self, attribute: str, side: BoundSide) -> None:
        self.attribute = attribute
        self.side = side
        self.bounds: list[float] = []
        self.nodes: list[CoverNode[K]] = []

    def extreme(self) -> CoverNode[K]:
        return self.nodes[0] if self.side <= BoundSide.AT_LEAST else self.nodes[-1]

    def insert(self, bound: float, node: CoverNode[K]) -> None:
        at = bisect_right(self.bounds, bound)
        self.bounds.insert(at, bound)
        self.nodes.insert(at, node)

    def remove(self, bound: float) -> None:
        at = bisect_left(self.bounds, bound)  # distinct subscriptions, so distinct bounds
        del self.bounds[at], self.nodes[at]

    def covers(self, constraint: AnyConstraint) -> bool:
        """Whether the extreme's bound admits all that the constraint admits."""
        bound = self.bounds[0] if self.side <= BoundSide.AT_LEAST else self.bounds[-1]
        if isinstance(constraint, Interval):
            if self.side == BoundSide.ABOVE:
                return constraint.low > bound or (constraint.low == bound and constraint.low_open)
            if self.side == BoundSide.AT_LEAST:
                return constraint.low >= bound
            if self.side == BoundSide.BELOW:
                return constraint.high < bound or (constraint.high == bound and constraint.high_open)
            return constraint.high <= bound
        mine = dict(self.extreme().subscription.constraints)[self.attribute]
        return mine.covers(constraint)


class FrontierCell(Generic[K]):
    """The nodes of one set of equality values."""

    __slots__ = ("bags", "chains", "plain")

    def __init__(self) -> None:
        self.plain: CoverNode[K] | None = None  # the equalities alone
        self.chains: dict[tuple[str, BoundSide], BoundChain[K]] = {}
        # Announced ones with another residual by its attributes, each with the residual.
        self.bags: dict[tuple[str, ...], SpanIndex[tuple[CoverNode[K], tuple[AnyConstraint, ...]]]] = {}

    def is_empty(self) -> bool:
        return self.plain is None and not self.chains and not self.bags


Projection: TypeAlias = tuple[list[int], dict[tuple[Value, ...], FrontierCell[K]]]
"""The positions of a table's equalities among those of a subscription, and the table's cells."""
SUBSETS_LISTED = 9
"""Equalities of a subscription below which all sets of them may be listed."""


class CoverFrontier(Generic[K]):
    """The nodes of a covering set, indexed for both questions."""

    def __init__(self) -> None:
        self._tables: dict[EqualityNames, dict[tuple[Value, ...], FrontierCell[K]]] = {}
        self._projections: dict[EqualityNames, list[Projection[K]]] = {}
        # Announced nodes by each equality, and by each attribute that they constrain.
        self._equal: dict[tuple[str, AnyConstraint], dict[float, CoverNode[K]]] = {}  # by serial
        self._constrained: dict[str, SpanIndex[CoverNode[K]]] = {}

    def insert(self, node: CoverNode[K]) -> bool:
        """Add a node. False if another node of its chain covers it: it then needs no witness of its own."""
        filing = template_filing(node.subscription)
        if filing is None:
            return True
        cell = self._open(*_equalities(node.subscription))
        (_, attribute, side), _, bound = filing
        if not attribute:
            cell.plain = node
            return True
        chain = cell.chains.get((attribute, side))
        if chain is None:
            chain = cell.chains[attribute, side] = BoundChain(attribute, side)
        chain.insert(bound, node)
        return chain.extreme() is node

    def remove(self, node: CoverNode[K]) -> CoverNode[K] | None:
        """Remove a node, withdrawn before. Returns the next extreme of its chain, if the node was the extreme."""
        filing = template_filing(node.subscription)
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

    def chain_extreme(self, node: CoverNode[K]) -> CoverNode[K] | None:
        """The node that covers this one in its chain, if another does."""
        filing = template_filing(node.subscription)
        if filing is None or not filing[0][1]:
            return None
        names, values = _equalities(node.subscription)
        extreme = self._tables[names][values].chains[filing[0][1:]].extreme()
        return None if extreme is node else extreme

    def is_extreme(self, node: CoverNode[K]) -> bool:
        """Whether no other node of its chain covers it."""
        return self.chain_extreme(node) is None

    def announce(self, node: CoverNode[K]) -> None:
        for name, constraint in node.subscription.constraints:
            if isinstance(constraint, Exactly):
                self._equal.setdefault((name, constraint), {})[node.serial] = node
            spans = self._constrained.get(name)
            if spans is None:
                spans = self._constrained[name] = SpanIndex()
            spans.add(constraint, node.serial, node)
        if template_filing(node.subscription) is None:
            names, residual = _residual(node.subscription)
            cell = self._open(*_equalities(node.subscription))
            cell.bags.setdefault(names, SpanIndex()).add(residual[0], node.serial, (node, residual))

    def withdraw(self, node: CoverNode[K]) -> None:
        for name, constraint in node.subscription.constraints:
            if isinstance(constraint, Exactly):
                nodes = self._equal[name, constraint]
                del nodes[node.serial]
                if not nodes:
                    del self._equal[name, constraint]
            spans = self._constrained[name]
            spans.remove(constraint, node.serial)
            if not spans.items:
                del self._constrained[name]
        if template_filing(node.subscription) is None:
            names, values = _equalities(node.subscription)
            cell = self._tables[names][values]
            attributes, residual = _residual(node.subscription)
            cell.bags[attributes].remove(residual[0], node.serial)
            if not len(cell.bags[attributes]):
                del cell.bags[attributes]
            self._close(names, values, cell)

    def witness(
        self, subscription: Subscription, budget: SearchBudget | None = None, size: int = 0
    ) -> CoverNode[K] | None:
        """A node that covers the subscription without being equal to it, or None. `size`: of a node, if it has one."""
        names, values = _equalities(subscription)
        constraints: Constraints = dict(subscription.constraints)
        size = size or comparison_size(subscription)[0]
        budget = budget or SearchBudget()
        for at, cells in self._tables_within(names):
            cell = cells.get(tuple([values[i] for i in at]))
            if cell is not None:
                node = _witness_in(cell, constraints, subscription, size, budget)
                if node is not None:
                    return node
        return None

    def candidate_covered(self, node: CoverNode[K], budget: SearchBudget) -> list[CoverNode[K]]:
        """The announced nodes that the node covers, and some others."""
        constraints = node.subscription.constraints
        places: list[dict[float, CoverNode[K]]] = []
        for name, constraint in constraints:
            if constraint.__class__ is Exactly:
                equal = self._equal.get((name, constraint))
            else:
                spans = self._constrained.get(name)
                equal = spans.items if spans is not None else None
            if not equal:
                return []
            places.append(equal)
        found: Iterable[CoverNode[K]]
        if any(isinstance(constraint, Exactly) for _, constraint in constraints):
            places.sort(key=len)
            serials = set(islice(places[0], CANDIDATES_AT_MOST))
            for place in places[1:MEETINGS_AT_MOST]:
                if not serials or not budget.spend(1 + len(serials) // MEETINGS_A_UNIT):
                    break
                serials = {serial for serial in serials if serial in place}
            found = [places[0][serial] for serial in serials]
        else:
            name, constraint = min(constraints, key=lambda pair: len(self._constrained[pair[0]]))
            found = self._constrained[name].candidate_covered(constraint)
        return [other for other in islice(found, CANDIDATES_AT_MOST) if other is not node]

    def _open(self, names: EqualityNames, values: tuple[Value, ...]) -> FrontierCell[K]:
        table = self._tables.get(names)
        if table is None:
            table = self._tables[names] = {}
            self._projections.clear()
        cell = table.get(values)
        if cell is None:
            cell = table[values] = FrontierCell()
        return cell

    def _close(self, names: EqualityNames, values: tuple[Value, ...], cell: FrontierCell[K]) -> None:
        if cell.is_empty():
            table = self._tables[names]
            del table[values]
            if not table:
                del self._tables[names]
                self._projections.clear()

    def _tables_within(self, names: EqualityNames) -> Iterable[Projection[K]]:
        """The tables whose equalities are among `names`, each with the positions of its values; the fewest first."""
        if len(names) < SUBSETS_LISTED and 2 ** len(names) < len(self._tables):
            return self._listed_subsets(names)  # many tables: they are asked for, and not looked through
        projections = self._projections.get(names)
        if projections is None:
            if len(self._projections) >= TABLES_AT_MOST:
                self._projections.clear()
            projections = self._projections[names] = self._project(names)
        return projections

    def _listed_subsets(self, names: EqualityNames) -> Iterator[Projection[K]]:
        for size in range(len(names) + 1):
            for at in combinations(range(len(names)), size):
                cells = self._tables.get(tuple([names[i] for i in at]))
                if cells is not None:
                    yield list(at), cells

    def _project(self, names: EqualityNames) -> list[Projection[K]]:
        positions = {name: at for at, name in enumerate(names)}
        seen = islice(self._tables, TABLES_AT_MOST)
        inside = [known for known in seen if all(name in positions for name in known)]
        return [([positions[name] for name in known], self._tables[known]) for known in sorted(inside, key=len)]


def _witness_in(
    cell: FrontierCell[K], constraints: Constraints, subscription: Subscription, size: int, budget: SearchBudget
) -> CoverNode[K] | None:
    plain = cell.plain
    if plain is not None and len(plain.subscription.constraints) < len(constraints):
        return plain
    for chain in _chains_on(cell, constraints):
        if chain.covers(constraints[chain.attribute]):
            extreme = chain.extreme()
            if extreme.subscription != subscription:
                return extreme
    for names in _within(constraints, cell.bags) if cell.bags else ():
        theirs = [constraints[name] for name in names]
        for node, mine in cell.bags[names].candidate_coverers(theirs[0]):
            if not budget.spend(node.size + node.pieces * size):
                return None
            covers = all(a.covers(b) for a, b in zip(mine, theirs, strict=True))
            if covers and node.subscription != subscription:
                return node
    return None


def _chains_on(cell: FrontierCell[K], constraints: Constraints) -> Iterable[BoundChain[K]]:
    """The chains on an attribute that is constrained: by attribute where there are more chains than that."""
    chains = cell.chains
    if len(chains) <= len(BoundSide) * len(constraints):
        return [chain for chain in chains.values() if chain.attribute in constraints]
    found = (chains.get((name, side)) for name in constraints for side in BoundSide)
    return [chain for chain in found if chain is not None]


def comparison_size(subscription: Subscription) -> tuple[int, int]:
    """What a comparison with it costs: constraints, values and holes seen, and pieces that each is searched for."""
    size, pieces = len(subscription.constraints), 1
    for _, constraint in subscription.constraints:
        if isinstance(constraint, Interval):
            size += len(constraint.without)
        elif isinstance(constraint, OneOf):
            size += len(constraint.values)
        elif isinstance(constraint, Text):
            size += len(constraint.without) + len(constraint.pieces)
            pieces += len(constraint.pieces)
    return size, pieces


def _within(constraints: Constraints, bags: Mapping[tuple[str, ...], object]) -> list[tuple[str, ...]]:
    """The sets of names in use whose names are all constrained."""
    if len(constraints) < SUBSETS_LISTED and 2 ** len(constraints) <= len(bags):
        subsets = (combinations(constraints, size) for size in range(1, len(constraints) + 1))
        return [names for names in chained.from_iterable(subsets) if names in bags]
    return [names for names in islice(bags, TABLES_AT_MOST) if all(map(constraints.__contains__, names))]


def _equalities(subscription: Subscription) -> tuple[EqualityNames, tuple[Value, ...]]:
    equalities = [(name, c) for name, c in subscription.constraints if isinstance(c, Exactly)]
    return tuple([(name, c.kind) for name, c in equalities]), tuple([c.value for _, c in equalities])


def _residual(subscription: Subscription) -> tuple[tuple[str, ...], tuple[AnyConstraint, ...]]:
    """The attributes with constraints other than equalities, in order, and these constraints."""
    rest = [(name, c) for name, c in subscription.constraints if not isinstance(c, Exactly)]
    return tuple([name for name, _ in rest]), tuple([c for _, c in rest])
