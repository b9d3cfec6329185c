"""Each cluster has one collector, all have about as many clusters, and only a new one takes over clusters."""

from __future__ import annotations

from collections import Counter

from plimsoll.telemetry.cluster_assignment import collector_of

CLUSTERS = [f"cluster-{number}" for number in range(1000)]


def test_collectors_share_evenly():
    shares = Counter(collector_of(cluster, 4) for cluster in CLUSTERS)
    assert set(shares) == {0, 1, 2, 3}
    assert max(shares.values()) < 1.3 * min(shares.values())


def test_a_new_collector_takes_and_nothing_else_changes():
    moved = {collector_of(cluster, 5) for cluster in CLUSTERS if collector_of(cluster, 4) != collector_of(cluster, 5)}
    assert moved == {4}


def test_one_collector_has_all_clusters_and_the_answer_is_always_the_same():
    assert {collector_of(cluster, 1) for cluster in CLUSTERS} == {0}
    assert [collector_of(cluster, 3) for cluster in CLUSTERS[:6]] == [
        collector_of(cluster, 3) for cluster in CLUSTERS[:6]
    ]
