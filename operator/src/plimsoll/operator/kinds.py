"""Where the API server has each kind that the operator reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from plimsoll.core.spec import API_VERSION


@dataclass(frozen=True)
class Kind:
    """A kind's group and version as in manifests, and its name in paths."""

    api_version: str
    plural: str
    namespaced: bool = True


KINDS: Final = {
    "BrokerFleet": Kind(API_VERSION, "brokerfleets"),
    "BrokerCluster": Kind(API_VERSION, "brokerclusters"),
    "EdgeBroker": Kind(API_VERSION, "edgebrokers"),
    "HardwareProfile": Kind(API_VERSION, "hardwareprofiles"),
    "LoadBalancingSession": Kind(API_VERSION, "loadbalancingsessions"),
    "ConfigMap": Kind("v1", "configmaps"),
    "Namespace": Kind("v1", "namespaces", namespaced=False),
    "Node": Kind("v1", "nodes", namespaced=False),
    "PersistentVolumeClaim": Kind("v1", "persistentvolumeclaims"),
    "Pod": Kind("v1", "pods"),
    "Secret": Kind("v1", "secrets"),
    "Service": Kind("v1", "services"),
    "ServiceAccount": Kind("v1", "serviceaccounts"),
    "Deployment": Kind("apps/v1", "deployments"),
    "StatefulSet": Kind("apps/v1", "statefulsets"),
    "Job": Kind("batch/v1", "jobs"),
    "CronJob": Kind("batch/v1", "cronjobs"),
    "NetworkPolicy": Kind("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "Role": Kind("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Kind("rbac.authorization.k8s.io/v1", "rolebindings"),
    "Lease": Kind("coordination.k8s.io/v1", "leases"),
    "Event": Kind("events.k8s.io/v1", "events"),
    # Two operators call their kind alike: these are told apart by their group, as kubectl does.
    "SparkApplication.sparkoperator.k8s.io": Kind("sparkoperator.k8s.io/v1beta2", "sparkapplications"),
    "SparkApplication.spark.apache.org": Kind("spark.apache.org/v1", "sparkapplications"),
    "CustomResourceDefinition": Kind("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False),
}


def path(kind: str, namespace: str = "", name: str = "", sub: str = "") -> str:
    """The path of a kind, of one object, or of a part of one. Without a namespace: everywhere.

    Raises KeyError for a kind that is not here.
    """
    known = KINDS[kind]
    parts = ["apis" if "/" in known.api_version else "api", known.api_version]
    if known.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [known.plural, *(quote(part, safe="") for part in (name, sub) if part)]
    return "/" + "/".join(parts)


def kind_of(api_version: str, kind: str) -> str:
    """The name by which a kind is known here: its own, or with its group where that is needed."""
    return kind if kind in KINDS else f"{kind}.{api_version.partition('/')[0]}"


def resource(kind: str, sub: str = "") -> str:
    """A kind as the rules of a role name it."""
    return f"{KINDS[kind].plural}/{sub}" if sub else KINDS[kind].plural
