"""Connection files of a fleet on Kubernetes, from the Secret of a client; tests/e2e tries them in a cluster."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.cli import kubernetes_clients
from plimsoll.cli.contexts.fleet_choice import KubernetesChoice
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, NOT_FOUND, CommandError
from plimsoll.cli.kubernetes_backend import KubernetesBackend
from plimsoll.client import Address, Curve
from plimsoll.local.storage.object_store import ObjectMissingError

HEADS = {
    "east": {"endpoint": "tcp://east:7400", "publicKey": "E" * 40},
    "west": {"endpoint": "tcp://west:7400", "publicKey": "W" * 40},
}
SECRET = {"secret.key": "S" * 40 + "\n", "public.key": "P" * 40 + "\n", "heads.json": json.dumps(HEADS)}


class Place:
    """A namespace with a fleet and its Secrets."""

    title = "namespace ships"

    def __init__(self, spec: Mapping[str, Any] | None, secret: Mapping[str, str] | None = None) -> None:
        self._fleets = [] if spec is None else [{"spec": {"security": spec}}]
        self._secret = secret

    def objects(self, *kinds: str) -> list[Any]:
        clusters = [{"metadata": {"name": "east"}, "status": {"endpoint": "tcp://east:7400"}}] if self._fleets else []
        feeds = [
            {"metadata": {"name": "stocks"}, "status": {"endpoint": "tcp://recorder:7421"}},
            {"metadata": {"name": "new"}},
        ]
        found: dict[str, list[Any]] = {"BrokerFleet": self._fleets, "BrokerCluster": clusters, "Feed": feeds}
        return found[kinds[0]]

    def secret_data(self, name: str) -> dict[str, str]:
        if self._secret is None or name != "plimsoll-client-traders":
            raise ObjectMissingError(f'there is no Secret "{name}" in {self.title}')
        return {key: base64.b64encode(text.encode()).decode() for key, text in self._secret.items()}

    def not_running_reason(self) -> str:
        return "there is no BrokerCluster in namespace ships"


FEEDS = {"stocks": {"endpoint": "tcp://recorder:7421", "publicKey": "R" * 40}}
TRADERS = {"clients": [{"name": "traders"}]}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the API server that the kubeconfig names."""

    def use(found: Place) -> KubernetesChoice:
        monkeypatch.setattr(KubernetesBackend, "from_kubeconfig", lambda namespace, context: found)
        return KubernetesChoice("kind", "ships")

    names_known_here(monkeypatch, "east", "west")
    return use


def names_known_here(monkeypatch: pytest.MonkeyPatch, *known: str) -> None:
    """Play the name service of this machine."""

    def look_up(host: str, port: None) -> list[str]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [host]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def test_names_that_only_pods_know_are_refused_at_once(place: Any, monkeypatch: pytest.MonkeyPatch):
    choice = place(Place(TRADERS, SECRET))
    names_known_here(monkeypatch, "west")
    assert len(kubernetes_clients.client_settings(choice, None, None).heads) == 2, "one of them will do"
    with pytest.raises(CommandError, match=r"east is not known here, only in pods: .* of BrokerCluster/east"):
        kubernetes_clients.client_settings(choice, None, "east")
    assert kubernetes_clients.kubernetes_connection_file(choice, "traders", "east"), "pods may be given the file"


def test_the_file_has_what_the_secret_has(place: Any):
    choice = place(Place(TRADERS, SECRET))
    made = json.loads(kubernetes_clients.kubernetes_connection_file(choice, "traders", None))
    assert made == {"heads.json": HEADS, "public.key": "P" * 40, "secret.key": "S" * 40}
    made = json.loads(kubernetes_clients.kubernetes_connection_file(choice, "traders", "west"))
    assert list(made["heads.json"]) == ["west"]


def test_the_recorders_that_a_client_may_read_from_are_in_its_secret(place: Any):
    choice = place(Place(TRADERS, {**SECRET, "feeds.json": json.dumps(FEEDS)}))
    found = kubernetes_clients.client_settings(choice, None, None).feeds
    assert found == {"stocks": Address("tcp://recorder:7421", "R" * 40)}
    made = json.loads(kubernetes_clients.kubernetes_connection_file(choice, "traders", None))
    assert made["feeds.json"] == FEEDS


def test_the_only_client_need_not_be_named(place: Any):
    found = kubernetes_clients.client_settings(place(Place(TRADERS, SECRET)), None, None)
    assert found.heads == tuple(Address(head["endpoint"], head["publicKey"]) for head in HEADS.values())
    assert found.security == Curve(secret="S" * 40)  # a key of a test


def test_a_fleet_without_keys(place: Any):
    found = kubernetes_clients.client_settings(place(Place({"plain": True})), None, None)
    assert (found.heads, found.security) == ((Address("tcp://east:7400"),), "plain")
    assert found.feeds == {"stocks": Address("tcp://recorder:7421")}


@pytest.mark.parametrize(
    ("found", "client", "cluster", "code", "said"),
    [
        (Place(None), "traders", None, NOT_FOUND, "there is no BrokerCluster in namespace ships"),
        (Place({}), "traders", None, NOT_FOUND, "names no client: add `security: "),
        (Place(TRADERS, SECRET), "traderz", None, NOT_FOUND, 'no client "traderz" in namespace ships. Did you mean'),
        (
            Place({"clients": [{"name": "a"}, {"name": "b"}]}),
            None,
            None,
            BAD_INPUT,
            "several clients: a, b. Choose one",
        ),
        (Place(TRADERS), "traders", None, FAILED, "the operator makes it when the fleet is reconciled"),
        (Place(TRADERS, {**SECRET, "heads.json": ""}), "traders", None, FAILED, "has no heads.json yet"),
        (Place(TRADERS, SECRET), "traders", "eeast", NOT_FOUND, 'Did you mean "east"?'),
    ],
)
def test_what_is_missing_is_named(
    place: Any, found: Place, client: str | None, cluster: str | None, code: int, said: str
):
    choice = place(found)
    with pytest.raises(CommandError) as caught:
        kubernetes_clients.client_settings(choice, client, cluster)
    assert caught.value.code == code
    assert said in str(caught.value)
