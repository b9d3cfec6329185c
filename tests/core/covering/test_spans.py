"""Spans of numbers: all items that may cover, or be covered, are named, perhaps with others; and blocks are skipped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.drawn import asked, made
from tests.examples import examples

from plimsoll.core.covering import spans as covering_spans
from plimsoll.core.covering.spans import SpanIndex, span_of
from plimsoll.core.predicates import Subscription, parse

BIG = 2**53

points = st.sampled_from([-2, -1.5, 0, 0.5, 1, 2, 3, BIG, BIG + 1, float("inf"), float("-inf")])
ranges = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([">", ">=", "<", "<="]), points), min_size=1, max_size=5
)
ranged = st.one_of(ranges.map(made).filter(lambda one: one is not None), asked)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ranged, min_size=4, max_size=30, unique=True), st.randoms(use_true_random=False))
def test_spans_name_all_that_covers_and_all_that_is_covered(pool: list[Subscription], shuffler: random.Random):
    """The named items may include others; checked for every constraint of the pool, while half of it is removed."""
    constraints: list[Any] = [dict(one.constraints).get("a") for one in pool]
    held = {serial: constraint for serial, constraint in enumerate(constraints) if constraint is not None}
    with mock.patch.object(covering_spans, "BLOCK_LIMIT", 3):
        spans: SpanIndex[int] = SpanIndex()
        for serial in shuffler.sample(list(held), len(held)):
            spans.add(held[serial], serial, serial)
        for gone in [None, *shuffler.sample(list(held), len(held))]:
            if gone is not None:
                spans.remove(held.pop(gone), gone)
            assert len(spans) == len(held)
            for one in filter(None, constraints):
                above, below = list(spans.candidate_coverers(one)), list(spans.candidate_covered(one))
                assert len(set(above)) == len(above)
                assert len(set(below)) == len(below)
                assert {n for n, other in held.items() if other.covers(one)} <= set(above) <= set(held)
                assert {n for n, other in held.items() if one.covers(other)} <= set(below) <= set(held)
    assert not spans._blocks


def constraint(text: str) -> Any:
    return dict(parse(text).constraints)["a"]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("[a,>,1],[a,<=,5]", (1, 5)),
        ("[a,<,5]", (float("-inf"), 5)),
        ("[a,=,3]", (3, 3)),
        ("[a,in,(7,2,9)]", (2, 9)),
        ("[a,=,'x']", None),
        ("[a,in,('x','y')]", None),
        ("[a,prefix,'x']", None),
        ("[a,exists]", None),
    ],
)
def test_what_spans_numbers_and_what_does_not(text: str, span: tuple[float, float] | None):
    assert span_of(constraint(text)) == span


def test_who_has_no_span_is_named_when_its_kind_may_matter():
    spans: SpanIndex[str] = SpanIndex()
    for serial, text in enumerate(("[a,exists]", "[a,prefix,'x']", "[a,>,1]", "[a,=,3]")):
        spans.add(constraint(text), serial, text)
    assert set(spans.candidate_coverers(constraint("[a,=,'xy']"))) == {"[a,exists]", "[a,prefix,'x']"}
    assert set(spans.candidate_covered(constraint("[a,exists]"))) == set(spans.items.values())
    assert set(spans.candidate_covered(constraint("[a,prefix,'']"))) == {"[a,exists]", "[a,prefix,'x']"}


class Read(list[tuple[float, float, float]]):
    """A block that counts how often it is read."""

    times = 0

    def __getitem__(self, at: Any) -> Any:
        Read.times += isinstance(at, slice)
        return super().__getitem__(at)


def counted(asked: Iterator[int]) -> tuple[list[int], int]:
    Read.times = 0
    return sorted(asked), Read.times


def test_blocks_without_an_answer_are_passed_over():
    """A thousand narrow ranges side by side: a query reads the few blocks at its place."""
    spans: SpanIndex[int] = SpanIndex()
    for n in range(1000):
        spans.add(constraint(f"[a,>=,{10 * n}],[a,<=,{10 * n + 5}]"), n, n)
    assert len(spans._blocks) > 20
    spans._blocks[:] = [Read(block) for block in spans._blocks]
    found, looked = counted(spans.candidate_coverers(constraint("[a,>,5001],[a,<,5002]")))
    assert (found, looked) == ([500], 1)
    found, looked = counted(spans.candidate_covered(constraint("[a,>=,5000],[a,<=,5025]")))
    assert found == [500, 501, 502]
    assert 1 <= looked <= 2
    wide: SpanIndex[int] = SpanIndex()
    for n in range(200):
        wide.add(constraint(f"[a,>=,{n}],[a,<=,{10_000 + n}]"), n, n)
    wide._blocks[:] = [Read(block) for block in wide._blocks]
    assert counted(wide.candidate_covered(constraint("[a,>=,0],[a,<=,500]"))) == ([], 0)


def test_a_removal_does_not_look_at_the_whole_block(monkeypatch: pytest.MonkeyPatch):
    """A subscription has up to 256 attributes, and each has such an index."""
    spans: SpanIndex[int] = SpanIndex()
    for n in range(64):
        spans.add(constraint(f"[a,>,{n}]"), n, n)
    placed: list[int] = []
    place = SpanIndex._place

    def watched(self: SpanIndex[int], start: int, stop: int, blocks: Any) -> None:
        placed.append(start)
        place(self, start, stop, blocks)

    monkeypatch.setattr(SpanIndex, "_place", watched)
    for n in range(30):
        spans.remove(constraint(f"[a,>,{n}]"), n)
    assert len(placed) <= 1
    assert sorted(spans.candidate_covered(constraint("[a,>,40]"))) == list(range(40, 64))
    for n in range(30, 64):
        spans.remove(constraint(f"[a,>,{n}]"), n)
    assert len(placed) <= 7
    assert not len(spans)
    assert list(spans.candidate_covered(constraint("[a,>,0]"))) == []
