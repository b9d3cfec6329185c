"""The objects that the chart renders for given values."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helm.conftest import Objects, Render, RenderError

from plimsoll.operator.metrics_api.group_figures import FIGURES
from plimsoll.operator.names import MANAGER
from plimsoll.operator.process import CANARY_LABEL
from plimsoll.sparkjobs.launch.executors import service_account_objects
from plimsoll.sparkjobs.launch.spec import SparkLaunch

KINDS_BY_DEFAULT = {
    "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "Deployment", "Service", "PodDisruptionBudget",
    "NetworkPolicy", "Pod", "ConfigMap",
}  # fmt: skip


def of(objects: Objects, kind: str) -> Objects:
    return [item for item in objects if item["kind"] == kind]


def only(objects: Objects, kind: str) -> dict[str, Any]:
    (item,) = of(objects, kind)
    return item


def pods(objects: Objects) -> list[dict[str, Any]]:
    return [only(objects, "Deployment")["spec"]["template"]["spec"], *(item["spec"] for item in of(objects, "Pod"))]


def test_by_default(render: Render):
    objects = render()
    assert {item["kind"] for item in objects} == KINDS_BY_DEFAULT
    assert {item["metadata"].get("namespace", "ships") for item in objects} == {"ships"}
    assert len(of(objects, "CustomResourceDefinition")) == 8


def test_names_follow_the_release(render: Render):
    assert only(render(), "Deployment")["metadata"]["name"] == "plimsoll"
    assert only(render("other"), "Deployment")["metadata"]["name"] == "other-plimsoll"


@pytest.mark.parametrize(
    ("values", "namespace"),
    [({}, "ships"), ({"watchNamespaces": ["trains", "planes"]}, "trains"),
     ({"watchNamespaces": ["trains", "ships"]}, "ships"), ({"rbac": {"scope": "Cluster"}}, "ships")],
)  # fmt: skip
def test_what_the_operator_writes_for_itself_goes_with_the_release(
    values: dict[str, Any], namespace: str, render: Render
):
    objects = render("other", **values)
    canary = only(objects, "ConfigMap")
    assert (canary["metadata"]["namespace"], canary["metadata"]["name"]) == (namespace, "other-plimsoll-canary")
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"name": "PLIMSOLL_CANARY", "value": f"{namespace}/other-plimsoll-canary"} in container["env"]
    labels = canary["metadata"]["labels"]  # by which the operator's watches find it, before it has written it
    assert (labels["app.kubernetes.io/managed-by"], labels[CANARY_LABEL]) == (MANAGER, "true")
    assert "data" not in canary, "an upgrade leaves alone what the operator has written"


def test_definitions_are_kept_unless_told_otherwise(render: Render):
    def kept(objects: Objects) -> set[bool]:
        return {
            item["metadata"]["annotations"].get("helm.sh/resource-policy") == "keep"
            for item in of(objects, "CustomResourceDefinition")
        }

    assert kept(render()) == {True}
    assert of(render(crds={"install": False}), "CustomResourceDefinition") == []
    loose = of(render(crds={"keep": False}), "CustomResourceDefinition")
    assert all("helm.sh/resource-policy" not in item["metadata"].get("annotations", {}) for item in loose)


@pytest.mark.parametrize("values", [{}, {"rbac": {"scope": "Cluster"}}])
def test_pods_keep_to_restricted_security(render: Render, values: dict[str, Any]):
    for pod in pods(render(**values)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_probes_wait_for_a_busy_node(render: Render):
    (container,) = only(render(), "Deployment")["spec"]["template"]["spec"]["containers"]
    waits = {name: probe.get("timeoutSeconds", 1) for name, probe in container.items() if name.endswith("Probe")}
    assert waits == {"livenessProbe": 5, "readinessProbe": 5, "startupProbe": 5}


def test_one_version_of_the_operator_at_a_time(render: Render):
    for number in (1, 2):
        spec = only(render(replicas=number), "Deployment")["spec"]
        assert (spec["replicas"], spec["strategy"]) == (number, {"type": "Recreate"})


def test_several_operators_prefer_different_nodes_unless_told_otherwise(render: Render):
    def affinity(**values: Any) -> dict[str, Any]:
        found = only(render(**values), "Deployment")["spec"]["template"]["spec"].get("affinity", {})
        return dict(found)

    own: dict[str, Any] = {"nodeAffinity": {}, "podAntiAffinity": {}}
    assert (affinity(), affinity(affinity=own), affinity(replicas=2, affinity=own)) == ({}, own, own)
    (term,) = affinity(replicas=2)["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    spec = only(render(), "Deployment")["spec"]
    assert term["podAffinityTerm"]["labelSelector"] == spec["selector"]
    assert "nodeAffinity" in affinity(replicas=2, affinity={"nodeAffinity": {"x": []}})


def test_figures_for_autoscalers_are_of_the_only_operator(render: Render):
    render(replicas=1, externalMetrics={"enabled": True})
    with pytest.raises(RenderError, match=r"externalMetrics\.enabled needs replicas: 1"):
        render(replicas=2, externalMetrics={"enabled": True})


def test_the_operator_leaves_a_lost_node_soon_with_any_other_tolerations(render: Render):
    def tolerated(**values: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = only(render(**values), "Deployment")["spec"]["template"]["spec"]["tolerations"]
        return found

    lost = {"operator": "Exists", "effect": "NoExecute"}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    assert tolerated() == [{"key": key, **lost, "tolerationSeconds": 10} for key in keys]
    own = {"key": "dedicated", "operator": "Exists"}
    assert tolerated(tolerations=[own], lostNodeAfterSeconds=30) == [
        *({"key": key, **lost, "tolerationSeconds": 30} for key in keys), own,
    ]  # fmt: skip


def test_secrets_to_pull_with_are_for_all_pods(render: Render):
    objects = render(imagePullSecrets=["here", "there"])
    assert only(objects, "Deployment")["spec"]["template"]["spec"]["imagePullSecrets"] == [
        {"name": "here"}, {"name": "there"},
    ]  # fmt: skip
    assert environment(objects)["PLIMSOLL_IMAGE_PULL_SECRETS"] == "here,there"


def test_pull_secrets_may_be_written_as_kubernetes_writes_them_and_come_from_an_umbrella_chart(render: Render):
    objects = render(imagePullSecrets=[{"name": "here"}, "there"], **{"global": {"imagePullSecrets": ["all", "here"]}})
    wanted = [{"name": "all"}, {"name": "here"}, {"name": "there"}]
    assert [pod["imagePullSecrets"] for pod in pods(objects)] == [wanted, wanted]
    assert environment(objects)["PLIMSOLL_IMAGE_PULL_SECRETS"] == "all,here,there"


def test_names_can_be_overridden(render: Render):
    assert only(render("shop", nameOverride="balance"), "Deployment")["metadata"]["name"] == "shop-balance"
    assert only(render(fullnameOverride="own"), "Deployment")["metadata"]["name"] == "own"


def test_the_chart_test_waits_within_a_bound(render: Render):
    script = only(render(tests={"waitSeconds": 7}), "Pod")["spec"]["containers"][0]["command"][-1]
    compile(script, "ready", "exec")
    assert "time.monotonic() + 7" in script


def test_rights_are_of_the_watched_namespaces(render: Render):
    objects = render(watchNamespaces=["east", "west"])
    assert sorted(item["metadata"]["namespace"] for item in of(objects, "Role")) == ["east", "west"]
    assert sorted(item["metadata"]["namespace"] for item in of(objects, "RoleBinding")) == ["east", "west"]
    assert {s["namespace"] for item in of(objects, "RoleBinding") for s in item["subjects"]} == {"ships"}
    assert environment(objects)["PLIMSOLL_NAMESPACES"] == "east,west"
    assert of(objects, "ClusterRole") == []


def test_rights_are_of_the_whole_cluster_by_one_value(render: Render):
    objects = render(rbac={"scope": "Cluster"})
    assert of(objects, "Role") == []
    assert only(objects, "ClusterRole")["rules"] == only(render(), "Role")["rules"]
    assert environment(objects)["PLIMSOLL_NAMESPACES"] == ""


def test_nodes_are_read_with_cluster_wide_rights_only(render: Render):
    rules = only(render(rbac={"scope": "Cluster", "readNodes": True}), "ClusterRole")["rules"]
    assert rules[-1]["resources"] == ["nodes"]
    with pytest.raises(RenderError, match="nodes belong to no namespace"):
        render(rbac={"readNodes": True})


def test_the_operator_has_every_right_that_it_grants_to_drivers_of_spark(render: Render):
    """The API server refuses a Role with a right that its creator lacks."""
    own = rights_of(only(render(rbac={"spark": True}), "Role"))
    launch = SparkLaunch(fleet="tide", namespace="prod", image="plimsoll/spark:1", claim="telemetry")
    [granted] = [item for item in service_account_objects(launch) if item["kind"] == "Role"]
    assert rights_of(granted) <= own


def rights_of(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Each right of a role: group, resource and verb."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_no_rule_has_a_wildcard(render: Render):
    for rule in only(render(rbac={"spark": True}), "Role")["rules"]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"rbac": {"scope": "Everything"}}, "rbac"),
        ({"replicas": 0}, "replicas"),
        ({"watchNamespaces": ["Not A Name"]}, "watchNamespaces"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    ],
)
def test_wrong_values_are_refused_by_name(render: Render, values: dict[str, Any], complaint: str):
    with pytest.raises(RenderError, match=complaint):
        render(**values)


def test_monitors_and_alerts_are_off_by_default_and_come_when_asked_for(render: Render):
    values = {
        "metrics": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "p"}},
            "prometheusRule": {"enabled": True},
        }
    }
    objects = render(**values)
    assert {item["kind"] for item in objects} - KINDS_BY_DEFAULT == {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
    assert only(objects, "ServiceMonitor")["metadata"]["labels"]["release"] == "p"
    assert only(objects, "PodMonitor")["spec"]["namespaceSelector"] == {"matchNames": ["ships"]}


def test_figures_for_autoscalers_are_served_when_asked_for(render: Render):
    objects = render(externalMetrics={"enabled": True})
    assert {item["kind"] for item in objects} - KINDS_BY_DEFAULT == {"APIService", "ClusterRole", "Secret"}
    api, secret, service = (only(objects, kind) for kind in ("APIService", "Secret", "Service"))
    assert api["metadata"]["name"] == "v1beta1.external.metrics.k8s.io"
    assert api["spec"]["service"] == {"name": service["metadata"]["name"], "namespace": "ships", "port": 8443}
    assert api["spec"]["caBundle"] == secret["data"]["ca.crt"]
    assert "https" in [port["targetPort"] for port in service["spec"]["ports"]]
    assert {"port": "https"} in only(objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"]
    (pod,) = [only(objects, "Deployment")["spec"]["template"]["spec"]]
    (mounted,) = [each for each in pod["volumes"] if "secret" in each]
    assert mounted["secret"]["secretName"] == secret["metadata"]["name"]
    folders = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert environment(objects)["PLIMSOLL_METRICS_TLS"] == folders[mounted["name"]]
    assert only(objects, "ClusterRole")["rules"][0]["resources"] == list(FIGURES)


def environment(objects: Objects) -> dict[str, str]:
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item.get("value", "") for item in container["env"]}
