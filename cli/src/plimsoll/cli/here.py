"""A fleet of this machine: its folder, its store, and its supervisor's process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plimsoll.cli import fleets
from plimsoll.core.spec import Document
from plimsoll.local import asking, runtime
from plimsoll.local.home import FleetFolder
from plimsoll.local.store import Change, Event, ExpiredError, Object, Store

POLL_SECONDS, LOOK_SECONDS = 0.2, 0.1


class Here:
    """One folder."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self.title, self.poll_seconds = f"fleet {folder.fleet}", POLL_SECONDS

    @classmethod
    def of(cls, fleet: str | None) -> Here:
        """The fleet that is named, or the only one."""
        return cls(fleets.choose(fleet))

    def objects(self, *kinds: str) -> list[Object]:
        with Store(self.folder.store) as store:
            return store.objects(*kinds)[1]

    def get(self, kind: str, name: str) -> Object:
        with Store(self.folder.store) as store:
            return store.get(kind, name)

    def whole(self, item: Object) -> Object:
        return item

    def shown(self, items: Iterable[Object]) -> list[Object]:
        return runtime.shown(self.folder, items)

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[Change]]]:
        with Store(self.folder.store) as store:
            version, items = store.objects(*kinds)
        return items, self._changes(version, kinds)

    def _changes(self, version: int, kinds: tuple[str, ...]) -> Iterator[list[Change]]:
        with Store(self.folder.store) as store:
            while True:
                try:
                    changes = store.changes(version)
                except ExpiredError:
                    version, items = store.objects(*kinds)
                    changes = [Change(version, "MODIFIED", i["kind"], i["metadata"]["name"], i) for i in items]
                version = max([version, *(change.version for change in changes)])
                yield [change for change in changes if not kinds or change.kind in kinds]
                time.sleep(POLL_SECONDS)

    def states(self, kind: str, name: str) -> Iterator[Object]:
        while True:
            yield self.get(kind, name)
            time.sleep(LOOK_SECONDS)

    def events(self, kind: str | None = None, name: str | None = None) -> list[Event]:
        with Store(self.folder.store) as store:
            return store.events(kind, name)

    def why_not_running(self) -> str:
        if self.folder.running_pid() is not None:
            return ""
        return f"fleet {self.folder.fleet} does not run: start it with `plimsoll up -f FILE`"

    def begin(self, name: str, spec: Mapping[str, Any]) -> None:
        asking.begin(self.folder, name, spec)

    def stop(self, name: str) -> None:
        asking.stop(self.folder, name)

    def approve(self, name: str, plan_hash: str) -> str:
        return asking.approve(self.folder, name, plan_hash)

    def cordon(self, edge: str, *, cordoned: bool) -> bool:
        return asking.cordon(self.folder, edge, cordoned=cordoned)

    def apply(self, documents: Iterable[Document]) -> list[tuple[str, str]]:
        return [(what, item.subject) for what, item in runtime.apply(self.folder, documents)]

    def delete(self, kind: str, name: str) -> None:
        runtime.delete(self.folder, kind, name)
