"""Brokers as the stored resources want them, with no supervisor: which are added, kept, evacuated and forgotten."""

import sys

import pytest
from tests.local.conftest import FLEET

from plimsoll.core.spec import parse
from plimsoll.local import keys, manifests, runtime
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision import broker_reconciler, supervised_broker, supervised_head
from plimsoll.local.supervision.broker_reconciler import KEYS_READ_SECONDS, BrokerReconciler, FleetStartError
from plimsoll.local.supervision.fleet_events import FleetEvents
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.mediator import evacuation, fleet_resources, session_objects

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


class FakeControl:
    """Which brokers are dialled."""

    def __init__(self):
        self.dialled = set()

    def dial(self, peer, role):
        self.dialled.add(peer.name)

    def hang_up(self, broker):
        self.dialled.remove(broker)

    def ask(self, broker):
        assert broker in self.dialled

    def ask_leadership(self, process):
        assert process in self.dialled

    def send(self, broker, record):
        assert broker in self.dialled


class Place:
    """A store with the resources of a fleet, and its reconciler; `said` is what was announced."""

    def __init__(self, home):
        self.folder, self.control = FleetFolder.of("quotes"), FakeControl()
        self.said: list[str] = []
        self.brokers: dict[str, SupervisedBroker] = {}
        self.folder.make()
        runtime.prepare_store(self.folder, self.parsed(home, FLEET))
        self.store = ObjectStore(self.folder.store)
        resources = fleet_resources.fleet_resources(self.store.objects(*fleet_resources.FLEET_KINDS)[1])
        events = FleetEvents(self.store, "quotes", self.brokers, self.said.append)
        self.reconciler = BrokerReconciler(
            self.folder, self.store, resources, self.brokers, self.control, events, lambda config: SLEEP, ()
        )

    @staticmethod
    def parsed(home, text):
        (home / "fleet.yaml").write_text(text)
        return parse(manifests.load([str(home / "fleet.yaml")]))

    def change(self, kind, name, **spec):
        item = self.store.get(kind, name)
        self.store.update({**item, "spec": {**item["spec"], **spec}})

    def serve(self, now):
        for broker in self.brokers.values():
            broker.on_status({"ready": True}, now, lambda *event: None)


@pytest.fixture
def place(home):
    place = Place(home)
    yield place
    for broker in place.brokers.values():
        broker.kill()
    place.store.close()


def test_each_wanted_broker_is_started_once_and_dialled(place):
    assert place.reconciler.is_due()
    assert place.reconciler.reconcile(0.0, is_ready=False)
    assert sorted(place.brokers) == ["e-0", "e-1", "east-head"]
    assert all(broker.running for broker in place.brokers.values())
    assert place.control.dialled == set(place.brokers)
    while place.reconciler.is_due():  # it has stored the edges itself
        assert not place.reconciler.reconcile(0.0, is_ready=False)
    assert len(place.brokers) == 3


def test_in_a_running_fleet_a_new_broker_waits_until_its_key_is_known(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    place.change("BrokerCluster", "east", edges=[{"name": "e", "profile": "small", "replicas": 3}])
    assert place.reconciler.reconcile(100.0, is_ready=True)
    assert not place.brokers["e-2"].running
    assert place.brokers["e-2"].observed(100.0).waiting_seconds == KEYS_READ_SECONDS
    assert "edge e-2" in " ".join(place.folder.authorized_keys.read_text().split())


def test_a_cordon_changes_no_broker_but_what_the_head_is_sent(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    place.change("EdgeBroker", "e-1", cordoned=True)
    assert place.reconciler.reconcile(1.0, is_ready=True)
    members = place.reconciler.members_of(place.brokers["east-head"])
    assert (members.edges, members.cordoned) == (("e-0", "e-1"), ("e-1",))
    assert place.reconciler.members_of(place.brokers["e-0"]) is None


def test_an_edge_that_serves_is_stopped_after_its_evacuation_and_then_forgotten(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    place.serve(1.0)
    place.change("BrokerCluster", "east", edges=[{"name": "e", "profile": "small", "replicas": 1}])
    assert place.reconciler.reconcile(1.0, is_ready=True)
    edge = place.brokers["e-1"]
    (session,) = place.store.objects("LoadBalancingSession")[1]
    assert session["metadata"]["labels"] == {session_objects.EVACUATION_LABEL: "e-1"}
    assert not edge.stopping
    assert place.reconciler.members_of(place.brokers["east-head"]).cordoned == ("e-1",)
    place.reconciler.reconcile(1.0 + evacuation.LONGEST_SECONDS - 1, is_ready=True)
    assert not edge.stopping
    place.reconciler.reconcile(1.0 + evacuation.LONGEST_SECONDS, is_ready=True)
    assert edge.stopping
    edge.kill()
    place.reconciler.forget(edge)
    assert "e-1" not in place.brokers
    assert "e-1" not in place.control.dialled
    assert [item["metadata"]["name"] for item in place.store.objects("EdgeBroker")[1]] == ["e-0"]


def test_resources_that_cannot_be_used_change_nothing_or_end_the_start(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    place.change("BrokerCluster", "east", head={"profile": "unknown"})
    assert not place.reconciler.reconcile(1.0, is_ready=True)
    assert len(place.brokers) == 3
    assert place.said[-1].startswith("invalid resources, the fleet keeps running unchanged: ")
    assert place.store.events("BrokerFleet", "quotes")[-1].reason == "InvalidSpec"
    for broker in list(place.brokers.values()):
        broker.kill()
        place.reconciler.forget(broker)
    with pytest.raises(FleetStartError, match="unknown"):
        place.reconciler.reconcile(2.0, is_ready=False)


def test_an_evacuation_that_waits_its_turn_is_not_given_up(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    place.serve(1.0)
    place.change("BrokerCluster", "east", edges=[{"name": "e", "profile": "small", "replicas": 1}])
    place.reconciler.reconcile(1.0, is_ready=True)
    edge, longest = place.brokers["e-1"], evacuation.LONGEST_SECONDS
    (session,) = place.store.objects("LoadBalancingSession")[1]

    def becomes(now, **status):
        place.store.set_status("LoadBalancingSession", session["metadata"]["name"], lambda item: status)
        place.reconciler.reconcile(now, is_ready=True)

    becomes(longest, requestedAt="a")
    becomes(2 * longest - 1, requestedAt="a", startedAt="b")
    becomes(3 * longest - 2, requestedAt="a", startedAt="b", message="it moves subscribers")
    assert not edge.stopping
    becomes(3 * longest - 1, requestedAt="a", startedAt="b", message="still")
    assert edge.stopping


def test_what_cannot_be_written_is_reconciled_again(place, monkeypatch):
    def full(path, text):
        raise StateWriteError(path, "no space is left on its disk", "free space there")

    monkeypatch.setattr(keys, "write_private", full)
    with pytest.raises(StateWriteError):
        place.reconciler.reconcile(0.0, is_ready=False)
    assert (place.brokers, place.reconciler.is_due()) == ({}, True)
    monkeypatch.undo()
    for module in (supervised_broker, supervised_head):
        monkeypatch.setattr(module, "write_private", full)
    with pytest.raises(StateWriteError):
        place.reconciler.reconcile(0.0, is_ready=False)
    assert (place.brokers, place.reconciler.is_due()) == ({}, True)
    monkeypatch.undo()
    assert place.reconciler.reconcile(0.0, is_ready=False)
    assert len(place.brokers) == 3
    edge = place.brokers["e-1"]
    edge.kill()
    monkeypatch.setattr(broker_reconciler, "remove", lambda path: full(path, ""))
    with pytest.raises(StateWriteError):
        place.reconciler.forget(edge)
    assert "e-1" in place.brokers
    monkeypatch.undo()
    place.reconciler.forget(edge)
    assert "e-1" not in place.brokers


def test_a_standby_that_is_set_gives_the_head_that_runs_two_ports_and_keeps_its_process(place):
    place.reconciler.reconcile(0.0, is_ready=False)
    head = place.brokers["east-head"]
    pid = head.observed(0.0).pid
    place.change("BrokerCluster", "east", head={"profile": "small", "standby": 1})
    place.reconciler.reconcile(1.0, is_ready=False)
    assert place.brokers["east-head"] is head
    assert (head.observed(1.0).pid, head.config.standby is not None, len(set(head.controls))) == (pid, True, 2)
    assert all(end.startswith("tcp://127.0.0.1:") for end in head.controls)
