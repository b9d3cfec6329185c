"""Subscriptions to draw from: of few attributes and values, so that they often cover each other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from plimsoll.core.predicates import Predicate, Subscription, Unsatisfiable, conjunction


def made(triples: list[tuple[str, str, Any]]) -> Subscription | None:
    try:
        return conjunction(Predicate(*triple) for triple in triples)  # type: ignore[arg-type]  # operators are drawn as text
    except Unsatisfiable:
        return None


names = st.sampled_from("aab")
numbers = st.sampled_from([0, 1, 1.0, 2, 2**53, 2**53 + 1])
words = st.sampled_from(["", "x", "xy", "yx"])
triples = st.one_of(
    st.tuples(names, st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="]), numbers),
    st.tuples(names, st.sampled_from(["=", "=", "!=", "prefix", "suffix", "contains"]), words),
    st.tuples(names, st.sampled_from(["=", "!="]), st.booleans()),
    st.tuples(names, st.just("in"), st.lists(numbers, min_size=1, max_size=2).map(tuple)),
    st.tuples(names, st.just("in"), st.lists(words, min_size=1, max_size=2).map(tuple)),
    st.tuples(names, st.just("exists"), st.none()),
)
asked = st.lists(triples, min_size=1, max_size=3).map(made).filter(lambda one: one is not None)
