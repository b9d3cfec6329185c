"""How kopf is told to watch; that it does is tested on a cluster."""

import asyncio
import itertools
from typing import Any

from plimsoll.operator import watching
from plimsoll.operator.metrics import Metrics


def test_it_never_gives_up_and_posts_nothing():
    found = watching.settings()
    assert found.peering.standalone
    assert found.scanning.disabled
    assert not found.posting.enabled
    pauses = list(itertools.islice(iter(found.networking.error_backoffs), 1000))  # type: ignore[arg-type]
    assert 0 < min(pauses) <= max(pauses) <= watching.LONGEST_PAUSE_SECONDS
    server, client = found.watching.server_timeout, found.watching.client_timeout
    assert (type(server), type(client)) == (int, int)  # the API server takes no fraction
    assert (client or 0) > (server or 0) > 0


def test_children_are_watched_by_their_label_and_nodes_only_where_allowed():
    labelled = {*watching.CHILDREN, *watching.SPARK}
    assert len(list(watching.settings().watching.label_selectors)) == len(labelled)
    watches = watching.Watches(lambda *told: None, Metrics(), nodes=False)
    allowed = watching.Watches(lambda *told: None, Metrics(), nodes=False, spark=True)
    assert set(allowed.kinds) - set(watches.kinds) == set(watching.SPARK)
    for nodes in (False, True):
        watches = watching.Watches(lambda *told: None, Metrics(), nodes=nodes)
        assert (watches.nodes() is not None) is nodes
        assert list(watches.objects("ns")) == []


def test_status_of_our_own_is_no_news():
    edge: dict[str, Any] = {"kind": "EdgeBroker", "metadata": {"name": "e", "generation": 1, "resourceVersion": "5"}}
    before = watching.essence(edge)
    edge["status"], edge["metadata"]["resourceVersion"] = {"load": {"cpuPercent": 7}}, "6"
    assert watching.essence(edge) == before
    edge["metadata"]["annotations"] = {"plimsoll.dev/rotate-keys": "1"}
    assert watching.essence(edge) != before
    session: dict[str, Any] = {"kind": "LoadBalancingSession", "metadata": {"name": "s"}, "status": {}}
    going = watching.essence(session)
    session["status"] |= {"progress": {"moved": 3}, "phase": "Draining"}
    assert watching.essence(session) == going
    session["status"]["endedAt"] = "now"
    assert watching.essence(session) != going
    fleet: dict[str, Any] = {"kind": "BrokerFleet", "metadata": {"name": "f"}, "status": {"mediatorEpoch": 1}}
    before = watching.essence(fleet)
    fleet["status"]["mediatorEpoch"] = 2
    assert watching.essence(fleet) != before


def test_indexes_are_read_by_namespace():
    watches = watching.Watches(lambda *told: None, Metrics(), nodes=False)
    pod: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "p"}}
    given: dict[str, Any] = {kind: {} for kind in (*watching.OWN, *watching.CHILDREN)}
    asyncio.run(watches._begin(**{**given, "Pod": {"ns": [pod]}}))
    assert list(watches.objects("ns")) == [pod]
    assert list(watches.objects("other")) == []
    assert watches.everywhere("Pod") == [pod]
