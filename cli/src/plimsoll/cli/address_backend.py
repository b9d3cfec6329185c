"""A fleet of which only the address of a head is known: what a client can see of it, and no more.

Objects are in the fleet's store or at its API server, which an address does not lead to. The head that answers is shown
as its cluster, with what the connection knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from plimsoll.cli.contexts.fleet_choice import AddressChoice
from plimsoll.cli.exit_codes import BAD_INPUT, CommandError
from plimsoll.cli.fleet_connection import address_settings
from plimsoll.client import Connection, errors
from plimsoll.core.spec import API_VERSION, SourceDocument
from plimsoll.local.storage.object_store import Object, ObjectChange, ObjectEvent
from plimsoll.mediator.world.traffic_survey import TrafficSurvey

ANSWER_SECONDS = 10.0
UNKNOWN_EDGES = {"ready": "?", "desired": "?"}


class AddressBackend:
    """The heads of one context."""

    def __init__(self, choice: AddressChoice) -> None:
        self._choice = choice
        self.title, self.poll_seconds = f"context {choice.name}", 5.0

    def objects(self, *kinds: str) -> list[Object]:
        if kinds and "BrokerCluster" not in kinds:
            self._refuse(f"objects of kind {kinds[0]}")
        return [self._cluster()]

    def get(self, kind: str, name: str) -> Object:
        found = [item for item in self.objects(kind) if item["metadata"]["name"] == name]
        return found[0] if found else self._refuse(f'{kind} "{name}"')

    def _cluster(self) -> Object:
        """The cluster whose head answers; its name is that of its head, without the ending that heads have."""
        settings = address_settings(self._choice, None)
        with Connection(settings.heads, security=settings.security) as connection:
            try:
                connection.wait_open(ANSWER_SECONDS)
                reason, message = "Connected", f"the head answers, as seen from here by {self.title}"
            except errors.WaitTimeoutError as error:
                reason, message = "NoAnswer", str(error)
            head = str(connection.status()["head"])
        is_ready = reason == "Connected"
        endpoint = ", ".join(address.endpoint for address in settings.heads)
        condition = {"type": "Ready", "status": str(is_ready), "reason": reason, "message": message}
        return {
            "apiVersion": API_VERSION,
            "kind": "BrokerCluster",
            "metadata": {"name": head.removesuffix("-head") or self._choice.name},
            "spec": {},
            "status": {"conditions": [condition], "endpoint": endpoint, "head": {"name": head}, "edges": UNKNOWN_EDGES},
        }

    def _refuse(self, what: str) -> NoReturn:
        remedy = "use the context of its local fleet, or of its Kubernetes cluster"
        raise CommandError(BAD_INPUT, f"{self.title} is an address, which does not show or change {what}: {remedy}")

    def with_plan(self, item: Object) -> Object:
        return item

    def displayed(self, items: Iterable[Object]) -> list[Object]:
        return list(items)

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[ObjectChange]]]:
        self._refuse("changes of objects")

    def watch_object(self, kind: str, name: str) -> Iterator[Object]:
        self._refuse("changes of objects")

    def staleness_note(self) -> str:
        """Always empty: what is shown was asked for just now."""
        return ""

    def events(self, kind: str | None = None, name: str | None = None) -> list[ObjectEvent]:
        self._refuse("events")

    def log_lines(self, broker: str, tail: int | None, since_seconds: float | None, *, follow: bool) -> Iterator[str]:
        self._refuse("logs")

    def survey(self, items: Sequence[Object], cluster: str, over_seconds: float) -> TrafficSurvey:
        self._refuse("the load of brokers")

    def unserved_reason(self) -> str:
        """Always empty: an address does not tell."""
        return ""

    def not_running_reason(self) -> str:
        self._refuse("the fleet behind it")

    def create_session(self, name: str, spec: Mapping[str, Any], *, cordon: str = "") -> bool:
        self._refuse("sessions")

    def stop_session(self, name: str) -> None:
        self._refuse("sessions")

    def approve_session(self, name: str, plan_hash: str) -> str:
        self._refuse("sessions")

    def set_cordoned(self, broker: str, *, cordoned: bool) -> bool:
        self._refuse("edges")

    def apply(self, documents: Iterable[SourceDocument]) -> list[tuple[str, str]]:
        self._refuse("objects")

    def delete(self, kind: str, name: str) -> None:
        self._refuse("objects")
