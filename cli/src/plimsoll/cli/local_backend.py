"""A fleet of this machine: its folder, its store, and its supervisor's process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.cli import log_files, selectors
from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.problems import suggestion
from plimsoll.local import load_survey, runtime, status_age, store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import (
    ChangesExpiredError,
    Object,
    ObjectChange,
    ObjectEvent,
    ObjectMissingError,
    ObjectStore,
)
from plimsoll.mediator.world.traffic_survey import TrafficSurvey

POLL_SECONDS, SESSION_POLL_SECONDS = 0.2, 0.1


class LocalBackend:
    """One folder."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self.title, self.poll_seconds = f"fleet {folder.fleet}", POLL_SECONDS

    @classmethod
    def from_name(cls, fleet: str | None) -> LocalBackend:
        """The named fleet, or the only one."""
        return cls(selectors.select_fleet(fleet))

    def objects(self, *kinds: str) -> list[Object]:
        with ObjectStore(self.folder.store) as store:
            return store.objects(*kinds)[1]

    def get(self, kind: str, name: str) -> Object:
        with ObjectStore(self.folder.store) as store:
            return store.get(kind, name)

    def with_plan(self, item: Object) -> Object:
        return item

    def staleness_note(self) -> str:
        return status_age.staleness_note(self.folder)

    def displayed(self, items: Iterable[Object]) -> list[Object]:
        return status_age.with_current_status(self.folder, items)

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[ObjectChange]]]:
        with ObjectStore(self.folder.store) as store:
            version, items = store.objects(*kinds)
        return items, self._changes(version, kinds)

    def _changes(self, version: int, kinds: tuple[str, ...]) -> Iterator[list[ObjectChange]]:
        with ObjectStore(self.folder.store) as store:
            while True:
                try:
                    changes = store.changes(version)
                except ChangesExpiredError:
                    version, items = store.objects(*kinds)
                    changes = [ObjectChange(version, "MODIFIED", i["kind"], i["metadata"]["name"], i) for i in items]
                version = max([version, *(change.version for change in changes)])
                yield [change for change in changes if not kinds or change.kind in kinds]
                time.sleep(POLL_SECONDS)

    def watch_object(self, kind: str, name: str) -> Iterator[Object]:
        while True:
            yield self.get(kind, name)
            time.sleep(SESSION_POLL_SECONDS)

    def events(self, kind: str | None = None, name: str | None = None) -> list[ObjectEvent]:
        with ObjectStore(self.folder.store) as store:
            return store.events(kind, name)

    def log_lines(self, broker: str, tail: int | None, since_seconds: float | None, *, follow: bool) -> Iterator[str]:
        log = self.folder.log(broker)
        if not log.exists() or log.parent != self.folder.log("any").parent:
            names = sorted(path.name.removesuffix(".log") for path in log.parent.glob("*.log"))
            raise ObjectMissingError(f'no log of "{broker}" in {self.title}. {suggestion(broker, names, "broker")}')
        return log_files.log_lines(log, tail, since_seconds, follow=follow)

    def survey(self, items: Sequence[Object], cluster: str, over_seconds: float) -> TrafficSurvey:
        return load_survey.survey_load(self.folder, items, cluster, over_seconds)

    def unserved_reason(self) -> str:
        """Always empty: `not_running_reason` and the status say whether the fleet runs."""
        return ""

    def not_running_reason(self) -> str:
        if self.folder.running_pid() is not None:
            return ""
        return f"fleet {self.folder.fleet} is not running: start it with `plimsoll up -f FILE`"

    def create_session(self, name: str, spec: Mapping[str, Any], *, cordon: str = "") -> bool:
        return store_edits.create_session(self.folder, name, spec, cordon=cordon)

    def stop_session(self, name: str) -> None:
        store_edits.stop_session(self.folder, name)

    def approve_session(self, name: str, plan_hash: str) -> str:
        return store_edits.approve_session(self.folder, name, plan_hash)

    def set_cordoned(self, broker: str, *, cordoned: bool) -> bool:
        return store_edits.set_cordoned(self.folder, broker, cordoned=cordoned)

    def apply(self, documents: Iterable[SourceDocument]) -> list[tuple[str, str]]:
        return [(what, item.subject) for what, item in runtime.apply(self.folder, documents)]

    def delete(self, kind: str, name: str) -> None:
        runtime.delete(self.folder, kind, name)
