"""Lists that are allowed and made to be dear: whatever a client subscribes to, a round of its edge stays short.

The measure is calls of functions, Python's and C's, in the longest round: it is the same on every machine.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from bench.hostile.inputs import Gene, drawn, texts
from bench.hostile.steps import HandoverTargetRig, narrow

CALLS_AT_MOST = 300_000
"""Of a round; unbounded, each of these attacks takes a million."""
READING_CALLS_AT_MOST = 60_000
"""Of a round that reads and announces one subscription of the largest kind; value by value that is twice as many."""


class CountedEdge(HandoverTargetRig):
    """Counts calls in the place of milliseconds."""

    def __init__(self) -> None:
        self.counted: list[int] = []
        super().__init__()
        self.counted.clear()  # others have subscribed

    def exchange(self) -> None:
        self._counting(super().exchange)

    def send_attack(self) -> None:
        self._counting(super().send_attack)

    def _counting(self, work: Callable[[], None]) -> None:
        calls = 0

        def count(frame: FrameType, event: str, arg: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
        self.counted.append(calls)


KNOWN = {
    "many bounds": [Gene("bounds", 60, 250, 1, 2_000)],
    "pieces that nothing contains": [Gene("contains", 800, 2, 6, 1)],
    "lists": [Gene("in_list", 20, 2_000, 1, 1)],
    "broad over narrow": [Gene("in_strings", 1_500, 1, 8, 1), Gene("broad", 1, 1, 1, 1)],
    "attributes that no other has": [Gene("equalities", 500, 4, 1, 2_000)],
}


@pytest.mark.sampled(without=("attributes that no other",))
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*KNOWN, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(4))])
def test_no_list_makes_a_round_long(name: str | int):
    if isinstance(name, str):
        genome = KNOWN[name]
    else:
        draw = random.Random(name)
        genome = [drawn(draw) for _ in range(2)]
    print(genome)
    rig = CountedEdge()
    subscriptions = texts(genome)[:1_600]
    rig.attack(subscriptions)
    assert max(rig.counted) < CALLS_AT_MOST
    assert rig.edge.attachments.by_subscriber["attacker"].subscriptions == {}
    assert rig.edge.subscription_table.is_tidy


@pytest.mark.timeout(1200)
def test_the_largest_subscriptions_are_taken_one_in_a_round():
    rig = CountedEdge()
    bounds = ",".join(f"[z{i},>,5]" for i in range(200))
    rig.attack([f"[class,=,'L'],[n,in,({','.join(map(str, range(i, i + 2_040)))})],{bounds}" for i in range(40)])
    assert len(rig.counted) > 40
    assert max(rig.counted) < READING_CALLS_AT_MOST


@pytest.mark.timeout(1200)
def test_no_list_in_a_hand_over_makes_a_round_long():
    rig = CountedEdge()
    for step, _ in rig.steps(narrow(3_000)):
        assert max(rig.counted) < CALLS_AT_MOST, step
        if step == "INSTALL":
            assert rig.edge.attachments.by_subscriber["moved"].state.value == "cutting"
            assert max(rig.counted) < 3_000, "it reads no list"
        rig.counted.clear()
    assert "moved" not in rig.edge.attachments.by_subscriber
    assert rig.edge.subscription_table.is_tidy
