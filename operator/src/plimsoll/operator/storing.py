"""Sessions as the API server keeps them: each in its object's status, its names in ConfigMaps that it owns.

Every write is a compare-and-set against what this life of the mediator has read or written last. Where somebody else
has written a record in between, this life knows too little: it ends before it says anything that rests on the write.
The names are written before the status that speaks of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from plimsoll.core.session import Session, status
from plimsoll.mediator import plans, sessions
from plimsoll.operator import epochs
from plimsoll.operator.api import Api, ConflictError, MissingError, Object


class OvertakenError(RuntimeError):
    """A session has been written by another life since this one read it; a new life reads again."""


@dataclass(frozen=True)
class _Known:
    """An object as it was read or written last, and the text that its status speaks of."""

    item: Object
    text: str = ""


@dataclass(frozen=True)
class Loaded:
    """All sessions of a namespace. `lost`: objects whose plan is gone, with why; they begin anew."""

    items: list[Object]
    sessions: list[Session]
    lost: list[tuple[Object, str]]


class Storing:
    """The sessions of one namespace, for one life of the mediator."""

    def __init__(self, api: Api, namespace: str, epoch: int = 0) -> None:
        self._api, self._namespace = api, namespace
        self.epoch = epoch
        self._known: dict[str, _Known] = {}

    def item(self, uid: str) -> Object | None:
        """An object as it was read or written last."""
        known = self._known.get(uid)
        return known.item if known is not None else None

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    # -- reading

    async def load(self) -> Loaded:
        """Read everything; what is stored by a mediator of a higher epoch is refused with `DeposedError`."""
        items = await self._api.list(sessions.KIND, self._namespace, retry=True)
        maps = {
            one["metadata"]["name"]: one
            for one in await self._api.list(plans.KIND, self._namespace, plans.LABEL, retry=True)
        }
        loaded = Loaded(items, [], [])
        for item in items:
            try:
                session, text = _read(item, maps)
            except ValueError as error:
                loaded.lost.append((item, str(error)))
                session, text = None, ""
            self._known[item["metadata"]["uid"]] = _Known(item, text)
            if session is not None:
                loaded.sessions.append(session)
        return loaded

    # -- writing

    async def save(self, session: Session, now: float) -> Object:
        """Store a session; returns its object as it is then.

        Raises:
            MissingError: the object has gone, or another one has its name.
            DeposedError: a mediator of a higher epoch has written it.
            OvertakenError: it is not what this life has read or written.

        """
        record, text = await asyncio.to_thread(plans.parted, session)
        known = self._known.get(session.uid)
        if known is None:
            item = await self._api.get(sessions.KIND, self._namespace, session.name, retry=True)
            known = _Known(_same(item, session))
        if text and text != known.text:
            for part in plans.objects(session, self._namespace, text, known.text):
                await self._api.apply(part, retry=True)
        wanted = {
            **status(session, now),
            "mediatorEpoch": self.epoch,
            "record": msgspec.json.encode(record).decode(),
            **({"planKey": plans.key_of(text), "planObjects": plans.object_names(session.name, text)} if text else {}),
        }
        item = await self._replace(session, known.item, wanted)
        self._known[session.uid] = _Known(item, text)
        return item

    async def _replace(self, session: Session, base: Object, wanted: Object) -> Object:
        for pause in self._api.pauses():
            epochs.check(base, self.epoch)
            try:
                return await self._api.replace_status({**base, "status": wanted}, retry=True)
            except ConflictError:
                found = await self._api.get(sessions.KIND, self._namespace, session.name, retry=True)
            there = _same(found, session).get("status", {})
            epochs.check(found, self.epoch)
            if (there.get("record"), there.get("mediatorEpoch")) == (wanted["record"], self.epoch):
                return found  # it had come through, and its answer was lost
            if there.get("record") != base.get("status", {}).get("record"):
                raise OvertakenError(f"{session.name} was written by mediator epoch {epochs.of(found)} meanwhile")
            base = found
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")


def _same(item: Object, session: Session) -> Object:
    if item["metadata"]["uid"] != session.uid:
        raise MissingError(f"the object of session {session.name} has been made anew")
    return item


def _read(item: Object, maps: Mapping[str, Mapping[str, Any]]) -> tuple[Session | None, str]:
    text = plans.text_of(item.get("status", {}), maps)
    return sessions.record(plans.joined(item, maps.values())), text
