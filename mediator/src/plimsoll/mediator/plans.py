"""A session's record in two parts: what changes as it goes, and who is named, which is large and changes with its plan.

The first stays in the object's status. The second, a text, goes into objects that the session owns; a reader may want
it, and a mediator needs both to go on. Pure functions; `whole` undoes `parted`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

import msgspec

from plimsoll.core.session import Session, decode, encode
from plimsoll.core.spec import API_VERSION
from plimsoll.core.spec.kinds import GROUP

Object = dict[str, Any]
KIND: Final = "ConfigMap"
LABEL: Final = f"{GROUP}/session"
"""On each of them: the name of its session."""

PART_BYTES: Final = 450 * 1024
"""So much of a text goes into one object; it holds at most 1 MiB, for a while that of the text before this one, too."""

_OF_PLAN: Final = ("rejected", "moves", "stays")


class IncompleteError(ValueError):
    """The objects with a session's plan are not there, or not the ones that its status speaks of."""


# ---------------------------------------------------------------- one record, two parts


def parted(session: Session) -> tuple[Object, str]:
    """The record without names, and the text with them; the text is empty as long as nobody is named."""
    record = encode(session)
    names: Object = {}
    if (plan := record.get("plan")) is not None:
        names["hash"] = plan["hash"]
        names["pairs"] = [{key: pair[key] for key in ("source", "target", "members")} for pair in plan["pairs"]]
        names |= {key: plan[key] for key in _OF_PLAN if key in plan}
        pairs = [{key: value for key, value in pair.items() if key != "members"} for pair in plan["pairs"]]
        record["plan"] = {key: value for key, value in plan.items() if key not in _OF_PLAN} | {"pairs": pairs}
        record["batches"] = [_shortened(batch, _order(plan)) for batch in record.get("batches", [])]
    if any("moved" in attempt for attempt in record.get("history", [])):
        names["movedBefore"] = [attempt.get("moved", []) for attempt in record["history"]]
        record["history"] = [_without(attempt, "moved") for attempt in record["history"]]
    text = msgspec.json.format(msgspec.json.encode(names), indent=1).decode() if names else ""
    return record, text


def whole(record: Mapping[str, Any], text: str) -> Session:
    """The session of both parts; raises ValueError if they are not of one session, or cannot be read."""
    found: Object = dict(record)
    try:
        names = msgspec.json.decode(text, type=dict[str, Any]) if text else {}
        if (plan := found.get("plan")) is not None:
            if names.get("hash") != plan["hash"]:
                raise IncompleteError(f"the text names plan {names.get('hash')}, the record plan {plan['hash']}")
            pairs = [
                {**pair, "members": named["members"]}
                for pair, named in zip(plan["pairs"], names["pairs"], strict=True)
            ]  # fmt: skip
            plan = {**plan, "pairs": pairs} | {key: names[key] for key in _OF_PLAN if key in names}
            found["plan"] = plan
            members = [name for pair in pairs for name in pair["members"]]
            found["batches"] = [_lengthened(batch, members) for batch in found.get("batches", [])]
        if "movedBefore" in names:
            found["history"] = [
                {**attempt, "moved": moved}
                for attempt, moved in zip(found["history"], names["movedBefore"], strict=True)
            ]  # fmt: skip
    except (KeyError, TypeError, IndexError, msgspec.MsgspecError) as error:
        raise ValueError(f"these are not the parts of a session's record: {error!r}") from error
    return decode(found)


def _without(plain: Mapping[str, Any], key: str) -> Object:
    return {name: value for name, value in plain.items() if name != key}


def _order(plan: Mapping[str, Any]) -> dict[str, int]:
    return {name: number for number, name in enumerate(name for pair in plan["pairs"] for name in pair["members"])}


def _shortened(batch: Mapping[str, Any], order: Mapping[str, int]) -> Object:
    """Its members by their places in the plan, in runs, and so their states."""
    members: Mapping[str, str] = batch["members"]
    if not all(name in order for name in members):
        return dict(batch)
    runs: list[list[int]] = []
    for name in members:
        if runs and order[name] == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([order[name], 1])
    states = [[state, sum(1 for _ in same)] for state, same in groupby(members.values())]
    return {**batch, "members": {"places": runs, "states": states}}


def _lengthened(batch: Mapping[str, Any], members: list[str]) -> Object:
    short = batch["members"]
    if not isinstance(short.get("places"), list):
        return dict(batch)
    names = [members[place] for first, count in short["places"] for place in range(first, first + count)]
    states = [state for state, count in short["states"] for _ in range(count)]
    return {**batch, "members": dict(zip(names, states, strict=True))}


# ---------------------------------------------------------------- the objects with the text


def key_of(text: str) -> str:
    """Where a text lies in its objects: another text lies elsewhere, so that the last one can be read until then."""
    return f"plan-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def object_names(session: str, text: str) -> list[str]:
    """The names of the objects that a session's text needs."""
    return [f"{session}-plan" if number == 0 else f"{session}-plan-{number + 1}" for number in range(len(_cut(text)))]


def objects(session: Session, namespace: str, text: str, last: str = "") -> list[Object]:
    """The ConfigMaps of a text, owned by their session; `last` is the text that its stored status speaks of."""
    owner = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "name": session.name, "uid": session.uid}
    parts, kept = _cut(text), _cut(last) if last != text else []
    made: list[Object] = []
    for number, name in enumerate(object_names(session.name, text if len(parts) >= len(kept) else last)):
        data = {key_of(last): kept[number]} if number < len(kept) else {}
        if number < len(parts):
            data[key_of(text)] = parts[number]
        made.append({
            "apiVersion": "v1",
            "kind": KIND,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "plimsoll-operator", LABEL: session.name},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "data": data,
        })  # fmt: skip
    return made


def text_of(status: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]]) -> str:
    """The text that a status speaks of, from ConfigMaps by name; raises `IncompleteError`."""
    key = status.get("planKey", "")
    if not key:
        return ""
    try:
        text = "".join(maps[name]["data"][key] for name in status.get("planObjects", []))
    except KeyError as error:
        raise IncompleteError(f"{key} is not in {', '.join(status.get('planObjects', []))}: {error}") from error
    if key_of(text) != key:
        raise IncompleteError(f"what is stored as {key} is not what was stored")
    return text


def joined(item: Mapping[str, Any], maps: Iterable[Mapping[str, Any]]) -> Object:
    """A session's object with its whole record, from the ConfigMaps that its status names; others may be among them."""
    status = item.get("status", {})
    record = status.get("record")
    if record is None:
        return dict(item)
    text = text_of(status, {one["metadata"]["name"]: one for one in maps})
    session = whole(msgspec.json.decode(record) if isinstance(record, str) else record, text)
    return {**item, "status": {**status, "record": encode(session)}}


def _cut(text: str) -> list[str]:
    """A text in parts of bounded size; no part begins within a character."""
    data, parts, start = text.encode(), [], 0
    while start < len(data):
        end = min(start + PART_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        parts.append(data[start:end].decode())
        start = end
    return parts
