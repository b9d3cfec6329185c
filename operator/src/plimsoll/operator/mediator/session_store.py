"""Stores sessions at the API server: each in its object's status, the names of its plan in ConfigMaps that it owns.

Every write is a compare-and-set against the version that this epoch read or wrote last. After another writer's change
this epoch's state is out of date, and it ends before it sends a command that depends on the write. ConfigMaps are
written before the status that refers to them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.session import Session, status
from plimsoll.core.session.status import rfc3339 as status_time
from plimsoll.core.spec.status.conditions import Condition, merge_conditions
from plimsoll.mediator import plan_storage, session_objects
from plimsoll.operator.api import Api, ApiConflictError, ApiNotFoundError, Object
from plimsoll.operator.mediator import epochs


class SessionOverwrittenError(RuntimeError):
    """Another epoch has written a session since this one read it; a new epoch has to read all sessions again."""


@dataclass(frozen=True)
class _StoredObject:
    """An object as last read or written, and the plan that its status refers to."""

    item: Object
    text: str = ""


@dataclass(frozen=True)
class LoadedSessions:
    """All sessions of a namespace. `lost`: objects whose stored plan is gone, and why; they are planned again."""

    items: list[Object]
    sessions: list[Session]
    lost: list[tuple[Object, str]]


class ApiSessionStore:
    """The sessions of one namespace, in one epoch of the mediator."""

    def __init__(self, api: Api, namespace: str, epoch: int = 0) -> None:
        self._api, self._namespace = api, namespace
        self.epoch = epoch
        self._known: dict[str, _StoredObject] = {}

    def item(self, uid: str) -> Object | None:
        """The object of a session as last read or written."""
        known = self._known.get(uid)
        return known.item if known is not None else None

    def note(self, item: Object) -> None:
        """Know the object of a new session as a watch has shown it, which saves reading it before its first write."""
        if "record" not in item.get("status", {}):
            self._known.setdefault(item["metadata"]["uid"], _StoredObject(item))

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    # -- reading

    async def load(self) -> LoadedSessions:
        """Read all sessions; raises `OperatorDeposedError` if a mediator of a higher epoch has written one."""
        items = await self._api.list(session_objects.SESSION_KIND, self._namespace, retry=True)
        maps = {
            one["metadata"]["name"]: one
            for one in await self._api.list(
                plan_storage.PLAN_KIND, self._namespace, plan_storage.PLAN_LABEL, retry=True
            )
        }
        loaded = LoadedSessions(items, [], [])
        for item in items:
            try:
                session, text = _read_session(item, maps)
            except (ValueError, TypeError, KeyError, AttributeError) as error:  # a status is what anyone has written
                loaded.lost.append((item, str(error)))
                session, text = None, ""
            self._known[item["metadata"]["uid"]] = _StoredObject(item, text)
            if session is not None:
                loaded.sessions.append(session)
        return loaded

    # -- writing

    async def save(self, session: Session, now: float) -> Object:
        """Store a session; returns its object as stored.

        Raises:
            ApiNotFoundError: the object is gone, or another one has its name.
            OperatorDeposedError: a mediator of a higher epoch has written it.
            SessionOverwrittenError: it is not as this epoch has read or written it.

        """
        record, text = await asyncio.to_thread(plan_storage.split_session, session)
        known = self._known.get(session.uid)
        if known is None:
            item = await self._api.get(session_objects.SESSION_KIND, self._namespace, session.name, retry=True)
            known = _StoredObject(_require_same_uid(item, session))
        if text and text != known.text:
            for part in plan_storage.plan_objects(session, self._namespace, text, known.text):
                await self._api.apply(part, retry=True)
        wanted = {
            **status(session, now),
            "mediatorEpoch": self.epoch,
            "record": record,
            **(
                {
                    "planKey": plan_storage.plan_key(text),
                    "planObjects": plan_storage.plan_object_names(session.name, text),
                }
                if text
                else {}
            ),
        }
        item = await self._replace(session, known.item, wanted)
        self._known[session.uid] = _StoredObject(item, text)
        return item

    async def note_invalid(self, item: Object, message: str, now: float) -> None:
        """Say in the status of a session that its specification is not served; its state stays as it is."""
        generation, base = int(item["metadata"]["generation"]), self.item(item["metadata"]["uid"]) or item
        found = base.get("status", {})
        if session_objects.is_over(base):
            return  # how it ended stays
        refused = Condition("Accepted", "False", "InvalidSpec", message)
        conditions = merge_conditions(found.get("conditions", []), [refused], generation, status_time(now))
        told = {"phase": "Requested", **found, "reason": "InvalidSpec", "message": message, "conditions": conditions}
        with contextlib.suppress(ApiConflictError, ApiNotFoundError):  # it has changed again: its watch event follows
            stored = await self._api.replace_status({**base, "status": told}, retry=True)
            if (known := self._known.get(item["metadata"]["uid"])) is not None:
                self._known[item["metadata"]["uid"]] = _StoredObject(stored, known.text)

    async def _replace(self, session: Session, base: Object, wanted: Object) -> Object:
        for pause in self._api.pauses():
            epochs.check_epoch(base, self.epoch)
            try:
                return await self._api.replace_status({**base, "status": wanted}, retry=True)
            except ApiConflictError:
                found = await self._api.get(session_objects.SESSION_KIND, self._namespace, session.name, retry=True)
            there = _require_same_uid(found, session).get("status", {})
            epochs.check_epoch(found, self.epoch)
            if (there.get("record"), there.get("mediatorEpoch")) == (wanted["record"], self.epoch):
                return found  # the write had succeeded, and only its answer was lost
            if there.get("record") != base.get("status", {}).get("record"):
                raise SessionOverwrittenError(
                    f"{session.name} was overwritten by mediator epoch {epochs.epoch_of(found)}"
                )
            base = found
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")


def _require_same_uid(item: Object, session: Session) -> Object:
    if item["metadata"]["uid"] != session.uid:
        raise ApiNotFoundError(f"session {session.name} was deleted and created again")
    return item


def _read_session(item: Object, maps: Mapping[str, Mapping[str, Any]]) -> tuple[Session | None, str]:
    text = plan_storage.plan_text(item.get("status", {}), maps)
    session = session_objects.stored_session(plan_storage.with_full_record(item, maps.values()))
    epoch = max((batch.epoch for batch in session.batches), default=0) if session is not None else 0
    if not 0 <= epoch <= epochs.HIGHEST_TAKEN:
        raise ValueError(f"a batch of epoch {epoch} cannot be: the highest is {epochs.HIGHEST_TAKEN}")
    return session, text
