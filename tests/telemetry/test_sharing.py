"""Each cluster has one collector, all have about as many, and a new one takes only what it hears from then on."""

from __future__ import annotations

from collections import Counter

from plimsoll.telemetry.sharing import owner

CLUSTERS = [f"cluster-{number}" for number in range(1000)]


def test_collectors_share_evenly():
    shares = Counter(owner(cluster, 4) for cluster in CLUSTERS)
    assert set(shares) == {0, 1, 2, 3}
    assert max(shares.values()) < 1.3 * min(shares.values())


def test_a_new_collector_takes_and_nothing_else_changes():
    moved = {owner(cluster, 5) for cluster in CLUSTERS if owner(cluster, 4) != owner(cluster, 5)}
    assert moved == {4}


def test_one_collector_hears_all_and_the_answer_is_always_the_same():
    assert {owner(cluster, 1) for cluster in CLUSTERS} == {0}
    assert [owner(cluster, 3) for cluster in CLUSTERS[:6]] == [owner(cluster, 3) for cluster in CLUSTERS[:6]]
