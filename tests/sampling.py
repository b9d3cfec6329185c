"""Which cases of a test the default run has; the others are sweeps, which `make test-all` has as well.

`@pytest.mark.sampled(3)` keeps three cases, evenly spread; `@pytest.mark.sampled(without=("a", "b"))` keeps those whose
id has none of these words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest


def spread(count: int, most: int) -> set[int]:
    """At most this number of places of so long a list, evenly spread over it, its first among them."""
    return {index * count // most for index in range(most)} if most < count else set(range(count))


def mark_sweeps(items: Iterable[pytest.Item]) -> None:
    """Mark what is left out of samples."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("sweep"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("sampled")
        assert mark is not None, "only such tests are in these lists"
        for index in _left_out(mark, [item.nodeid.partition("[")[2] for item in found]):
            found[index].add_marker(pytest.mark.sweep)


def _left_out(mark: pytest.Mark, ids: list[str]) -> set[int]:
    if mark.args:
        (most,) = mark.args
        return set(range(len(ids))) - spread(len(ids), most)
    words = mark.kwargs["without"]
    return {index for index, found in enumerate(ids) if any(word in found for word in words)}
