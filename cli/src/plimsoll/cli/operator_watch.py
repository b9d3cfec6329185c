"""Whether an operator watches a namespace: by the Deployments of operators, or else by what is written in its objects.

A user may not list Deployments everywhere. Then a fleet that nothing has written to for a while tells the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from plimsoll.mediator import fleet_resources
from plimsoll.mediator.fleet_resources import Object

OPERATORS = "app.kubernetes.io/name=plimsoll-operator"
NAMESPACES = "PLIMSOLL_NAMESPACES"
UNTOUCHED = timedelta(seconds=15)
"""A fleet without a status after this time is not served; an operator writes within seconds."""
REQUEST_SECONDS = 10.0
LEASE_PREFIX = "plimsoll-mediator-"
OLD_SECONDS = 30.0
"""An operator renews the Lease of a fleet every five seconds, and another one takes it within fifteen."""


class WrittenStatus:
    """For how long no operator has renewed the Leases of a namespace, and so has written no status there."""

    def __init__(self, namespace: str, api: client.ApiClient) -> None:
        self._namespace = namespace
        self._leases: Any = client.CoordinationV1Api(api)
        self._age: int | None = None
        self._ask_at = 0.0

    def old_seconds(self) -> int | None:
        """The age of statuses that are out of date; None if they are not, or if it cannot be told."""
        if time.monotonic() >= self._ask_at:
            self._age = self._asked_age()
            self._ask_at = time.monotonic() + UNTOUCHED.total_seconds() / 3
        return self._age

    def _asked_age(self) -> int | None:
        try:
            found, _, headers = self._leases.list_namespaced_lease_with_http_info(
                self._namespace, _request_timeout=REQUEST_SECONDS
            )
        except (ApiException, HTTPError):  # no right to, or no answer, which the command itself says
            return None
        renewed = [
            each.spec.renew_time for each in found.items
            if each.metadata.name.startswith(LEASE_PREFIX) and each.spec.renew_time is not None
        ]  # fmt: skip
        if not renewed:
            return None
        # By the clock of the API server: that of this machine may differ from those of the cluster.
        said = headers.get("Date")
        now = parsedate_to_datetime(said) if said else datetime.now(UTC)
        age = (now - max(renewed)).total_seconds()
        return int(age) if age > OLD_SECONDS else None

    def note(self) -> str:
        """A line for people if statuses are out of date; else empty."""
        age = self.old_seconds()
        if age is None:
            return ""
        return (
            f"no operator has written a status in namespace {self._namespace} for {age} s, so it is that old; brokers"
            f" go on: look at `kubectl get pods -A -l {OPERATORS}` and their logs"
        )

    def displayed(self, items: Iterable[Object]) -> list[Object]:
        """Objects ready to display: what only an operator knows is unknown while none writes."""
        found = list(items)
        age = self.old_seconds() if any(item["kind"] in fleet_resources.FLEET_KINDS for item in found) else None
        if age is None:
            return found
        message = f"no operator has written a status for {age} s"
        return [
            fleet_resources.aged(fleet_resources.with_unknown_conditions(item, "NotWritten", message), age)
            if item["kind"] in fleet_resources.FLEET_KINDS
            else item
            for item in found
        ]


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
