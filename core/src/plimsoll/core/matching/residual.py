"""Subscriptions outside the templates: filed under one access predicate, with the rest checked one by one.

Laws. Every subscription here lies in the buckets of exactly one of its constraints, the rarest that can be looked up:
an equality, each value of an `in`, a prefix, a suffix, a contained piece, else the mere presence of an attribute. A
publication opens the buckets that its values name and checks the remaining constraints of each subscription in them.
A publication opens at most one bucket of a subscription, so no id is found twice.
Pieces of strings are looked up by their first characters, of a few lengths only: a publication asks for each length at
each place of its value.
"""

import operator
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Any

from plimsoll.core.predicates import Attributes, Exactly, Interval, OneOf, Present, Subscription, Text
from plimsoll.core.predicates.constraints import AnyConstraint, kind_of

Id = Hashable
ResidualCheck = tuple[str, Callable[[Any, Any], bool], Any]  # attribute, test, operand
SCAN_CHARACTERS = 8  # of a value that is looked at by place in the time that one piece takes to be searched for
MOST_BUCKETS = 16  # an `in` of more values is checked, not looked up
KEY_LENGTHS = (1, 2, 4, 8, 16, 32)  # of a piece of a string, as far as it is looked up


class AccessBucket:
    """The subscriptions of one access predicate: id -> remaining checks."""

    __slots__ = ("key", "rows", "table")

    def __init__(self, table: "AccessLookup", key: object) -> None:
        self.table = table
        self.key = key
        self.rows: dict[Id, tuple[ResidualCheck, ...]] = {}


class AccessLookup:
    """All buckets of one kind of look-up on one attribute; `length` is that of a string piece."""

    __slots__ = ("attribute", "buckets", "how", "length")

    def __init__(self, how: str, attribute: str, length: int) -> None:
        self.how = how
        self.attribute = attribute
        self.length = length
        self.buckets: dict[object, AccessBucket] = {}

    def opened(self, value: object) -> Iterator[AccessBucket]:
        """The buckets that a value of the attribute opens, each once."""
        if self.how == "contains" and isinstance(value, str) and len(self.buckets) * SCAN_CHARACTERS < len(value):
            # Few pieces and a long value: to search for each costs less than to look at each place.
            yield from [bucket for key, bucket in self.buckets.items() if str(key) in value]
            return
        for key in self._keys(value):
            bucket = self.buckets.get(key)
            if bucket is not None:
                yield bucket

    def _keys(self, value: object) -> tuple[object, ...] | set[str]:
        if self.how == "present":
            return (None,)
        if self.how in ("string", "number", "boolean"):
            return (value,) if kind_of(value) == self.how else ()
        if not isinstance(value, str) or len(value) < self.length:
            return ()
        if self.how == "prefix":
            return (value[: self.length],)
        if self.how == "suffix":
            return (value[-self.length :],)
        return {value[at : at + self.length] for at in range(len(value) - self.length + 1)}


class ResidualIndex:
    """The subscriptions that are checked one by one."""

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, str, int], AccessLookup] = {}
        self._buckets_of: dict[Id, tuple[AccessBucket, ...]] = {}
        self._compilable: dict[Id, None] = {}
        self._bounded: dict[str, int] = {}  # attribute -> rows with a number bound on it that is checked

    def __len__(self) -> int:
        return len(self._buckets_of)

    def __contains__(self, item: Id) -> bool:
        return item in self._buckets_of

    @property
    def compilable(self) -> int:
        """How many subscriptions could become rows of arrays."""
        return len(self._compilable)

    @staticmethod
    def is_compilable(subscription: Subscription) -> bool:
        """Whether every constraint has a form as tests of columns: no string operator but `=` and `!=`, no `in`."""
        for _, constraint in subscription.constraints:
            form = constraint.__class__
            if form is Exactly or form is Interval or form is Present:
                continue
            if not isinstance(constraint, Text) or constraint.prefix or constraint.suffix or constraint.pieces:
                return False
        return True

    def take_compilable(self, most: int) -> list[Id]:
        """Remove and return up to `most` ids that could become rows of arrays."""
        taken = list(islice(self._compilable, most))
        for item in taken:
            self.remove(item)
        return taken

    def add(self, item: Id, subscription: Subscription, seen: Callable[[str, object], int]) -> bool:
        """File a subscription; `seen` counts an equality's subscriptions. True if existing plans are outdated."""
        name, constraint = _access(subscription, seen)
        checks = tuple(
            check for other, rest in subscription.constraints for check in _checks(other, rest, looked_up=other == name)
        )
        buckets, before = [], len(self._lookups)
        for how, length, key in _keys(constraint):
            place = (how, name, length)
            lookup = self._lookups.get(place)
            if lookup is None:
                lookup = self._lookups[place] = AccessLookup(how, name, length)
            bucket = lookup.buckets.get(key)
            if bucket is None:
                bucket = lookup.buckets[key] = AccessBucket(lookup, key)
            bucket.rows[item] = checks
            buckets.append(bucket)
        self._buckets_of[item] = tuple(buckets)
        if self.is_compilable(subscription):
            self._compilable[item] = None
        new_bound = False
        for attribute in {attribute for attribute, test, _ in checks if test in _ORDER}:
            count = self._bounded.get(attribute, 0)
            self._bounded[attribute] = count + 1
            new_bound = new_bound or count == 0
        return new_bound or len(self._lookups) > before

    def remove(self, item: Id) -> bool:
        """Remove a subscription. True if a look-up is gone with it."""
        gone = False
        self._compilable.pop(item, None)
        checks: tuple[ResidualCheck, ...] = ()
        for bucket in self._buckets_of.pop(item):
            checks = bucket.rows.pop(item)
            if not bucket.rows:
                lookup = bucket.table
                del lookup.buckets[bucket.key]
                if not lookup.buckets:
                    del self._lookups[lookup.how, lookup.attribute, lookup.length]
                    gone = True
        for attribute in {attribute for attribute, test, _ in checks if test in _ORDER}:
            self._bounded[attribute] -= 1
            if not self._bounded[attribute]:
                del self._bounded[attribute]
        return gone

    def plan(self, attributes: frozenset[str]) -> "ResidualPlan":
        """The look-ups for publications with these attributes."""
        lookups = [lookup for lookup in self._lookups.values() if lookup.attribute in attributes]
        return ResidualPlan(
            tuple((lookup.attribute, lookup.buckets) for lookup in lookups if lookup.how == "string"),
            tuple(lookup for lookup in lookups if lookup.how != "string"),
            tuple(attribute for attribute in self._bounded if attribute in attributes),
        )


class ResidualPlan:
    """The look-ups that apply to one set of attributes. Valid until a look-up comes or goes."""

    __slots__ = ("bounded", "others", "strings")

    def __init__(
        self,
        strings: tuple[tuple[str, dict[object, AccessBucket]], ...],
        others: tuple[AccessLookup, ...],
        bounded: tuple[str, ...],
    ) -> None:
        self.strings = strings
        self.others = others
        self.bounded = bounded

    def opened(self, attributes: Attributes) -> list[AccessBucket]:
        """The buckets that a publication opens."""
        buckets = [
            bucket for attribute, table in self.strings if (bucket := table.get(attributes[attribute])) is not None
        ]
        for lookup in self.others:
            buckets.extend(lookup.opened(attributes[lookup.attribute]))
        return buckets

    def match(self, attributes: Attributes, out: list[Id], subscriptions: dict[Id, Subscription]) -> None:
        """Append the ids of the subscriptions that match."""
        for attribute in self.bounded:
            kind = attributes[attribute].__class__
            if kind is bool:  # it would compare as a number: ask the subscriptions themselves
                for bucket in self.opened(attributes):
                    out.extend(item for item in bucket.rows if subscriptions[item].matches(attributes))
                return
        append = out.append
        for bucket in self.opened(attributes):
            for item, checks in bucket.rows.items():
                try:
                    for attribute, test, operand in checks:
                        if not test(attributes[attribute], operand):
                            break
                    else:
                        append(item)
                except (KeyError, TypeError):  # the attribute is missing, or a string where a number is asked for
                    continue


def _access(subscription: Subscription, seen: Callable[[str, object], int]) -> tuple[str, AnyConstraint]:
    """The constraint to look a subscription up by: the rarest equality, else the most selective of the others."""
    equalities = [(name, c) for name, c in subscription.constraints if isinstance(c, Exactly)]
    if equalities:
        return min(equalities, key=lambda pair: seen(pair[0], pair[1].value))
    return min(subscription.constraints, key=lambda pair: _rank(pair[1]))


def _rank(constraint: AnyConstraint) -> tuple[int, int]:
    if isinstance(constraint, OneOf) and len(constraint.values) <= MOST_BUCKETS and constraint.kind != "boolean":
        return 0, len(constraint.values)
    if isinstance(constraint, Text):
        longest = max(len(constraint.prefix), len(constraint.suffix), *map(len, constraint.pieces), 0)
        return (1, -longest) if longest else (2, 0)
    return 2, 0


def _keys(constraint: AnyConstraint) -> list[tuple[str, int, object]]:
    """(kind of look-up, length of the piece, value) of the buckets of a constraint."""
    if isinstance(constraint, Exactly):
        return [(constraint.kind, 0, constraint.value)]
    if isinstance(constraint, OneOf) and _rank(constraint)[0] == 0:
        return [(constraint.kind, 0, value) for value in constraint.values]
    if isinstance(constraint, Text) and _rank(constraint)[0] == 1:
        pieces = [("prefix", constraint.prefix), ("suffix", constraint.suffix)]
        pieces += [("contains", piece) for piece in sorted(constraint.pieces)]
        how, piece = max(pieces, key=lambda pair: len(pair[1]))
        length = max(length for length in KEY_LENGTHS if length <= len(piece))
        return [(how, length, piece[-length:] if how == "suffix" else piece[:length])]
    return [("present", 0, None)]


def _checks(name: str, constraint: AnyConstraint, *, looked_up: bool) -> list[ResidualCheck]:
    """The remaining checks of a constraint, in the cheapest form."""
    if looked_up and (isinstance(constraint, Exactly) or (isinstance(constraint, OneOf) and _rank(constraint)[0] == 0)):
        return []
    if isinstance(constraint, Exactly) and constraint.kind == "string":
        return [(name, operator.eq, constraint.value)]
    if not isinstance(constraint, Interval) or constraint.without:
        return [(name, _accepted, constraint)]
    checks: list[ResidualCheck] = []
    if constraint.low > float("-inf") or constraint.low_open:
        checks.append((name, operator.gt if constraint.low_open else operator.ge, constraint.low))
    if constraint.high < float("inf") or constraint.high_open:
        checks.append((name, operator.lt if constraint.high_open else operator.le, constraint.high))
    return checks or [(name, operator.ge, constraint.low)]


def _accepted(value: object, constraint: AnyConstraint) -> bool:
    return constraint.accepts(value)


_ORDER = frozenset((operator.gt, operator.ge, operator.lt, operator.le))
