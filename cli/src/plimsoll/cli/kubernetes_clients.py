"""The clients of a fleet on Kubernetes: the Secret of each has its keys and the addresses of heads."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.cli.contexts.fleet_choice import KubernetesChoice
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, NOT_FOUND, CommandError
from plimsoll.cli.kubernetes_backend import KubernetesBackend
from plimsoll.client import Address, Curve
from plimsoll.client.connection_file import (
    ENDPOINT,
    FEEDS,
    HEAD_KEY,
    HEADS,
    PUBLIC_KEY,
    SECRET_KEY,
    ConnectionSettings,
    connection_file_text,
)
from plimsoll.client.security import Security
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.storage.object_store import ObjectMissingError


def client_settings(choice: KubernetesChoice, client: str | None, cluster: str | None) -> ConnectionSettings:
    """Addresses and keys of a client of the fleet; `client` None: the only one."""
    place = KubernetesBackend.from_kubeconfig(choice.namespace, choice.context)
    found = read_client(place, client, cluster)
    _check_reach(found.heads)
    security: Security = "plain" if found.keys is None else Curve(secret=found.keys[1])
    return ConnectionSettings(tuple(found.heads.values()), security, found.feeds)


def _check_reach(heads: Mapping[str, Address]) -> None:
    """Refuse at once what would end in a time-out: names that only pods of that Kubernetes cluster can look up."""
    hosts = {cluster: head.endpoint.removeprefix("tcp://").rpartition(":")[0] for cluster, head in heads.items()}
    if any(_is_known(host) for host in hosts.values()):
        return
    cluster, host = next(iter(hosts.items()))
    remedy = f"name an address that this machine reaches in `listeners` of BrokerCluster/{cluster}"
    raise CommandError(FAILED, f"{host} is not known here, only in pods: {remedy}, or run the command in a pod")


def _is_known(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host.strip("[]"), None))
    except OSError:
        return False


def kubernetes_connection_file(choice: KubernetesChoice, client: str, cluster: str | None) -> str:
    """The text of a connection file with the keys of a client."""
    place = KubernetesBackend.from_kubeconfig(choice.namespace, choice.context)
    found = read_client(place, client, cluster)
    return connection_file_text(found.heads, found.keys, found.feeds)


@dataclass(frozen=True)
class KubernetesClient:
    """The heads by cluster, the public and the secret key of a client, the recorders that it may read, by feed.

    `keys`: None in a fleet without keys.
    """

    heads: dict[str, Address]
    keys: tuple[str, str] | None
    feeds: dict[str, Address]


def read_client(place: KubernetesBackend, client: str | None, cluster: str | None) -> KubernetesClient:
    """What a client connects with; `client` None: the only one."""
    security = _security_spec(place)
    if security.get("plain", False):
        return KubernetesClient(_chosen(_plain_heads(place), cluster, place), None, _plain_feeds(place))
    name = _client_name(client, [str(each["name"]) for each in security.get("clients", [])], place)
    try:
        data = place.secret_data(f"plimsoll-client-{name}")
    except ObjectMissingError as error:
        raise CommandError(FAILED, f"{error}; the operator makes it when the fleet is reconciled") from error
    found = {key: base64.b64decode(value).decode("utf-8").strip() for key, value in data.items()}
    if lacking := [key for key in (SECRET_KEY, PUBLIC_KEY, HEADS) if not found.get(key)]:
        raise CommandError(FAILED, f"Secret/plimsoll-client-{name} has no {lacking[0]} yet; try again when heads run")
    heads, feeds = _addresses(found[HEADS]), _addresses(found.get(FEEDS, "{}"))
    return KubernetesClient(_chosen(heads, cluster, place), (found[PUBLIC_KEY], found[SECRET_KEY]), feeds)


def _addresses(text: str) -> dict[str, Address]:
    listed: dict[str, Mapping[str, str]] = json.loads(text)
    return {each: Address(found[ENDPOINT], found[HEAD_KEY]) for each, found in sorted(listed.items())}


def _plain_feeds(place: KubernetesBackend) -> dict[str, Address]:
    feeds = {item["metadata"]["name"]: item.get("status", {}).get("endpoint") for item in place.objects("Feed")}
    return {name: Address(endpoint) for name, endpoint in sorted(feeds.items()) if endpoint}


def _security_spec(place: KubernetesBackend) -> Mapping[str, Any]:
    fleets = place.objects("BrokerFleet")
    if not fleets and not place.objects("BrokerCluster"):
        raise CommandError(NOT_FOUND, place.not_running_reason())
    return fleets[0].get("spec", {}).get("security", {}) if fleets else {}


def _client_name(asked: str | None, known: list[str], place: KubernetesBackend) -> str:
    if asked is None and len(known) == 1:
        return known[0]
    if asked is None and known:
        raise CommandError(BAD_INPUT, f"several clients: {', '.join(sorted(known))}. Choose one with --client NAME")
    if not known:
        remedy = "add `security: {clients: [{name: NAME, roles: [Publish, Subscribe]}]}` to its BrokerFleet"
        raise CommandError(NOT_FOUND, f"the fleet in {place.title} names no client: {remedy}")
    if asked not in known:
        raise CommandError(
            NOT_FOUND, f'no client "{asked}" in {place.title}. {suggestion(str(asked), known, "client")}'
        )
    return asked


def _plain_heads(place: KubernetesBackend) -> dict[str, Address]:
    clusters = place.objects("BrokerCluster")
    heads = {item["metadata"]["name"]: item.get("status", {}).get("endpoint") for item in clusters}
    found = {name: Address(endpoint) for name, endpoint in heads.items() if endpoint}
    if not found:
        raise CommandError(FAILED, f"no head of {place.title} has an endpoint yet; see `plimsoll get bc -o wide`")
    return found


def _chosen(heads: dict[str, Address], cluster: str | None, place: KubernetesBackend) -> dict[str, Address]:
    if cluster is None:
        return heads
    if cluster not in heads:
        hint = suggestion(cluster, list(heads), "cluster")
        raise CommandError(NOT_FOUND, f'no cluster "{cluster}" in {place.title}. {hint}')
    return {cluster: heads[cluster]}
