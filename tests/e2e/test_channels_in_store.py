"""A feed, a channel and its ledger in a real object store, in pods without a volume: each result comes once.

The server runs on this machine, so its node has to be this machine. The tests of this module continue one another.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, manifest, run
from tests.e2e.test_channels import DRIVER, QUERY, RECORDER, START_SECONDS, ChannelReaderPod, channel
from tests.feeds.s3_server import BUCKET, running_store

from plimsoll.feeds.object_path import dataset_root

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.e2e,
    pytest.mark.images("broker", "operator", "collector", "spark"),
    pytest.mark.timeout(1200),
]

PLACE = f"s3a://{BUCKET}/pods"
RESULTS_BETWEEN_KILLS = 30


def address_of_node() -> str:
    """The address of the node, if it is one of this machine; the test is skipped by name if it is not."""
    path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}'
    address = run("kubectl", "get", "nodes", "-o", f"jsonpath={path}").strip()
    try:
        socket.create_server((address, 0)).close()
    except OSError:
        pytest.skip(f"needs a cluster whose node is this machine: {address} is another one")
    return address


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with running_store(tmp_path_factory.mktemp("store"), address_of_node()) as environment:
        yield environment


@pytest.fixture(scope="module")
def fleet(installed: Cluster, store: Mapping[str, str]) -> Cluster:
    """The quick start's fleet, with a place in a store for all that feeds and channels keep."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store"}, "stringData": dict(store)}
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text()))
    for each in objects:
        if each["kind"] == "BrokerFleet":
            each["spec"]["datasets"] = {"storeSecret": "store", "ledgers": f"{PLACE}/channels"}
    columns = [{"name": "kind", "type": "String"}, {"name": "number", "type": "Integer"}]
    feed = manifest("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s", path=f"{PLACE}/reports",
                    schema={"columns": columns, "unknownAttributes": "Drop"})  # fmt: skip
    installed.apply(secret, *objects, feed, channel("kinds", QUERY))
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
    return installed


def test_both_run_without_a_volume(fleet: Cluster):
    fleet.wait(lambda: fleet.is_true("feed", "reports", "Recording"), START_SECONDS, "the recorder to be attached")
    fleet.wait(lambda: fleet.is_true("channel", "kinds", "Running"), START_SECONDS, "the driver to run the channel")
    assert fleet.get("persistentvolumeclaim") == []
    assert fleet.get("feed", "reports")["status"]["path"] == f"{PLACE}/reports"


def test_each_result_comes_once_while_pods_are_killed(fleet: Cluster):
    reader = ChannelReaderPod(fleet, "reader", RESULTS_BETWEEN_KILLS)
    for victim in (f"{DRIVER}-0", f"{RECORDER}-0"):
        reader.kill(victim)
    reader.judge(2 * RESULTS_BETWEEN_KILLS)


def test_the_ledger_is_in_the_store(fleet: Cluster, store: Mapping[str, str], monkeypatch: pytest.MonkeyPatch):
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    status = fleet.get("channel", "kinds")["status"]
    assert status["results"] == status["acceptedResults"] > 0
    assert (dataset_root(f"{PLACE}/channels/kinds") / "position.json").exists()
