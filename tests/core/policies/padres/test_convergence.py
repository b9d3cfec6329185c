"""A fleet like that of the paper's 6.2, without brokers: all subscribers at the weakest edge, then balanced."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from tests.core.policies.hand import SIZE_BYTES, Broker, World
from tests.core.policies.padres.small import LIMITS, LOWER, sessions

from plimsoll.core.policies.model.load import METRICS
from plimsoll.core.policies.padres import Padres

SYMBOLS, QUOTES, SUBSCRIBERS = 12, 12, 600
POWER = {"b1": 1, "b2": 2, "b3": 4, "b4": 10}
"""PADRES 2006, 6.2: B2 has twice the performance of B1, B3 twice that of B2, B4 ten times that of B1."""


def world_of(seed: int, load: float) -> World:
    """The templates of 6.1 with their shares. Spread by power, every edge would use `load` of input and output."""
    random = Random(seed)
    wants: dict[str, int] = {}
    served: dict[str, list[str]] = defaultdict(list)
    for number in range(SUBSCRIBERS):
        key, bits = _asked(random)
        wants[key] = bits
        served[key].append(f"s{number:04d}")
    deliveries = sum(wants[key].bit_count() * len(names) for key, names in served.items())
    power = sum(POWER.values())
    cost, bandwidth = load * power / SUBSCRIBERS / (SYMBOLS * QUOTES), deliveries * SIZE_BYTES / power / load
    kept = {key: tuple(names) for key, names in sorted(served.items())}
    brokers = {
        name: Broker(cost / times, bandwidth * times, kept if name == "b1" else {}) for name, times in POWER.items()
    }
    return World(SYMBOLS * QUOTES, wants, brokers)


def _asked(random: Random) -> tuple[str, int]:
    if random.random() < 0.25:
        return f"zero{random.randrange(20)}", 0
    template, symbol, least = random.random(), random.randrange(SYMBOLS), random.randrange(1, QUOTES)
    above = (1 << QUOTES) - (1 << least)
    if template < 0.60:
        return f"symbol={symbol} value>{least}", above << symbol * QUOTES
    if template < 0.94:
        return f"symbol={symbol}", ((1 << QUOTES) - 1) << symbol * QUOTES
    if template < 0.99:
        return f"value>{least}", sum(above << each * QUOTES for each in range(SYMBOLS))
    return "everything", (1 << SYMBOLS * QUOTES) - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "within"),
    [(1, 0.12), (2, 0.1), (3, 0.105), (4, 0.1), (5, 0.105), (6, 0.1), (7, 0.125), (8, 0.1)],
)
def test_all_the_load_at_the_weakest_edge_is_evened_out(seed: int, within: float):
    """6.2: at the end no edge is overloaded, and every pair is within 0.1 of input and delay; of output too, or the
    stability rule has stopped it. Nothing comes back to where it was. In four worlds of eight no move is better for
    all a little before that. For 0.1 to hold, balancing should begin below it.
    """
    normalization = LIMITS.normalization_seconds / 10  # delays here are as much smaller than the paper's
    world, ends, seen = world_of(seed, load=0.5), set(), []
    for plan, after in sessions(world, Padres(replace(LIMITS, normalization_seconds=normalization))):
        world = after
        ends.add(plan.ended)
        assert after.brokers not in seen, seed
        seen.append(after.brokers)
    assert len(seen) <= 40, seed
    loads = {name: world.load(name).measures for name in POWER}
    for name, measures in loads.items():
        assert all(measures.of_resource(each) <= LOWER[each] for each in ("input", "output")), (seed, name)
    for one, other in combinations(loads.values(), 2):
        apart = {m: abs(one.of_metric(m, normalization) - other.of_metric(m, normalization)) for m in METRICS}
        assert max(apart["input"], apart["match"]) <= within, (seed, apart)
        assert apart["output"] <= 0.1 or "Stability" in ends, (seed, apart)
