"""The interface between commands and a fleet's objects, which a local folder or an API server stores."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from plimsoll.cli.contexts.fleet_choice import AddressChoice, KubernetesChoice, choose_fleet
from plimsoll.core.spec import SourceDocument
from plimsoll.local.storage.object_store import Object, ObjectChange, ObjectEvent
from plimsoll.mediator.world.traffic_survey import TrafficSurvey


class FleetReader(Protocol):
    """The objects of one fleet, for commands that show them.

    `title` is its name in messages: `fleet quotes`, `namespace ships`. `poll_seconds`: the interval for commands that
    poll all of it.
    """

    title: str
    poll_seconds: float

    def objects(self, *kinds: str) -> list[Object]:
        """All objects, or those of some kinds, by kind and name."""
        ...

    def get(self, kind: str, name: str) -> Object:
        """One object; raises `ObjectMissingError`."""
        ...

    def with_plan(self, item: Object) -> Object:
        """A session together with its full plan, which may be stored elsewhere."""
        ...

    def staleness_note(self) -> str:
        """A line for people if the status may be out of date: since when, and what to do; else empty."""
        ...

    def displayed(self, items: Iterable[Object]) -> list[Object]:
        """Objects ready to display: the status of a fleet that is not running is unknown."""
        ...

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[ObjectChange]]]:
        """The present objects, then batches of changes without end; a batch may be empty."""
        ...

    def watch_object(self, kind: str, name: str) -> Iterator[Object]:
        """One object now and after each change, repeated when idle; raises `ObjectMissingError` when it is deleted."""
        ...

    def events(self, kind: str | None = None, name: str | None = None) -> list[ObjectEvent]:
        """Events (of an object), oldest first; later ones have greater ids."""
        ...

    def log_lines(self, broker: str, tail: int | None, since_seconds: float | None, *, follow: bool) -> Iterator[str]:
        """Lines of a broker's log, oldest first; with `follow` without end. Raises `ObjectMissingError`."""
        ...

    def survey(self, items: Sequence[Object], cluster: str, over_seconds: float) -> TrafficSurvey:
        """What is published and asked for in the fleet of these objects, as its brokers say; raises `SurveyError`."""
        ...

    def unserved_reason(self) -> str:
        """Why nothing acts on the objects; empty if something does, or if that cannot be told."""
        ...

    def not_running_reason(self) -> str:
        """Why no mediator would act on a request; empty if one is running."""
        ...


class FleetEditor(Protocol):
    """The objects of one fleet, for commands that change them."""

    title: str

    def unserved_reason(self) -> str:
        """Why nothing acts on the objects; empty if something does, or if that cannot be told."""
        ...

    def create_session(self, name: str, spec: Mapping[str, Any], *, cordon: str = "") -> bool:
        """Create a session, and first cordon an edge or a head if one is named; whether that changed anything.

        Raises `ObjectConflictError`, `InvalidResourcesError`, `ObjectMissingError`.
        """
        ...

    def stop_session(self, name: str) -> None:
        """Stop a session after its current batch; raises `ObjectMissingError`, `EditRefusedError`."""
        ...

    def approve_session(self, name: str, plan_hash: str) -> str:
        """Approve a plan; its hash. Raises `ObjectMissingError`, `EditRefusedError`."""
        ...

    def set_cordoned(self, broker: str, *, cordoned: bool) -> bool:
        """Set whether an edge or a head takes newcomers; whether that changed anything.

        Raises `ObjectMissingError`, `EditRefusedError`.
        """
        ...

    def apply(self, documents: Iterable[SourceDocument]) -> list[tuple[str, str]]:
        """Make or change objects; for each `created`, `configured` or `unchanged`, and its `Kind/name`."""
        ...

    def delete(self, kind: str, name: str) -> None:
        """Delete an object after its brokers have left. Raises `ObjectMissingError`, `InvalidResourcesError`."""
        ...


class FleetBackend(FleetReader, FleetEditor, Protocol):
    """A fleet for commands that change what they have looked at, or wait for what they have changed."""


def choose_backend(options: argparse.Namespace) -> FleetBackend:
    """The backend of the fleet that the options, the environment and the context in use select."""
    choice = choose_fleet(options)
    if isinstance(choice, KubernetesChoice):
        from plimsoll.cli.kubernetes_backend import KubernetesBackend

        return KubernetesBackend.from_kubeconfig(choice.namespace, choice.context)
    if isinstance(choice, AddressChoice):
        from plimsoll.cli.address_backend import AddressBackend

        return AddressBackend(choice)
    from plimsoll.cli.local_backend import LocalBackend

    return LocalBackend.from_name(choice.fleet)
