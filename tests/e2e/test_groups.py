"""Consumers in pods that a HorizontalPodAutoscaler scales by what their group has to do: up, and down again.

The figures are served by the operator as external.metrics.k8s.io. Consumers write down what they process, and over all
changes of their number each item may be processed once: pods that go leave their group first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, TAG, Cluster, CommandError, Object, run

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(900)]

EXAMPLES = ROOT / "examples" / "kubernetes"
SCRIPT = Path(__file__).with_name("readings.py")
API = "v1beta1.external.metrics.k8s.io"
WORK_SECONDS = 0.02
LOW, HIGH = 10.0, 110.0
"""Publications per second: half of what one consumer works off, and what keeps more than two busy."""


@pytest.fixture(scope="module")
def served(installed: Cluster) -> Iterator[Cluster]:
    """With the figures served. The API is the cluster's, so that it must go before the namespace does."""
    chart = str(ROOT / "helm" / "plimsoll")
    if run("kubectl", "get", "apiservice", API, "--ignore-not-found", "-o", "name").strip():
        pytest.skip(f"{API} is served by something else in this cluster")

    def serve(enabled: str) -> None:
        installed.helm("upgrade", "plimsoll", chart, "--reuse-values", "--set", f"externalMetrics.enabled={enabled}")

    def is_routed() -> bool:
        slices = installed.get("endpointslices", selector="kubernetes.io/service-name=plimsoll")
        ports = {port["name"] for each in slices if each.get("endpoints") for port in each.get("ports") or ()}
        return "https" in ports

    # Some networks answer for addresses that nothing serves, and the API server would keep such a connection: the port
    # is routed before it can ask, and it asks again only once the operator can be reached.
    port = {"name": "https", "port": 8443, "protocol": "TCP", "targetPort": "https"}
    patch = json.dumps([{"op": "add", "path": "/spec/ports/-", "value": port}])
    installed.kubectl("patch", "service", "plimsoll", "--type=json", "-p", patch)
    serve("true")
    try:
        run("kubectl", "delete", "apiservice", API)
        installed.kubectl("rollout", "status", "deployment/plimsoll", "--timeout=120s", seconds=150)
        installed.wait(is_routed, 60, "the operator's port to be routed")
        serve("true")
        is_served = "jsonpath={.status.conditions[?(@.type=='Available')].status}"
        installed.wait(lambda: run("kubectl", "get", "apiservice", API, "-o", is_served) == "True", 90, "the API")
        yield installed
    finally:
        serve("false")


def consumers() -> dict[str, Object]:
    """The example's objects by kind, with the program of these tests in place of the example's."""
    text = (EXAMPLES / "applications" / "consumers.yaml").read_text()
    found = {item["kind"]: item for item in yaml.safe_load_all(text)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container |= {"image": f"plimsoll/broker:{TAG}", "command": ["python", "/app/readings.py", "consume"]}
    container["env"] += [{"name": "WORK_SECONDS", "value": str(WORK_SECONDS)}, {"name": "FEED", "value": "feed"}]
    found["ConfigMap"]["data"] = {"readings.py": SCRIPT.read_text()}
    found["HorizontalPodAutoscaler"]["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 15
    return found


def feed_objects(consumer: Object) -> list[Object]:
    """The feed, as a pod like those of the consumers, and its name in the namespace."""
    pod = json.loads(json.dumps(consumer["spec"]["template"]))
    pod["spec"]["containers"][0]["command"][-1] = "feed"
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    port = {"port": 9000}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "feed", "labels": {"app": "feed"}},
         "spec": {**pod["spec"], "restartPolicy": "Never"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "feed"},
         "spec": {"selector": {"app": "feed"}, "ports": [port]}},
    ]  # fmt: skip


class Readings:
    """The feed and the consumers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def ask(self, path: str, said: Any = None) -> Object:
        """What the feed answers; `said` is posted."""
        data = "None" if said is None else f"b'{json.dumps(said)}'"
        code = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:9000{path}', {data}).read().decode())"
        found: Object = json.loads(self.cluster.kubectl("exec", "feed", "--", "python", "-c", code))
        return found

    def pods(self) -> list[str]:
        """Consumers that run, those that end included."""
        return [pod["metadata"]["name"] for pod in self.cluster.get("pods", selector="app=readings")]

    def figure(self, metric: str) -> str:
        """The value of a metric, as the API server gives it to an autoscaler."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.cluster.namespace}/{metric}"
        found = json.loads(run("kubectl", "get", "--raw", f"{path}?labelSelector=group%3Dreadings%2Ccluster%3Deast"))
        (item,) = found["items"]
        return str(item["value"])

    def group(self) -> Object:
        (found,) = self.cluster.get("brokercluster", "east")["status"]["consumerGroups"]
        return dict(found)


@pytest.fixture(scope="module")
def readings(served: Cluster) -> Readings:
    """The example's fleet, its consumers, and the feed."""
    objects = consumers()
    served.apply(*yaml.safe_load_all((EXAMPLES / "groups.yaml").read_text()))
    served.wait(lambda: served.is_true("brokercluster", "east", "Ready"), 240, "the cluster to be ready")
    served.apply(*objects.values(), *feed_objects(objects["Deployment"]))
    found = Readings(served)
    served.wait(found.group, 120, "the group in the status")
    served.wait(lambda: found.group()["members"] == 1, 180, "the first consumer")
    return found


def test_the_figures_of_a_group_are_those_that_its_head_has(readings: Readings):
    cluster = readings.cluster
    cluster.wait(lambda: readings.figure("plimsoll_group_lag_items") == "0", 60, "a group without lag")
    with pytest.raises(CommandError, match="no metric other"):
        run("kubectl", "get", "--raw", f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{cluster.namespace}/other")
    assert readings.pods()[0] in cluster.plimsoll("get", "consumers")


def test_consumers_come_and_go_with_the_load_and_each_item_is_processed_once(readings: Readings):
    cluster = readings.cluster
    readings.ask("/rate", LOW)
    cluster.wait(lambda: readings.ask("/progress")["finished"] > 5 * LOW, 120, "items to be processed")
    readings.ask("/rate", HIGH)
    cluster.wait(lambda: len(readings.ask("/progress")["consumers"]) >= 3, 240, "three consumers that work")
    autoscaler = cluster.get("hpa", "readings")
    assert {each["type"] for each in autoscaler["status"]["currentMetrics"]} == {"External"}
    few = 2 * HIGH  # acknowledgements come once a second
    cluster.wait(lambda: int(readings.figure("plimsoll_group_lag_items")) < few, 180, "the lag to be worked off")
    readings.ask("/rate", LOW)
    cluster.wait(lambda: len(readings.pods()) == 1, 300, "all consumers but one to have ended")
    found = readings.ask("/verdict")
    assert [found[law] for law in ("lost", "repeated", "redelivered", "reordered", "overlapping")] == [0] * 5, found
    assert found["processed_once"] == found["sent"] > 0, found
    assert set(found["left"]) == set(found["consumers"]) - set(readings.pods()), found
    assert len(found["left"]) >= 2, found
