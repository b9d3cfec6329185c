"""The baselines of the index, each written from the published description of its algorithm.

They stay as they are, so that figures of different revisions can be compared. Each takes all subscriptions as
(attribute, operator, value) triples over = < >, and `match(attributes)` returns the positions of those that match.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Triples = list[tuple[str, str, Any]]
TESTS: dict[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "<": operator.lt, ">": operator.gt}


class NaiveScan:
    """Tests every subscription."""

    name = "naive scan"

    def __init__(self, subscriptions: Iterable[Triples]) -> None:
        self.rows = [(i, [(a, TESTS[o], v) for a, o, v in triples]) for i, triples in enumerate(subscriptions)]

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        out = []
        for i, triples in self.rows:
            for attribute, test, value in triples:
                if not test(attributes[attribute], value):
                    break
            else:
                out.append(i)
        return out


class Counting:
    """The counting algorithm: find the satisfied predicates by hash and bisection, count them per subscription."""

    name = "counting"

    def __init__(self, subscriptions: Iterable[Triples]) -> None:
        self.needed: list[int] = []
        self.equal: dict[tuple[str, Any], list[int]] = {}
        bounds: dict[tuple[str, str], list[tuple[Any, int]]] = {}
        for i, triples in enumerate(subscriptions):
            self.needed.append(len(triples))
            for attribute, sign, value in triples:
                if sign == "=":
                    self.equal.setdefault((attribute, value), []).append(i)
                else:
                    bounds.setdefault((attribute, sign), []).append((value, i))
        self.bounds = {}
        for place, pairs in bounds.items():
            pairs.sort()
            self.bounds[place] = ([value for value, _ in pairs], [i for _, i in pairs])

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        counts: dict[int, int] = {}
        for attribute, value in attributes.items():
            satisfied = [self.equal.get((attribute, value), [])]
            above, below = self.bounds.get((attribute, ">")), self.bounds.get((attribute, "<"))
            if above:
                satisfied.append(above[1][: bisect_left(above[0], value)])
            if below:
                satisfied.append(below[1][bisect_right(below[0], value) :])
            for ids in satisfied:
                for i in ids:
                    counts[i] = counts.get(i, 0) + 1
        needed = self.needed
        return [i for i, count in counts.items() if count == needed[i]]


class _ReteNode:
    def __init__(self, attribute: str, test: Callable[[Any, Any], bool], value: Any) -> None:
        self.attribute, self.test, self.value = attribute, test, value
        self.children: list[_ReteNode] = []
        self.ids: list[int] = []


class Rete:
    """A discrimination network like that of PADRES: the class first, then predicates in alphabetical order, prefixes
    shared, and the children of a node tested one after another."""

    name = "Rete (as in PADRES)"

    def __init__(self, subscriptions: Iterable[Triples]) -> None:
        self.root = _ReteNode("", operator.eq, None)
        known: dict[tuple[int, str, str, Any], _ReteNode] = {}
        for i, triples in enumerate(subscriptions):
            node = self.root
            for attribute, sign, value in sorted(triples, key=lambda t: (t[0] != "class", t[0], t[1])):
                place = (id(node), attribute, sign, value)
                child = known.get(place)
                if child is None:
                    child = known[place] = _ReteNode(attribute, TESTS[sign], value)
                    node.children.append(child)
                node = child
            node.ids.append(i)

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        out: list[int] = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            out += node.ids
            for child in node.children:
                if child.test(attributes[child.attribute], child.value):
                    stack.append(child)
        return out


BASELINES = (NaiveScan, Counting, Rete)
