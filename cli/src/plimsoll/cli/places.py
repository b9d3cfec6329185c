"""Where the objects of a fleet are kept: in a folder of this machine, or at an API server. Commands know neither."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from plimsoll.core.spec import Document
from plimsoll.local.store import Change, Event, Object

KUBERNETES = "PLIMSOLL_KUBERNETES"
"""Set, and not empty or 0: commands speak to the API server without being told so each time."""


class Place(Protocol):
    """The objects of one fleet.

    `title` is how messages call it: `fleet quotes`, `namespace ships`. `poll_seconds`: who looks again and again at all
    of it does so after so long.
    """

    title: str
    poll_seconds: float

    def objects(self, *kinds: str) -> list[Object]:
        """All objects, or those of some kinds, by kind and name."""
        ...

    def get(self, kind: str, name: str) -> Object:
        """One object; raises `MissingError`."""
        ...

    def whole(self, item: Object) -> Object:
        """A session with all that is known of it, wherever it is kept."""
        ...

    def shown(self, items: Iterable[Object]) -> list[Object]:
        """Objects as they may be shown: what nobody observes is unknown."""
        ...

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[Change]]]:
        """What is there, and what changes from then on, in portions that may be empty; never ends by itself."""
        ...

    def states(self, kind: str, name: str) -> Iterator[Object]:
        """One object as it is, as it becomes, and now and then as it still is; raises `MissingError` at its end."""
        ...

    def events(self, kind: str | None = None, name: str | None = None) -> list[Event]:
        """What happened (to an object), oldest first; later ones have greater ids."""
        ...

    def why_not_running(self) -> str:
        """Why nothing would come of what is asked here; empty if there is somebody to do it."""
        ...

    def begin(self, name: str, spec: Mapping[str, Any]) -> None:
        """Ask for a session; raises `ConflictError`, `InvalidResourcesError`."""
        ...

    def stop(self, name: str) -> None:
        """Ask a session to begin nothing more; raises `MissingError`, `NotAskableError`."""
        ...

    def approve(self, name: str, plan_hash: str) -> str:
        """Approve a plan; its hash. Raises `MissingError`, `NotAskableError`."""
        ...

    def cordon(self, edge: str, *, cordoned: bool) -> bool:
        """Let an edge take newcomers or not; whether that changed anything. Raises `MissingError`."""
        ...

    def apply(self, documents: Iterable[Document]) -> list[tuple[str, str]]:
        """Make or change objects; for each `created`, `configured` or `unchanged`, and its `Kind/name`."""
        ...

    def delete(self, kind: str, name: str) -> None:
        """Delete an object; what runs for it leaves first. Raises `MissingError`, `InvalidResourcesError`."""
        ...


def is_kubernetes(options: argparse.Namespace) -> bool:
    """Whether the API server is meant: a namespace or context is named, or the environment says so."""
    if getattr(options, "namespace", None) or getattr(options, "context", None):
        return True
    return os.environ.get(KUBERNETES, "0") not in ("", "0") and not getattr(options, "fleet", None)


def choose(options: argparse.Namespace) -> Place:
    """The place that is meant by the arguments and the environment."""
    if is_kubernetes(options):
        from plimsoll.cli.there import There

        return There.of(getattr(options, "namespace", None), getattr(options, "context", None))
    from plimsoll.cli.here import Here

    return Here.of(options.fleet)
