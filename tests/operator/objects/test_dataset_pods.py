"""What recorders and the driver share: the volume, the node, whom they reach, and paths that lead elsewhere."""

from __future__ import annotations

import json

from tests.operator.dataset_world import dataset_world, pod_spec, settled

from plimsoll.core.spec import SourceDocument, parse
from plimsoll.operator import names
from plimsoll.operator.objects.dataset_pods import TMP_FOLDER, path_problems

PODS = ("stocks-recorder-reports", "stocks-channels")


def test_a_claim_of_one_node_keeps_them_together_and_one_of_many_does_not():
    world, many = dataset_world(), dataset_world(datasets={"volumeClaim": "c", "volumeAccess": "ReadWriteMany"})
    for name in PODS:
        (term,) = pod_spec(world, name)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["labelSelector"]["matchExpressions"] == [{"key": names.DATASET_POD, "operator": "Exists"}]
        labels = world.objects["StatefulSet", name]["spec"]["template"]["metadata"]["labels"]
        assert labels[names.DATASET_POD] == name, "the first of them is beside itself"
        assert "affinity" not in pod_spec(many, name)


def test_they_reach_brokers_alone_and_are_reached_at_one_port():
    world = dataset_world()
    spec = world.objects["NetworkPolicy", names.DATASET_POLICY]["spec"]
    assert [[each["port"] for each in rule["ports"]] for rule in spec["ingress"]] == [[7420]]
    assert [each["port"] for each in spec["egress"][0]["ports"]] == [7400, 7401]
    brokers = world.objects["NetworkPolicy", names.NETWORK_POLICY]["spec"]["ingress"][1]["from"]
    assert {"podSelector": {"matchLabels": {names.FLEET: "stocks", "app.kubernetes.io/name": "plimsoll-channels"}}} in (
        brokers
    )


def test_an_object_store_is_entered_with_a_secret_and_may_be_anywhere():
    world = dataset_world(datasets={"volumeClaim": "c", "storeSecret": "store"})
    for name in PODS:
        assert pod_spec(world, name)["containers"][0]["envFrom"] == [{"secretRef": {"name": "store"}}]
        assert "envFrom" not in pod_spec(dataset_world(), name)["containers"][0]
    assert world.objects["NetworkPolicy", names.DATASET_POLICY]["spec"]["egress"] == [{}]
    world.spec("Feed", "reports", path="s3a://bucket/reports")
    settled(world)
    config = world.objects["ConfigMap", f"{PODS[0]}-config"]["data"]["config.json"]
    assert '"path":"s3a://bucket/reports"' in config


def test_without_a_volume_runs_what_keeps_all_of_it_in_a_store():
    world = dataset_world(datasets={"storeSecret": "store", "ledgers": "s3a://bucket/channels"})
    assert ("StatefulSet", PODS[0]) not in world.objects, "this feed would be on a volume"
    assert "affinity" not in pod_spec(world, PODS[1])
    config = json.loads(world.objects["ConfigMap", f"{PODS[1]}-config"]["data"]["config.json"])
    assert (config["folder"], config["scratch"]) == ("s3a://bucket/channels", f"{TMP_FOLDER}/_copies")
    world.spec("Feed", "reports", path="s3a://bucket/reports")
    settled(world)
    for name in PODS:
        assert not [each for each in pod_spec(world, name)["volumes"] if "persistentVolumeClaim" in each]
        assert "/data" not in [each["mountPath"] for each in pod_spec(world, name)["containers"][0]["volumeMounts"]]


def test_paths_that_lead_out_of_the_volume_are_problems():
    def document(kind: str, name: str, **spec: object) -> SourceDocument:
        content = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return SourceDocument(content)

    shared = {"parameters": [{"name": "k", "type": "String"}], "query": "SELECT 1"}
    paths = ["/t", "{../t,u/v}", r"u/.\./.\./t", "u/{v,w}-*.csv", "u/..v"]
    tables = [{"name": f"t{index}", "path": path} for index, path in enumerate(paths)]
    resources = parse([
        document("Feed", "out", subscription="[a,=,1]", path="/elsewhere"),
        document("Feed", "up", subscription="[a,=,1]", path="feeds/../../up"),
        document("Feed", "in", subscription="[a,=,1]", path="some/where"),
        document("Feed", "store", subscription="[a,=,1]", path="s3a://bucket/feeds"),
        document("Channel", "c", feeds=[{"name": "f", "feed": "in"}], tables=tables, **shared),
    ])  # fmt: skip
    assert [(each.subject, each.path) for each in path_problems(resources)] == [
        ("Feed/out", ("spec", "path")), ("Feed/up", ("spec", "path")),
        *(("Channel/c", ("spec", "tables", index, "path")) for index in range(3)),
    ]  # fmt: skip
