"""A session's record in two parts: the state, which changes often, and the names, which are large and change rarely.

The state is in the object's status; the names are one text in ConfigMaps that the session owns. A mediator needs both
to resume a session. Pure functions.
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
PLAN_KIND: Final = "ConfigMap"
PLAN_LABEL: Final = f"{GROUP}/session"
"""On each of them: the name of its session."""

PART_BYTES: Final = 450 * 1024
"""Characters per ConfigMap; its limit is 1 MiB, and for a while it also holds the previous text."""

_OF_PLAN: Final = ("rejected", "moves", "stays")


class IncompletePlanError(ValueError):
    """The ConfigMaps with a session's plan are missing, or are not those that its status names."""


# ---------------------------------------------------------------- one record, two parts


def split_session(session: Session) -> tuple[Object, str]:
    """The record without names, as JSON is read; and the text with them, which is empty while there are no names."""
    record: Object = msgspec.json.decode(msgspec.json.encode(encode(session)))
    names: Object = {}
    if (plan := record.get("plan")) is not None:
        names["hash"] = plan["hash"]
        names["pairs"] = [{key: pair[key] for key in ("source", "target", "members")} for pair in plan["pairs"]]
        names |= {key: plan[key] for key in _OF_PLAN if key in plan}
        pairs = [{key: value for key, value in pair.items() if key != "members"} for pair in plan["pairs"]]
        record["plan"] = {key: value for key, value in plan.items() if key not in _OF_PLAN} | {"pairs": pairs}
        record["batches"] = [_compact_batch(batch, _order(plan)) for batch in record.get("batches", [])]
    if any("moved" in attempt for attempt in record.get("history", [])):
        names["movedBefore"] = [attempt.get("moved", []) for attempt in record["history"]]
        record["history"] = [_without(attempt, "moved") for attempt in record["history"]]
    text = msgspec.json.format(msgspec.json.encode(names), indent=1).decode() if names else ""
    return record, text


def join_session(record: Mapping[str, Any], text: str) -> Session:
    """The session from both parts; raises ValueError if they do not belong together or are invalid."""
    found: Object = dict(record)
    try:
        names = msgspec.json.decode(text, type=dict[str, Any]) if text else {}
        if (plan := found.get("plan")) is not None:
            if names.get("hash") != plan["hash"]:
                raise IncompletePlanError(f"the text names plan {names.get('hash')}, the record plan {plan['hash']}")
            pairs = [
                {**pair, "members": named["members"]}
                for pair, named in zip(plan["pairs"], names["pairs"], strict=True)
            ]  # fmt: skip
            plan = {**plan, "pairs": pairs} | {key: names[key] for key in _OF_PLAN if key in names}
            found["plan"] = plan
            members = [name for pair in pairs for name in pair["members"]]
            found["batches"] = [_expanded_batch(batch, members) for batch in found.get("batches", [])]
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


def _compact_batch(batch: Mapping[str, Any], order: Mapping[str, int]) -> Object:
    """A batch's members as runs of indices into the plan, and likewise their states."""
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


def _expanded_batch(batch: Mapping[str, Any], members: list[str]) -> Object:
    short = batch["members"]
    if not isinstance(short.get("places"), list):
        return dict(batch)
    names = [members[place] for first, count in short["places"] for place in range(first, first + count)]
    states = [state for state, count in short["states"] for _ in range(count)]
    return {**batch, "members": dict(zip(names, states, strict=True))}


# ---------------------------------------------------------------- the objects with the text


def plan_key(text: str) -> str:
    """The key of a text in its objects; each text has its own, so that the last one stays readable until replaced."""
    return f"plan-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def plan_object_names(session: str, text: str) -> list[str]:
    """The names of the objects that a session's text needs."""
    return [
        f"{session}-plan" if number == 0 else f"{session}-plan-{number + 1}" for number in range(len(_text_parts(text)))
    ]


def plan_objects(session: Session, namespace: str, text: str, last: str = "") -> list[Object]:
    """The ConfigMaps of a text, owned by their session; `last` is the text that its stored status refers to."""
    owner = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "name": session.name, "uid": session.uid}
    parts, kept = _text_parts(text), _text_parts(last) if last != text else []
    made: list[Object] = []
    for number, name in enumerate(plan_object_names(session.name, text if len(parts) >= len(kept) else last)):
        data = {plan_key(last): kept[number]} if number < len(kept) else {}
        if number < len(parts):
            data[plan_key(text)] = parts[number]
        made.append({
            "apiVersion": "v1",
            "kind": PLAN_KIND,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "plimsoll-operator", PLAN_LABEL: session.name},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "data": data,
        })  # fmt: skip
    return made


def plan_text(status: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]]) -> str:
    """The text that a status refers to, from ConfigMaps by name; raises `IncompletePlanError`."""
    key = status.get("planKey", "")
    if not key:
        return ""
    try:
        text = "".join(maps[name]["data"][key] for name in status.get("planObjects", []))
    except KeyError as error:
        raise IncompletePlanError(f"{key} is not in {', '.join(status.get('planObjects', []))}: {error}") from error
    if plan_key(text) != key:
        raise IncompletePlanError(f"the text stored as {key} was changed: its hash is not that of its name")
    return text


def with_full_record(item: Mapping[str, Any], maps: Iterable[Mapping[str, Any]]) -> Object:
    """A session's object with its whole record, from the ConfigMaps that its status names; others are ignored.

    A record may also be the JSON text that earlier operators wrote.
    """
    status = item.get("status", {})
    record = status.get("record")
    if record is None:
        return dict(item)
    text = plan_text(status, {one["metadata"]["name"]: one for one in maps})
    session = join_session(msgspec.json.decode(record) if isinstance(record, str) else record, text)
    return {**item, "status": {**status, "record": encode(session)}}


def _text_parts(text: str) -> list[str]:
    """A text in parts of bounded size; no part begins within a character."""
    data, parts, start = text.encode(), [], 0
    while start < len(data):
        end = min(start + PART_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        parts.append(data[start:end].decode())
        start = end
    return parts
