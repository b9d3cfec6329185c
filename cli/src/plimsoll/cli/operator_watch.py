"""Whether an operator watches a namespace: by the Deployments of operators, or else by what is written in its objects.

A user may not list Deployments everywhere. Then a fleet that nothing has written to for a while tells the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

OPERATORS = "app.kubernetes.io/name=plimsoll-operator"
NAMESPACES = "PLIMSOLL_NAMESPACES"
UNTOUCHED = timedelta(seconds=15)
"""A fleet without a status after this time is not served; an operator writes within seconds."""
REQUEST_SECONDS = 10.0


def unwatched_reason(namespace: str, api: client.ApiClient, fleets: Iterable[Mapping[str, Any]]) -> str:
    """Why nothing acts on the objects of a namespace; empty if an operator does, or if that cannot be told.

    `fleets`: the BrokerFleets of the namespace.
    """
    try:
        apps: Any = client.AppsV1Api(api)
        found = apps.list_deployment_for_all_namespaces(label_selector=OPERATORS, _request_timeout=REQUEST_SECONDS)
    except ApiException:  # no right to list them everywhere, as most users of one namespace
        return _untouched_reason(namespace, fleets)
    watched = {
        f"{each.metadata.namespace}/{each.metadata.name}": watched_namespaces(each.spec.template.spec)
        for each in found.items
    }
    if any(not names or namespace in names for names in watched.values()):
        return ""
    if not watched:
        return f"no operator watches namespace {namespace}: there is none in this cluster; install the chart"
    others = "; ".join(f"{name} watches {', '.join(sorted(names))}" for name, names in sorted(watched.items()))
    return f"no operator watches namespace {namespace}: {others}; add it to `watchNamespaces` of the chart"


def watched_namespaces(pod: Any) -> frozenset[str]:
    """The namespaces that an operator watches, by the specification of its pod; empty for all."""
    text = next((one.value for each in pod.containers for one in each.env or () if one.name == NAMESPACES), "")
    return frozenset(name for name in (text or "").split(",") if name)


def _untouched_reason(namespace: str, fleets: Iterable[Mapping[str, Any]]) -> str:
    for fleet in fleets:
        created = datetime.fromisoformat(fleet["metadata"]["creationTimestamp"])
        if not fleet.get("status") and datetime.now(UTC) - created > UNTOUCHED:
            name = fleet["metadata"]["name"]
            return f"it seems that no operator watches namespace {namespace}: BrokerFleet/{name} has no status yet"
    return ""
