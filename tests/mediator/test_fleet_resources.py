from plimsoll.mediator.fleet_resources import fingerprint, fleet_resources, owning_cluster, unsupervised, with_cordon_of


def make(kind, name, generation=1, spec=None, **metadata):
    meta = {"name": name, "generation": generation, **metadata}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec or {}}


OWNED = {"ownerReferences": [{"kind": "BrokerCluster", "name": "c", "controller": True}]}


def test_objects_that_are_being_deleted_are_not_asked_for():
    profile = make("HardwareProfile", "p")
    cluster = make("BrokerCluster", "c", spec={"head": {"profile": "p"}})
    leaving = make("BrokerCluster", "d", spec={"head": {"profile": "gone"}}, deletionTimestamp="now")
    assert list(fleet_resources([profile, cluster, leaving]).clusters) == ["c"]


def test_the_fingerprint_changes_with_specifications_only():
    before = [make("BrokerFleet", "f")]
    assert fingerprint(before) == fingerprint([{**before[0], "status": {"x": 1}}])
    assert fingerprint(before) != fingerprint([make("BrokerFleet", "f", generation=2)])
    assert fingerprint(before) != fingerprint([make("BrokerFleet", "f", deletionTimestamp="now")])
    assert fingerprint(before) != fingerprint([])


def test_who_made_an_edge():
    assert owning_cluster(make("EdgeBroker", "e", **OWNED)) == "c"
    assert owning_cluster(make("EdgeBroker", "e")) is None


def test_a_status_without_an_observer_is_unknown():
    status = {"state": "OK", "pid": 7, "conditions": [{"type": "Ready", "status": "True", "reason": "Answering"}]}
    shown = unsupervised({**make("EdgeBroker", "e"), "status": status})["status"]
    assert shown["state"] == "N/A"
    assert shown["conditions"][0]["status"] == "Unknown"
    assert shown["conditions"][0]["reason"] == "NotSupervised"
    assert unsupervised(make("HardwareProfile", "p")) == make("HardwareProfile", "p")


def test_a_session_that_is_over_stays_as_it_ended():
    item = {**make("LoadBalancingSession", "s"), "status": {"endedAt": "then", "conditions": [{"status": "True"}]}}
    assert unsupervised(item) == item
    running = {**item, "status": {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Draining"}]}}
    assert unsupervised(running)["status"]["conditions"][0]["reason"] == "NotSupervised"


def test_a_cluster_does_not_uncordon_its_edges():
    new = make("EdgeBroker", "e", spec={"profile": "p"})
    assert with_cordon_of(new, None) == new
    assert with_cordon_of(new, make("EdgeBroker", "e", spec={"profile": "old"})) == new
    kept = with_cordon_of(new, make("EdgeBroker", "e", spec={"profile": "old", "cordoned": True}))
    assert kept["spec"] == {"profile": "p", "cordoned": True}
    assert "cordoned" not in new["spec"]
