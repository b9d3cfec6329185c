"""The index: ids of the subscriptions that a publication matches.

Three tiers, each exact. Subscriptions of a template that is worth its own probe live in tables (`template_table`). The
rest are filed under their rarest predicate and checked one by one: in Python (`residual`) or, if numba is installed, in
arrays by a compiled loop (`compiled_residual`), into which a grown residual is merged. The tables and look-ups that can
apply depend only on the attributes of a publication, so they are planned once per attribute tuple.
"""

from collections.abc import Callable, Hashable, Iterable
from itertools import compress, islice
from typing import TYPE_CHECKING, Any

from plimsoll.core.matching import kernel
from plimsoll.core.matching.equality_counts import EqualityCounts
from plimsoll.core.matching.match_groups import MatchGroups
from plimsoll.core.matching.residual import ResidualIndex, ResidualPlan
from plimsoll.core.matching.template import EqualityNames, Template, TemplateFiling, template_filing
from plimsoll.core.matching.template_table import IdSlice, TemplateTable
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.predicates.constraints import kind_of

if TYPE_CHECKING:  # numpy is optional
    from plimsoll.core.matching.compiled_plan import CompiledPlan
    from plimsoll.core.matching.compiled_residual import CompiledResidual

Id = Hashable
MOST_PLANS = 1024  # attribute tuples whose plan is kept; beyond that all plans are dropped
SMALLEST_TEMPLATE = 16  # members below which a template gets no table
SAMPLE = 16  # members sampled to judge a template
FEW_TEMPLATES = 16  # up to this many templates may all have tables: together their probes cost little
PROBE_IN_CHECKS = 1.5  # a probe of a table or leaf costs about as much as checking this many candidates in Python,
PROBE_IN_SCANS = 120.0  # and this many in the compiled loop
SMALLEST_MERGE = 1024  # residual rows below which the compiled loop is not worth its call
MERGE_FRACTION = 1 / 64  # new or removed rows that trigger a merge, as a fraction of the compiled rows
STEP = 256  # subscriptions that one change moves between tiers at most, as long as
STEP_FRACTION = 1 / 256  # of the compiled rows is less: a step also costs a copy of them


# Per table (getter, find, guard), then the plans of the residual and of the compiled rows, if any.
TableProbe = tuple[Callable[[Any], Any], Callable[[Any], Any], EqualityNames]
MatchPlan = tuple[tuple[TableProbe, ...], ResidualPlan | None, "CompiledPlan | None"]


class Index:
    """Subscriptions by id, and the ones that a publication matches. See docs/matching.md for costs.

    Any hashable can be an id, and a match returns ids of the types that were added; small ints are the cheapest.
    `compiled=False` stays in Python even if numba is installed.
    """

    def __init__(self, *, compiled: bool = True) -> None:
        self.generation = 0
        self._subscriptions: dict[Id, Subscription] = {}
        self._tables: dict[EqualityNames, TemplateTable] = {}
        self._members: dict[Template, dict[Id, None]] = {}  # of templates without a table
        self._promoted: dict[Template, int] = {}  # template with a table -> its subscriptions there
        self._promoting: dict[Template, dict[Id, None]] = {}  # their members that are still in the residual
        self._is_merging = False
        self._residual = ResidualIndex()
        self._compiled: CompiledResidual | None = None
        self._may_compile = compiled
        self._equalities = EqualityCounts()
        self._plans: dict[tuple[str, ...], MatchPlan] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, item: Id) -> bool:
        return item in self._subscriptions

    def __getitem__(self, item: Id) -> Subscription:
        return self._subscriptions[item]

    def add(self, item: Id, subscription: Subscription, /) -> None:
        """Add a subscription. ValueError if the id is taken: `remove` it first."""
        if item in self._subscriptions:
            raise ValueError(f"id {item!r} is in the index already; remove it before adding it again")
        self.generation += 1
        self._subscriptions[item] = subscription
        self._equalities.count(subscription, 1)
        self._file(item, subscription)
        self._step()

    def _file(self, item: Id, subscription: Subscription) -> None:
        filing = template_filing(subscription)
        if filing is None:
            self._add_residual(item, subscription)
            return
        template = filing[0]
        if template in self._promoted:
            self._promoted[template] += 1
            self._table(template[0]).add(filing, item)
            return
        members = self._members.setdefault(template, {})
        members[item] = None
        self._add_residual(item, subscription)
        # Judge a template only when its members have doubled: adding stays cheap.
        if len(members) >= SMALLEST_TEMPLATE and not len(members) & (len(members) - 1) and self._worth(members):
            self._begin_promotion(template)

    def remove(self, item: Id, /) -> None:
        """Remove a subscription. KeyError if the id is unknown."""
        subscription = self._subscriptions.pop(item)
        self.generation += 1
        self._equalities.count(subscription, -1)
        filing = template_filing(subscription)
        if filing is None:
            self._remove_checked(item)
        else:
            self._remove_filed(filing, item)
        self._step()

    def load(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Add many at once, faster than one by one. ValueError if an id is taken; nothing is added then."""
        fresh: dict[Id, Subscription] = {}
        count = 0
        for item, subscription in items:
            fresh[item] = subscription
            count += 1
        if len(fresh) != count or not self._subscriptions.keys().isdisjoint(fresh):
            raise ValueError("an id is given twice or is in the index already; nothing was loaded")
        self.generation += 1
        self._plans.clear()
        self._subscriptions.update(fresh)
        self._equalities.count_all(fresh.values())
        filings, unfiled = _by_template(fresh)
        for template, (loaded, _, _) in filings.items():
            if template not in self._promoted:
                self._members.setdefault(template, {}).update(dict.fromkeys(loaded))
        rest: list[Id] = []
        for template, (loaded, keys, bounds) in filings.items():
            if template not in self._promoted:
                members = self._members[template]
                if len(members) < SMALLEST_TEMPLATE or not self._worth(members):
                    rest += loaded
                    continue
                self._begin_promotion(template)
                for item in loaded:  # they are filed nowhere yet
                    del self._promoting[template][item]
                self._promote(template, len(members))
            self._promoted[template] += len(loaded)
            table = self._table(template[0])
            for key, pairs in _by_key(loaded, keys, bounds).items():
                table.extend(key, template[1], template[2], pairs)
        self._load_rest(rest, unfiled)

    def match(self, attributes: Attributes) -> list[Any]:
        """Ids of the subscriptions that a publication with these attributes matches, in no particular order.

        The list belongs to the caller; later changes of the index do not affect it.
        """
        names = tuple(attributes)
        tables, residual, compiled = self._plans.get(names) or self._plan(names)
        out: list[Any] = []
        for getter, find, guard in tables:
            cell = find(getter(attributes))
            if cell is None or (guard and not _kinds_hold(guard, attributes)):
                continue
            out += cell.ids
            for attribute, cut, head, keys, ids, blocks in cell.probes:
                value = attributes.get(attribute)
                kind = value.__class__
                if kind is int or (value == value if kind is float else _is_number(value)):
                    if blocks is None:
                        at = cut(keys, value)
                        out += ids[:at] if head else ids[at:]
                    else:
                        for block, start, stop in blocks.slices(cut, head, value):
                            out += block[start:stop]
        if residual is not None:
            residual.match(attributes, out, self._subscriptions)
        if compiled is not None and self._compiled is not None:
            self._compiled.match(compiled, attributes, out, self._subscriptions)
        return out

    def match_groups(self, attributes: Attributes) -> MatchGroups:
        """The same as slices of leaves, valid until the next change. Ids found by checks form one more slice."""
        names = tuple(attributes)
        tables, residual, compiled = self._plans.get(names) or self._plan(names)
        out: list[IdSlice] = []
        for getter, find, guard in tables:
            cell = find(getter(attributes))
            if cell is None or (guard and not _kinds_hold(guard, attributes)):
                continue
            if cell.ids:
                out.append((cell.ids, 0, len(cell.ids)))
            for attribute, cut, head, keys, ids, blocks in cell.probes:
                value = attributes.get(attribute)
                kind = value.__class__
                if kind is int or (value == value if kind is float else _is_number(value)):
                    if blocks is None:
                        at = cut(keys, value)
                        if head:
                            if at:
                                out.append((ids, 0, at))
                        elif at < len(ids):
                            out.append((ids, at, len(ids)))
                    else:
                        out += [piece for piece in blocks.slices(cut, head, value) if piece[1] < piece[2]]
        if residual is not None or compiled is not None:
            checked: list[Any] = []
            if residual is not None:
                residual.match(attributes, checked, self._subscriptions)
            if compiled is not None and self._compiled is not None:
                self._compiled.match(compiled, attributes, checked, self._subscriptions)
            if checked:
                out.append((checked, 0, len(checked)))
        return MatchGroups(self, self.generation, out)

    def stats(self) -> dict[str, int]:
        """Counts of the index's contents by tier."""
        compiled = self._compiled
        return {
            "subscriptions": len(self._subscriptions),
            "filed": sum(self._promoted.values()),
            "templates": len(self._promoted),
            "tables": len(self._tables),
            "cells": sum(len(table.cells) for table in self._tables.values()),
            "residual": len(self._residual),
            "compiled": len(compiled) if compiled is not None else 0,
            "plans": len(self._plans),
        }

    def _plan(self, names: tuple[str, ...]) -> MatchPlan:
        present = frozenset(names)
        tables = tuple(
            (table.getter, table.cells.get, table.guard)
            for table in self._tables.values()
            if all(name in present for name, _ in table.names)
        )
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        residual = self._residual.plan(present) if len(self._residual) else None
        compiled = self._compiled.plan(present) if self._compiled is not None else None
        plan = self._plans[names] = (tables, residual, compiled)
        return plan

    def _add_residual(self, item: Id, subscription: Subscription) -> None:
        first = not len(self._residual)
        if self._residual.add(item, subscription, self._equalities.of) or first:
            self._plans.clear()
        if self._residual.compilable >= self._merge_limit():
            self._is_merging = True

    def _remove_checked(self, item: Id) -> None:
        compiled = self._compiled
        if compiled is not None and item in compiled:
            compiled.remove(item)
            if not len(compiled):
                self._compiled = None
                self._plans.clear()
            elif compiled.dead > self._merge_limit():
                self._is_merging = True
        elif self._residual.remove(item):
            self._plans.clear()

    def _remove_filed(self, filing: TemplateFiling, item: Id) -> None:
        template = filing[0]
        unfiled = self._promoting if template in self._promoted else self._members
        if item in (members := unfiled.get(template, {})):
            del members[item]
            if not members:
                del unfiled[template]
            self._remove_checked(item)
        else:
            table = self._tables[template[0]]
            table.remove(filing, item)
            self._promoted[template] -= 1
            if not table.cells:
                del self._tables[template[0]]
                self._plans.clear()
        if not self._promoted.get(template, 1) and template not in self._promoting:
            del self._promoted[template]

    # -- between the tiers, a step at each change: a change costs the same however large the index is

    def _step(self) -> None:
        if self._promoting:
            self._promote(next(iter(self._promoting)), STEP)
        elif self._is_merging:
            self._merge((), max(STEP, int(len(self._compiled or ()) * STEP_FRACTION)))

    def _merge_limit(self) -> float:
        compiled = self._compiled
        return max(SMALLEST_MERGE, len(compiled) * MERGE_FRACTION if compiled is not None else 0)

    def _merge(self, more: Iterable[Id], most: int) -> None:
        """Move up to `most` compilable subscriptions of the residual, and `more`, into the arrays."""
        scan = kernel.load() if self._may_compile else None
        if scan is None:
            self._may_compile = self._is_merging = False
            for item in more:
                self._residual.add(item, self._subscriptions[item], self._equalities.of)
            return
        from plimsoll.core.matching.compiled_residual import CompiledResidual  # numpy is there if the loop is

        moving = [*self._residual.take_compilable(most), *more]
        self._is_merging = self._residual.compilable > 0
        if self._compiled is None or self._compiled.is_wasteful:
            moving.extend(self._compiled.ids() if self._compiled is not None else ())
            self._compiled = CompiledResidual(scan)
        self._compiled.merge(
            dict(zip(moving, map(self._subscriptions.__getitem__, moving), strict=True)), self._equalities.of
        )
        self._plans.clear()

    def _begin_promotion(self, template: Template) -> None:
        """Let a template have a table; its members move there."""
        self._promoting[template] = self._members.pop(template)
        self._promoted[template] = 0

    def _promote(self, template: Template, most: int) -> None:
        """Move up to `most` members of a template to its table."""
        members = self._promoting[template]
        for item in list(islice(members, most)):
            filing = template_filing(self._subscriptions[item])
            if filing is None:
                raise RuntimeError(f"{self._subscriptions[item]} is a member of a template that it does not have")
            del members[item]
            self._remove_checked(item)
            self._table(template[0]).add(filing, item)
            self._promoted[template] += 1
        if not members:
            del self._promoting[template]

    def _table(self, names: EqualityNames) -> TemplateTable:
        table = self._tables.get(names)
        if table is None:
            table = self._tables[names] = TemplateTable(names)
            self._plans.clear()
        return table

    def _load_rest(self, filed: list[Id], unfiled: list[Id]) -> None:
        """File loaded subscriptions that got no table: in the arrays if there are many, else in the residual."""
        compilable = filed  # equalities and a bound can always be written as tests
        others = unfiled
        if not self._may_compile or len(filed) + len(unfiled) + self._residual.compilable < self._merge_limit():
            compilable, others = [], filed + unfiled
        else:
            checked = [self._residual.is_compilable(self._subscriptions[item]) for item in unfiled]
            compilable += compress(unfiled, checked)
            others = [item for item, fits in zip(unfiled, checked, strict=True) if not fits]
        for item in others:
            self._residual.add(item, self._subscriptions[item], self._equalities.of)
        if compilable:
            self._merge(compilable, self._residual.compilable)

    def _worth(self, members: dict[Id, None]) -> bool:
        """Whether a probe costs less than the members that a publication would otherwise have to check."""
        templates = len(self._members) + len(self._promoted)
        if templates <= FEW_TEMPLATES:
            return True
        price = PROBE_IN_SCANS if self._may_compile and kernel.is_installed() else PROBE_IN_CHECKS
        if len(members) <= price:
            return False  # even if every publication opened their bucket
        sample = [self._subscriptions[item] for item in islice(members, SAMPLE)]
        return sum(map(self._equalities.chance, sample)) / len(sample) * len(members) > price


# Ids, table keys and bounds of the subscriptions of one template, side by side.
Filings = tuple[list[Id], list[Any], list[float]]


def _by_template(fresh: dict[Id, Subscription]) -> tuple[dict[Template, Filings], list[Id]]:
    """The filings by template, and the ids of subscriptions without a template."""
    found: dict[Template, Filings] = {}
    rest: list[Id] = []
    for item, subscription in fresh.items():
        filing = template_filing(subscription)
        if filing is None:
            rest.append(item)
            continue
        template, key, bound = filing
        here = found.get(template)
        if here is None:
            here = found[template] = ([], [], [])
        here[0].append(item)
        here[1].append(key)
        here[2].append(bound)
    return found, rest


def _by_key(items: list[Id], keys: list[Any], bounds: list[float]) -> dict[Any, list[tuple[float, Id]]]:
    """The (bound, id) pairs of one template by table key."""
    found: dict[Any, list[tuple[float, Id]]] = {}
    for item, key, bound in zip(items, keys, bounds, strict=True):
        pairs = found.get(key)
        if pairs is None:
            found[key] = [(bound, item)]
        else:
            pairs.append((bound, item))
    return found


def _is_number(value: object) -> bool:
    """Whether it is a number that bounds apply to: no bool, no NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _kinds_hold(guard: EqualityNames, attributes: Attributes) -> bool:
    return all(kind_of(attributes[name]) == kind for name, kind in guard)
