"""The counter that tells mediators apart."""

import pytest

from plimsoll.local import epochs
from plimsoll.local.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as store:
        store.create({"kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": {}}, "now")
        store.set_status("BrokerFleet", "f", lambda item: {"security": "Curve"})
        yield store


def status(store):
    return store.get("BrokerFleet", "f")["status"]


def test_each_mediator_has_a_higher_epoch(store):
    assert epochs.raise_epoch(store, "f") == 1
    assert epochs.raise_epoch(store, "f") == 2
    assert status(store) == {"security": "Curve", "mediatorEpoch": 2}


def test_only_the_present_one_may_go_on(store):
    first = epochs.raise_epoch(store, "f")
    epochs.check(store, "f", first)
    second = epochs.raise_epoch(store, "f")
    with pytest.raises(epochs.DeposedError, match="mediator epoch 1 is over: 2 has begun"):
        epochs.check(store, "f", first)
    epochs.check(store, "f", second)


def test_the_next_one_is_above_what_others_have_heard_of(store):
    epochs.raise_epoch(store, "f")
    assert epochs.raise_to(store, "f", 9) == 9
    assert epochs.raise_to(store, "f", 4) == 9
    assert epochs.raise_epoch(store, "f") == 10
