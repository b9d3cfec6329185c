"""What policies remember of clusters: stored with the name of the policy, bounded, and adopted once."""

from __future__ import annotations

from plimsoll.core.policies.rebalancer import MEMORY_BYTES
from plimsoll.core.session import FleetView
from plimsoll.core.session.context.cluster_memories import ClusterMemories, is_bounded, stored_memory


def test_a_stored_memory_is_adopted_unless_this_life_has_its_own():
    memories = ClusterMemories()
    memories.adopt(FleetView(memories={"east": stored_memory("Bad", {"looks": 1})}))
    assert memories.of("east", "Bad") == {"looks": 1}
    memories.put("east", "Bad", {"looks": 2})
    memories.adopt(FleetView(memories={"east": stored_memory("Bad", {"looks": 1})}))
    assert memories.of("east", "Bad") == {"looks": 2}


def test_another_policy_begins_with_nothing():
    memories = ClusterMemories()
    memories.put("east", "Bad", {"looks": 2})
    assert memories.of("east", "Pulsar") == {}
    assert memories.of("west", "Bad") == {}


def test_only_a_change_is_stored():
    memories = ClusterMemories()
    assert memories.put("east", "Bad", {"looks": 1})
    assert not memories.put("east", "Bad", {"looks": 1})
    assert memories.put("east", "Bad", {"looks": 2})


def test_what_is_too_large_or_no_json_is_dropped():
    memories = ClusterMemories()
    for bad in ({"text": "x" * MEMORY_BYTES}, {"looks": float("nan")}, {"looks": {1}}):
        assert not is_bounded(bad)
        memories.put("east", "Bad", bad)
        assert memories.of("east", "Bad") == {}
    assert is_bounded({"text": "x" * (MEMORY_BYTES - 20)})


def test_a_stored_value_that_cannot_be_read_counts_as_none():
    memories = ClusterMemories()
    memories.adopt(FleetView(memories={"east": {"policy": "Bad", "memory": "text"}, "west": {}}))
    assert memories.of("east", "Bad") == memories.of("west", "Bad") == {}
