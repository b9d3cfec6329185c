"""How kopf is configured to watch; that it does is tested on a cluster."""

import asyncio
import itertools
from typing import Any

from plimsoll.operator import watch
from plimsoll.operator.metrics import OperatorMetrics


def test_it_never_gives_up_and_posts_nothing():
    found = watch.kopf_settings()
    assert found.peering.standalone
    assert found.scanning.disabled
    assert not found.posting.enabled
    pauses = list(itertools.islice(iter(found.networking.error_backoffs), 1000))  # type: ignore[arg-type]  # kopf allows one number, too
    assert 0 < min(pauses) <= max(pauses) <= watch.LONGEST_PAUSE_SECONDS
    server, client = found.watching.server_timeout, found.watching.client_timeout
    assert (type(server), type(client)) == (int, int)  # the API server accepts no fraction
    assert (client or 0) > (server or 0) > 0


def test_children_are_watched_by_their_label_and_nodes_only_where_allowed():
    labelled = {*watch.CHILD_KINDS, *watch.SPARK_KINDS}
    assert len(list(watch.kopf_settings().watching.label_selectors)) == len(labelled)
    watches = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=False)
    allowed = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=False, spark=True)
    assert set(allowed.kinds) - set(watches.kinds) == set(watch.SPARK_KINDS)
    for nodes in (False, True):
        watches = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=nodes)
        assert (watches.nodes() is not None) is nodes
        assert list(watches.objects("ns")) == []


def test_status_of_our_own_is_no_news():
    edge: dict[str, Any] = {"kind": "EdgeBroker", "metadata": {"name": "e", "generation": 1, "resourceVersion": "5"}}
    before = watch.relevant_fields(edge)
    edge["status"], edge["metadata"]["resourceVersion"] = {"load": {"cpuPercent": 7}}, "6"
    assert watch.relevant_fields(edge) == before
    edge["metadata"]["annotations"] = {"plimsoll.dev/rotate-keys": "1"}
    assert watch.relevant_fields(edge) != before
    session: dict[str, Any] = {"kind": "LoadBalancingSession", "metadata": {"name": "s"}, "status": {}}
    going = watch.relevant_fields(session)
    session["status"] |= {"progress": {"moved": 3}, "phase": "Draining"}
    assert watch.relevant_fields(session) == going
    session["status"]["endedAt"] = "now"
    assert watch.relevant_fields(session) != going
    fleet: dict[str, Any] = {"kind": "BrokerFleet", "metadata": {"name": "f"}, "status": {"mediatorEpoch": 1}}
    before = watch.relevant_fields(fleet)
    fleet["status"]["mediatorEpoch"] = 2
    assert watch.relevant_fields(fleet) != before


def test_indexes_are_read_by_namespace():
    watches = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=False)
    pod: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "p"}}
    given: dict[str, Any] = {kind: {} for kind in (*watch.CUSTOM_KINDS, *watch.CHILD_KINDS)}
    asyncio.run(watches._use_indices(**{**given, "Pod": {"ns": [pod]}}))
    assert list(watches.objects("ns")) == [pod]
    assert list(watches.objects("other")) == []
    assert watches.all_of_kind("Pod") == [pod]
