"""Templates as hash tables of cells: one look-up per set of equalities, one bisection per bound.

Laws. A table maps the values of a set of equalities to a cell. A cell holds the ids of the subscriptions without a
bound, and one leaf per bound: keys in ascending order beside a flat array of ids, so that the matches of a publication
are a slice, and equal subscriptions a run of it. Leaves grow in place; one that passes `BLOCK_LIMIT` is split into
blocks, so that an insertion moves little memory. Empty leaves, cells and tables are removed.
Keys are packed doubles or integers, which fit into a few cache lines, or Python numbers if one key is neither: in a
large index a bisection waits for memory, not for comparisons.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable
from operator import eq, itemgetter
from typing import Any, TypeAlias

from plimsoll.core.matching.template import BOUND_CUTS, BoundSide, EqualityNames, TemplateFiling

Id = Hashable
IdSlice = tuple[list[Any], int, int]  # (ids of a leaf, start, stop)
Keys: TypeAlias = "list[float] | array[float]"  # in quotes: before Python 3.12 an array has no subscript
BLOCK_LIMIT = 8192


class LeafBlocks:
    """The keys and ids of a long leaf, in blocks of between 1 and `BLOCK_LIMIT` entries, in ascending key order."""

    __slots__ = ("ids", "keys", "lows")

    def __init__(self, keys: Keys, ids: list[Id]) -> None:
        half = BLOCK_LIMIT // 2
        cuts = range(0, len(keys), half)
        self.keys: list[Keys] = [keys[at : at + half] for at in cuts]
        self.ids = [ids[at : at + half] for at in cuts]
        self.lows = [block[0] for block in self.keys]

    def __len__(self) -> int:
        return sum(map(len, self.ids))

    def slices(self, cut: Callable[..., int], head: bool, value: float) -> list[IdSlice]:
        """The slices of ids whose bound the value satisfies. `value` is not NaN; the outermost slices may be empty."""
        # The cut lies in the last block that begins before it.
        at = max(cut(self.lows, value) - 1, 0)
        inner = cut(self.keys[at], value)
        if head:
            return [(ids, 0, len(ids)) for ids in self.ids[:at]] + [(self.ids[at], 0, inner)]
        return [(self.ids[at], inner, len(self.ids[at]))] + [(ids, 0, len(ids)) for ids in self.ids[at + 1 :]]

    def insert(self, key: float, item: Id) -> None:
        at = max(bisect_right(self.lows, key) - 1, 0)
        ids = self.ids[at]
        keys = self.keys[at] = _widened_keys(key, self.keys[at])
        inner = bisect_right(keys, key)
        keys.insert(inner, key)
        ids.insert(inner, item)
        self.lows[at] = keys[0]
        if len(keys) > BLOCK_LIMIT:
            half = len(keys) // 2
            self.keys[at : at + 1] = [keys[:half], keys[half:]]
            self.ids[at : at + 1] = [ids[:half], ids[half:]]
            self.lows[at : at + 1] = [keys[0], keys[half]]

    def delete(self, key: float, item: Id) -> None:
        at = max(bisect_left(self.lows, key) - 1, 0)
        while True:  # equal keys may run over several blocks
            keys, ids = self.keys[at], self.ids[at]
            found = _position(keys, ids, key, item)
            if found >= 0:
                break
            at += 1
        del keys[found], ids[found]
        if keys:
            self.lows[at] = keys[0]
        else:
            del self.keys[at], self.ids[at], self.lows[at]


class BoundLeaf:
    """One bound of a cell: (attribute, side) with its keys and ids, flat or in blocks."""

    __slots__ = ("attribute", "blocks", "cut", "head", "ids", "keys", "side")

    def __init__(self, attribute: str, side: BoundSide) -> None:
        self.attribute = attribute
        self.side = side
        self.cut = BOUND_CUTS[side]
        self.head = side <= BoundSide.AT_LEAST
        self.keys: Keys = array("d")
        self.ids: list[Id] = []
        self.blocks: LeafBlocks | None = None

    def probe(self) -> "LeafProbe":
        """The leaf as the hot path reads it."""
        return self.attribute, self.cut, self.head, self.keys, self.ids, self.blocks

    def insert(self, key: float, item: Id) -> bool:
        """Insert an entry. True if the layout changed."""
        if self.blocks is not None:
            self.blocks.insert(key, item)
            return False
        before, self.keys = self.keys, _widened_keys(key, self.keys)
        at = bisect_right(self.keys, key)
        self.keys.insert(at, key)
        self.ids.insert(at, item)
        return self._split() or self.keys is not before

    def extend(self, pairs: Iterable[tuple[float, Id]]) -> None:
        """Insert many: one sort instead of many insertions."""
        keys, ids = list(self.keys), self.ids
        if self.blocks is not None:
            keys = [key for block in self.blocks.keys for key in block]
            ids = [item for block in self.blocks.ids for item in block]
        merged = list(zip(keys, ids, strict=True))
        merged.extend(pairs)
        merged.sort(key=_key)
        self.keys, self.ids, self.blocks = _packed([key for key, _ in merged]), [item for _, item in merged], None
        self._split()

    def delete(self, key: float, item: Id) -> bool:
        """Delete an entry. True if the layout changed: the leaf is empty."""
        if self.blocks is not None:
            self.blocks.delete(key, item)
            if self.blocks.keys:
                return False
            self.blocks = None
            return True
        at = _position(self.keys, self.ids, key, item)
        del self.keys[at], self.ids[at]
        return not self.keys

    def __len__(self) -> int:
        return len(self.ids) if self.blocks is None else len(self.blocks)

    def _split(self) -> bool:
        if len(self.keys) <= BLOCK_LIMIT:
            return False
        self.blocks = LeafBlocks(self.keys, self.ids)
        self.keys, self.ids = array("d"), []
        return True


# (attribute, how to cut, whether the head is satisfied, keys, ids, blocks in their place)
LeafProbe = tuple[str, Callable[..., int], bool, Keys, list[Any], LeafBlocks | None]


class TemplateCell:
    """The subscriptions of one set of equality values: ids without a bound, and the leaves."""

    __slots__ = ("ids", "leaves", "probes")

    def __init__(self) -> None:
        self.ids: list[Id] = []
        self.leaves: tuple[BoundLeaf, ...] = ()
        self.probes: tuple[LeafProbe, ...] = ()

    def leaf(self, attribute: str, side: BoundSide) -> BoundLeaf | None:
        for leaf in self.leaves:
            if leaf.attribute == attribute and leaf.side == side:
                return leaf
        return None

    def open_leaf(self, attribute: str, side: BoundSide) -> BoundLeaf:
        leaf = self.leaf(attribute, side)
        if leaf is None:
            leaf = BoundLeaf(attribute, side)
            self.leaves = (*self.leaves, leaf)
            self.refresh()
        return leaf

    def refresh(self) -> None:
        """Rebuild the probes, after a leaf was added, removed or changed its layout."""
        self.probes = tuple([leaf.probe() for leaf in self.leaves])


class TemplateTable:
    """The cells of one set of equalities."""

    __slots__ = ("cells", "getter", "guard", "names")

    def __init__(self, names: EqualityNames) -> None:
        self.names = names
        self.cells: dict[object, TemplateCell] = {}
        attributes = tuple(name for name, _ in names)
        self.getter: Callable[[Any], Any] = itemgetter(*attributes) if attributes else _nothing
        # A string equals only strings, but 1 == True: other kinds are checked again after a hit.
        self.guard = tuple((name, kind) for name, kind in names if kind != "string")

    def add(self, filing: TemplateFiling, item: Id) -> None:
        (_, attribute, side), key, bound = filing
        cell = self._open(key)
        if not attribute:
            cell.ids.append(item)
        elif cell.open_leaf(attribute, side).insert(bound, item):
            cell.refresh()

    def extend(self, key: object, attribute: str, side: BoundSide, pairs: list[tuple[float, Id]]) -> None:
        """Add many (bound, id) pairs of one template and one key."""
        cell = self._open(key)
        if attribute:
            cell.open_leaf(attribute, side).extend(pairs)
            cell.refresh()
        else:
            cell.ids.extend([item for _, item in pairs])

    def remove(self, filing: TemplateFiling, item: Id) -> None:
        (_, attribute, side), key, bound = filing
        cell = self.cells[key]
        leaf = cell.leaf(attribute, side) if attribute else None
        if leaf is None:
            del cell.ids[cell.ids.index(item)]
        elif leaf.delete(bound, item):
            cell.leaves = tuple(other for other in cell.leaves if len(other))
            cell.refresh()
        if not cell.ids and not cell.leaves:
            del self.cells[key]

    def _open(self, key: object) -> TemplateCell:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = TemplateCell()
        return cell


def _packed(keys: list[float]) -> Keys:
    """The keys as 64-bit integers if all fit, as doubles if each equals one, else unchanged."""
    try:
        if all(key.__class__ is int for key in keys):
            return array("q", keys)
        doubles = array("d", keys)
    except OverflowError:
        return keys
    return doubles if all(map(eq, doubles, keys)) else keys


def _widened_keys(key: float, keys: Keys) -> Keys:
    """The keys, in a wider form if the current one cannot hold the new key."""
    if isinstance(keys, list):
        return keys
    form = _packed([*keys[:1], key])
    if keys and isinstance(form, array) and form.typecode == keys.typecode:
        return keys
    return _packed([*keys, key])[:-1]


def _position(keys: Keys, ids: list[Id], key: float, item: Id) -> int:
    """The position of (key, id), or -1."""
    try:
        return ids.index(item, bisect_left(keys, key), bisect_right(keys, key))
    except ValueError:
        return -1


def _key(pair: tuple[float, Id]) -> float:
    return pair[0]


def _nothing(attributes: object) -> tuple[()]:
    return ()
