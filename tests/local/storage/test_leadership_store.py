"""Who leads is changed by compare-and-set, and outlasts what others write into the same status."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.leadership import HeadLeadership, LeadershipConflictError
from plimsoll.local.storage.leadership_store import LeadershipStore
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore


@pytest.fixture
def store(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        store.create({"kind": "BrokerCluster", "metadata": {"name": "east"}, "spec": {}}, "2026-01-01T00:00:00Z")
        yield store


def test_a_change_is_stored_and_read_back(store):
    one, first = LeadershipStore(store, "east"), HeadLeadership()
    after = one.change(first, first.begun(0))
    store.set_status("BrokerCluster", "east", lambda item: {**item["status"], "subscribers": 3})
    assert LeadershipStore(store, "east").load() == after == HeadLeadership(1, 0)


def test_of_two_that_change_the_same_one_loses(store):
    one, other, first = LeadershipStore(store, "east"), LeadershipStore(store, "east"), HeadLeadership()
    after = one.change(first, first.begun(0))
    with pytest.raises(LeadershipConflictError, match="has been stored in place of"):
        other.change(first, first.begun(1))
    assert other.load() == after


def test_a_cluster_that_is_gone_has_none(store):
    with pytest.raises(ObjectMissingError):
        LeadershipStore(store, "west").load()


def test_nothing_is_known_of_the_log_of_a_cluster_that_has_been_deleted(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        assert LeadershipStore(store, "east").known_log() == (0, 0)
