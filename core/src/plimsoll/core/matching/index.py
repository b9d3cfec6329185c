"""The index: ids of the subscriptions that a publication matches.

Two tiers. Subscriptions of a template that is worth a probe of its own live in tables of cells (`cells`); the rest are
filed under their rarest predicate and checked one by one (`residual`). Which tables and look-ups can apply depends on
the attributes of a publication only, so it is planned once per attribute tuple and kept.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from plimsoll.core.matching.cells import Cell, Slice, Table
from plimsoll.core.matching.residual import Residual, ResidualPlan
from plimsoll.core.matching.shape import Filed, Names, Template, filed
from plimsoll.core.predicates import Attributes, Exactly, Subscription
from plimsoll.core.predicates.constraints import kind_of

Id = Hashable
MOST_PLANS = 1024  # attribute tuples whose plan is kept; past it all are dropped and planned anew
SMALLEST_TEMPLATE = 16  # members below which a template gets no table
PROBE_CANDIDATES = 1.5  # a table's probe costs about as much as checking this many candidates


class StaleResultError(RuntimeError):
    """A result of `match_groups` was used after the index had changed."""


class Groups:
    """The matching subscriptions as slices of the index's own leaves, without enumerating them.

    Valid until the next change of the index; using it later raises `StaleResultError`.
    """

    __slots__ = ("_generation", "_index", "_slices")

    def __init__(self, index: "Index", generation: int, slices: list[Slice]) -> None:
        self._index = index
        self._generation = generation
        self._slices = slices

    def slices(self) -> list[Slice]:
        """(ids of a leaf, start, stop), none empty. The ids belong to the index: read, never write."""
        if self._generation != self._index.generation:
            raise StaleResultError("the index has changed since this match; match again")
        return self._slices

    def count(self) -> int:
        """How many ids there are."""
        return sum(stop - start for _, start, stop in self.slices())

    def ids(self) -> list[Any]:
        """All ids, as a list of its own."""
        return [item for ids, start, stop in self.slices() for item in ids[start:stop]]

    def __len__(self) -> int:
        return len(self.slices())

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices())


class Index:
    """Subscriptions by id, asked which of them a publication matches. See docs/matching.md for costs."""

    def __init__(self) -> None:
        self.generation = 0
        self._subscriptions: dict[Id, Subscription] = {}
        self._tables: dict[Names, Table] = {}
        self._templates: dict[Template, dict[Id, Filed] | None] = {}  # None: promoted to a table
        self._residual = Residual()
        self._seen: dict[str, dict[object, int]] = {}  # attribute -> value -> subscriptions with that equality
        self._with: dict[str, int] = {}  # attribute -> subscriptions with any equality on it
        self._plans: dict[tuple[str, ...], tuple[tuple[Any, ...], ResidualPlan | None]] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, item: Id) -> bool:
        return item in self._subscriptions

    def add(self, item: Id, subscription: Subscription) -> None:
        """Put a subscription in. ValueError when the id is taken: `remove` it first."""
        if item in self._subscriptions:
            raise ValueError(
                f"id {item!r} is in the index already; remove it before adding another subscription under it"
            )
        self.generation += 1
        self._subscriptions[item] = subscription
        self._count(subscription, 1)
        filing = filed(subscription)
        if filing is None:
            self._add_residual(item, subscription)
            return
        members = self._templates.setdefault(filing.template, {})
        if members is None:
            self._tables[filing.template.names].add(filing, item)
            return
        members[item] = filing
        self._add_residual(item, subscription)
        if len(members) >= SMALLEST_TEMPLATE and not len(members) & (len(members) - 1) and self._worth(members):
            self._promote(filing.template, members)

    def remove(self, item: Id) -> None:
        """Take a subscription out. KeyError when the id is unknown."""
        subscription = self._subscriptions.pop(item)
        self.generation += 1
        self._count(subscription, -1)
        filing = filed(subscription)
        if filing is not None:
            members = self._templates[filing.template]
            if members is None:
                self._remove_filed(filing, item)
                return
            del members[item]
            if not members:
                del self._templates[filing.template]
        if self._residual.remove(item):
            self._plans.clear()

    def load(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Add many at once, faster than one by one. ValueError when an id is taken, with nothing added."""
        fresh: dict[Id, Subscription] = {}
        for item, subscription in items:
            if item in fresh or item in self._subscriptions:
                raise ValueError(f"id {item!r} is given twice or in the index already; nothing was loaded")
            fresh[item] = subscription
        for item, subscription in fresh.items():
            self.add(item, subscription)

    def match(self, attributes: Attributes) -> list[Any]:
        """Ids of the subscriptions that a publication with these attributes matches, in no particular order.

        The list is the caller's own: it holds what matched at the time of the call.
        """
        plan = self._plans.get(tuple(attributes))
        if plan is None:
            plan = self._plan(tuple(attributes))
        out: list[Id] = []
        for getter, find, guard in plan[0]:
            cell = find(getter(attributes))
            if cell is None or (guard and not _kinds_hold(guard, attributes)):
                continue
            out += cell.ids
            for leaf in cell.leaves:
                value = attributes.get(leaf.attribute)
                if _is_number(value):
                    for ids, start, stop in leaf.slices(value):
                        out += ids[start:stop]
        if plan[1] is not None:
            plan[1].match(attributes, out, self._subscriptions)
        return out

    def match_groups(self, attributes: Attributes) -> Groups:
        """The same as slices of leaves; residual matches make a slice of their own. Valid until the next change."""
        plan = self._plans.get(tuple(attributes))
        if plan is None:
            plan = self._plan(tuple(attributes))
        out: list[Slice] = []
        for getter, find, guard in plan[0]:
            cell: Cell | None = find(getter(attributes))
            if cell is None or (guard and not _kinds_hold(guard, attributes)):
                continue
            if cell.ids:
                out.append((cell.ids, 0, len(cell.ids)))
            for leaf in cell.leaves:
                value = attributes.get(leaf.attribute)
                if _is_number(value):
                    out += leaf.slices(value)  # type: ignore[arg-type]
        if plan[1] is not None:
            rest: list[Id] = []
            plan[1].match(attributes, rest, self._subscriptions)
            if rest:
                out.append((rest, 0, len(rest)))
        return Groups(self, self.generation, out)

    def stats(self) -> dict[str, int]:
        """Counts of what the index holds, for metrics and for the curious."""
        return {
            "subscriptions": len(self._subscriptions),
            "tables": len(self._tables),
            "cells": sum(len(table.cells) for table in self._tables.values()),
            "residual": len(self._residual),
            "plans": len(self._plans),
        }

    def _plan(self, names: tuple[str, ...]) -> tuple[tuple[Any, ...], ResidualPlan | None]:
        present = frozenset(names)
        tables = tuple(
            (table.getter, table.cells.get, table.guard)
            for table in self._tables.values()
            if all(name in present for name, _ in table.names)
        )
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        plan = self._plans[names] = (tables, self._residual.plan(present) if len(self._residual) else None)
        return plan

    def _add_residual(self, item: Id, subscription: Subscription) -> None:
        first = not len(self._residual)
        if self._residual.add(item, subscription, self._seen_with) or first:
            self._plans.clear()

    def _remove_filed(self, filing: Filed, item: Id) -> None:
        table = self._tables[filing.template.names]
        table.remove(filing, item)
        if not table.cells:
            del self._tables[filing.template.names]
            for template in [t for t in self._templates if t.names == filing.template.names]:
                if self._templates[template] is None:
                    del self._templates[template]
            self._plans.clear()

    def _promote(self, template: Template, members: dict[Id, Filed]) -> None:
        """Give a template its place in a table and move its members there."""
        table = self._tables.get(template.names)
        if table is None:
            table = self._tables[template.names] = Table(template.names)
        for item, filing in members.items():
            self._residual.remove(item)
            table.add(filing, item)
        self._templates[template] = None
        self._plans.clear()

    def _worth(self, members: dict[Id, Filed]) -> bool:
        """Whether a probe costs less than the members that a publication would otherwise have to check."""
        sample = list(members)[: 4 * SMALLEST_TEMPLATE]
        chance = sum(map(self._chance, sample)) / len(sample)
        return chance * len(members) > PROBE_CANDIDATES

    def _chance(self, item: Id) -> float:
        """How likely a publication opens a subscription's bucket, if publications are spread as equalities are."""
        return min(
            (
                self._seen[name][constraint.value] / self._with[name]
                for name, constraint in self._subscriptions[item].constraints
                if isinstance(constraint, Exactly)
            ),
            default=1.0,
        )

    def _seen_with(self, name: str, value: object) -> int:
        return self._seen[name][value]

    def _count(self, subscription: Subscription, by: int) -> None:
        for name, constraint in subscription.constraints:
            if constraint.__class__ is Exactly:
                values = self._seen.setdefault(name, {})
                count = values[constraint.value] = values.get(constraint.value, 0) + by
                self._with[name] = self._with.get(name, 0) + by
                if not count:
                    del values[constraint.value]
                    if not values:
                        del self._seen[name], self._with[name]


def _is_number(value: object) -> bool:
    """Whether it is a number that bounds speak about: no bool, no NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _kinds_hold(guard: Names, attributes: Attributes) -> bool:
    return all(kind_of(attributes[name]) == kind for name, kind in guard)
