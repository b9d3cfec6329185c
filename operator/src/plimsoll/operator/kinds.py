"""The API group, version and path of each kind that the operator reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from plimsoll.core.spec import API_VERSION


@dataclass(frozen=True)
class ApiKind:
    """A kind's group and version as in manifests, and its name in paths."""

    api_version: str
    plural: str
    namespaced: bool = True


API_KINDS: Final = {
    "BrokerFleet": ApiKind(API_VERSION, "brokerfleets"),
    "BrokerCluster": ApiKind(API_VERSION, "brokerclusters"),
    "EdgeBroker": ApiKind(API_VERSION, "edgebrokers"),
    "HardwareProfile": ApiKind(API_VERSION, "hardwareprofiles"),
    "LoadBalancingSession": ApiKind(API_VERSION, "loadbalancingsessions"),
    "Feed": ApiKind(API_VERSION, "feeds"),
    "Channel": ApiKind(API_VERSION, "channels"),
    "Bundle": ApiKind(API_VERSION, "bundles"),
    "ConfigMap": ApiKind("v1", "configmaps"),
    "Namespace": ApiKind("v1", "namespaces", namespaced=False),
    "Node": ApiKind("v1", "nodes", namespaced=False),
    "PersistentVolumeClaim": ApiKind("v1", "persistentvolumeclaims"),
    "Pod": ApiKind("v1", "pods"),
    "Secret": ApiKind("v1", "secrets"),
    "Service": ApiKind("v1", "services"),
    "ServiceAccount": ApiKind("v1", "serviceaccounts"),
    "Deployment": ApiKind("apps/v1", "deployments"),
    "StatefulSet": ApiKind("apps/v1", "statefulsets"),
    "Job": ApiKind("batch/v1", "jobs"),
    "CronJob": ApiKind("batch/v1", "cronjobs"),
    "NetworkPolicy": ApiKind("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ApiKind("policy/v1", "poddisruptionbudgets"),
    "Role": ApiKind("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ApiKind("rbac.authorization.k8s.io/v1", "rolebindings"),
    "Lease": ApiKind("coordination.k8s.io/v1", "leases"),
    "Event": ApiKind("events.k8s.io/v1", "events"),
    # Two Spark operators share a kind's name; as in kubectl, the group distinguishes them.
    "SparkApplication.sparkoperator.k8s.io": ApiKind("sparkoperator.k8s.io/v1beta2", "sparkapplications"),
    "SparkApplication.spark.apache.org": ApiKind("spark.apache.org/v1", "sparkapplications"),
    "CustomResourceDefinition": ApiKind("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False),
}


def api_path(kind: str, namespace: str = "", name: str = "", sub: str = "") -> str:
    """The path of a kind, of one object, or of a part of one. Without a namespace: everywhere.

    Raises KeyError for a kind that is not here.
    """
    known = API_KINDS[kind]
    parts = ["apis" if "/" in known.api_version else "api", known.api_version]
    if known.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [known.plural, *(quote(part, safe="") for part in (name, sub) if part)]
    return "/" + "/".join(parts)


def kind_of(api_version: str, kind: str) -> str:
    """The key of a kind in `API_KINDS`: its name, with its group where the name is ambiguous."""
    return kind if kind in API_KINDS else f"{kind}.{api_version.partition('/')[0]}"


def rule_resource(kind: str, sub: str = "") -> str:
    """A kind's resource as in the rules of a Role."""
    return f"{API_KINDS[kind].plural}/{sub}" if sub else API_KINDS[kind].plural
