"""One object of any kind: its specification with defaults, status, conditions and events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from plimsoll.cli.describe import session
from plimsoll.cli.output import table, yaml_text
from plimsoll.cli.tables import duration_text
from plimsoll.core.spec import KINDS, SourceDocument
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.resources import to_mapping
from plimsoll.local.storage.object_store import Object, ObjectEvent
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION


def describe_object(item: Object, happened: list[ObjectEvent], at: datetime) -> Iterator[str]:
    """The lines of `plimsoll describe`."""
    metadata = item["metadata"]
    yield f"Name:        {metadata['name']}"
    yield f"Kind:        {item['kind']}"
    for owner in metadata.get("ownerReferences", []):
        yield f"Owner:       {owner['kind']}/{owner['name']}"
    for key, value in metadata.get("labels", {}).items():
        yield f"Label:       {key}={value}"
    yield f"Created:     {metadata['creationTimestamp']}, generation {metadata['generation']}"
    if "deletionTimestamp" in metadata:
        yield f"Deleting:    since {metadata['deletionTimestamp']}"
    yield from _yaml_block("Spec (with defaults)", _with_defaults(item))
    status = dict(item.get("status", {}))
    conditions = status.pop("conditions", [])
    if item["kind"] == SESSION:
        yield from session.session_lines(item, at)
    elif status:
        yield from _yaml_block("Status", status)
    if conditions:
        yield "Conditions:"
        rows = [
            [c["type"], c["status"], c["reason"], _age_text(c["lastTransitionTime"], at), c["message"]]
            for c in conditions
        ]
        yield from (f"  {line}" for line in table(["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], rows))
    if happened:
        yield "Events:"
        yield from (f"  {line}" for line in table(EVENT_TITLES, [event_row(event, at) for event in happened]))


EVENT_TITLES = ["LAST", "COUNT", "TYPE", "REASON", "OBJECT", "MESSAGE"]


def event_row(event: ObjectEvent, at: datetime) -> list[str]:
    """One event's line."""
    subject = f"{KINDS[event.kind].short}/{event.name}"
    return [_age_text(event.last, at), str(event.count), event.type, event.reason, subject, event.message]


def _with_defaults(item: Object) -> Any:
    resources, _ = parse_each([SourceDocument(item)])
    return to_mapping(resources[0].spec, defaults=True) if resources else item.get("spec")


def _yaml_block(title: str, value: Any) -> Iterator[str]:
    yield f"{title}:"
    yield from (f"  {line}" for line in yaml_text(value).splitlines())


def _age_text(time_text: str, at: datetime) -> str:
    return duration_text((at - datetime.fromisoformat(time_text)).total_seconds())
