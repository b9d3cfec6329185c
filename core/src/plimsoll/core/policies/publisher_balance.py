"""Which publishers go to which heads: the heaviest first, each to the head that accepts least.

Rates are publications per second. A publisher whose rate is not known is given the least of the known ones: heads name
those that publish most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class PublisherPlacement(NamedTuple):
    """A publisher and the head that it goes to."""

    publisher: str
    head: str


def spread(
    rates: Mapping[str, float], heads: Mapping[str, float], order: Sequence[str] | None = None
) -> list[PublisherPlacement]:
    """Place all of these publishers. `heads`: what each accepts now. Of equal ones the head with the fewest of them.

    `order`: in which they go, if it matters who goes first; it names all of them.
    """
    loads, counts = dict(heads), dict.fromkeys(heads, 0)
    found = []
    for name in _heaviest_first(rates) if order is None else order:
        head = min(loads, key=lambda each: (loads[each], counts[each], each))
        loads[head] += rates[name]
        counts[head] += 1
        found.append(PublisherPlacement(name, head))
    return found


def even_out(rates: Mapping[str, float], own: float, heads: Mapping[str, float]) -> list[PublisherPlacement]:
    """Place some of these publishers, so that the head that they are at, which accepts `own`, and the others come
    closer.

    A publisher goes if that lowers the higher of the two: moves that only exchange the loads of two heads are none.
    """
    loads, found = dict(heads), []
    for name in _heaviest_first(rates):
        head = min(loads, key=lambda each: (loads[each], each))
        if rates[name] > 0 and loads[head] + rates[name] < own:
            own -= rates[name]
            loads[head] += rates[name]
            found.append(PublisherPlacement(name, head))
    return found


def _heaviest_first(rates: Mapping[str, float]) -> Sequence[str]:
    return sorted(rates, key=lambda name: (-rates[name], name))
