"""PRESS sees fifty samples, other ones each time: balancing ends all the same, and takes none back."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, fields

import pytest
from tests.core.policies import laws
from tests.core.policies.exact_fleet import SIZE_BYTES, ExactFleet
from tests.core.policies.laws import random_fleet, run

from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.padres import Padres

SAMPLES, COUNTED_SECONDS = 50, 5.0
DRAWS = random.Random(1)


@dataclass(frozen=True)
class SampledFleet(ExactFleet):
    """Its loads are exact, and its profiles are samples of Poisson arrivals, at the rate of these and of a report."""

    def profile(self, source: str, target: str) -> SubscriptionProfile:
        """Another sample each time that it is asked for."""
        exact = super().profile(source, target)
        some = [(i, rate) for i, rate in enumerate(self.rates) if any(row.bits >> i & 1 for row in exact.rows)]
        if not some:
            return exact
        total = sum(rate for _, rate in some)
        seconds = DRAWS.gammavariate(SAMPLES, 1.0 / total)
        rate = (SAMPLES + COUNTED_SECONDS * total) / (seconds + COUNTED_SECONDS)
        picked = DRAWS.choices([i for i, _ in some], [each for _, each in some], k=SAMPLES)

        def seen(wanted: int) -> int:
            return sum(1 << at for at, publisher in enumerate(picked) if wanted >> publisher & 1)

        rows = tuple(type(row)(row.key, seen(row.bits), row.names, row.subscriptions) for row in exact.rows)
        return SubscriptionProfile(
            SampledTraffic([SampleBlock(SAMPLES, rate / SAMPLES, SIZE_BYTES)]), rows, seen(exact.accepting)
        )


def broken(fleets: int) -> Counter[str]:
    """How many of these fleets break each law."""
    DRAWS.seed(1)
    found: Counter[str] = Counter()
    for seed in range(fleets):
        exact = random_fleet(seed)
        fleet = SampledFleet(**{each.name: getattr(exact, each.name) for each in fields(exact)})
        found.update(list(run(fleet, Padres(), optimum=False).broken))
    return found


@pytest.mark.slow
def test_balancing_by_samples_ends_and_takes_none_back(monkeypatch: pytest.MonkeyPatch):
    found = broken(200)
    assert (found["endless"], found["return"]) == (0, 0)
    monkeypatch.setattr(laws, "_staying", lambda *_: {})
    found = broken(200)
    assert found["endless"] >= 4, "what samples show of the same load differs, and balancing follows it"
