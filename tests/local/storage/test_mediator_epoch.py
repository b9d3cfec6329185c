"""The counter that distinguishes mediators."""

import pytest

from plimsoll.local.storage import mediator_epoch
from plimsoll.local.storage.object_store import ObjectStore


@pytest.fixture
def store(tmp_path):
    with ObjectStore(tmp_path / "store.db") as store:
        store.create({"kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": {}}, "now")
        store.set_status("BrokerFleet", "f", lambda item: {"security": "Curve"})
        yield store


def status(store):
    return store.get("BrokerFleet", "f")["status"]


def test_each_mediator_has_a_higher_epoch(store):
    assert mediator_epoch.claim_next_epoch(store, "f") == 1
    assert mediator_epoch.claim_next_epoch(store, "f") == 2
    assert status(store) == {"security": "Curve", "mediatorEpoch": 2}


def test_only_the_present_one_may_go_on(store):
    first = mediator_epoch.claim_next_epoch(store, "f")
    mediator_epoch.check_epoch(store, "f", first)
    second = mediator_epoch.claim_next_epoch(store, "f")
    with pytest.raises(mediator_epoch.LocalMediatorDeposedError, match="mediator epoch 1 is over: 2 has begun"):
        mediator_epoch.check_epoch(store, "f", first)
    mediator_epoch.check_epoch(store, "f", second)


def test_the_next_one_is_above_what_others_have_heard_of(store):
    mediator_epoch.claim_next_epoch(store, "f")
    assert mediator_epoch.record_higher_epoch(store, "f", 9) == 9
    assert mediator_epoch.record_higher_epoch(store, "f", 4) == 9
    assert mediator_epoch.claim_next_epoch(store, "f") == 10
