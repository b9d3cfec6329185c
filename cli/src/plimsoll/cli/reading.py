"""Commands that show something: get, describe, watch, events."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from plimsoll.cli import fleets, places, telling
from plimsoll.cli.codes import BAD_INPUT, NOT_FOUND, OK, CommandError
from plimsoll.cli.columns import columns, duration, row
from plimsoll.cli.output import now, objects_text, say, table, yaml_text
from plimsoll.cli.places import Place
from plimsoll.core.spec import KINDS, Document
from plimsoll.core.spec.parsing import read
from plimsoll.core.spec.problems import nearest
from plimsoll.core.spec.reference import reference
from plimsoll.core.spec.resources import written
from plimsoll.local.store import Change, Event, Object
from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.mediator.sessions import parent


def get(options: argparse.Namespace) -> int:
    """Show objects of a kind, or of all kinds."""
    place = places.choose(options)
    kind = None if options.kind == "all" else fleets.kind(options.kind).name
    if options.watch:
        items, changes = place.watch(*_kinds(kind))
    else:
        items, changes = place.objects(*_kinds(kind)), iter(())
    items = _named(place.shown(items), kind, options.name, place)
    text = objects_text(items, options.output, single=options.name is not None)
    if text:
        say(text)
    elif not options.watch:
        print(f"no {kind or 'objects'} in {place.title}", file=sys.stderr)
    _follow(changes, options)
    return OK


def explain(options: argparse.Namespace) -> int:
    """Show the fields of a kind, or those below a path such as `bc.edges`; or why a session did what it did."""
    if "/" in options.path:
        return _explain_session(options)
    word, _, path = options.path.partition(".")
    kind = fleets.kind(word)
    prefix = "spec." + path.removeprefix("spec.").removeprefix("spec")
    lines = [line for line in reference(kind) if line.path.replace("[]", "").startswith(prefix.rstrip("."))]
    if not lines:
        raise CommandError(NOT_FOUND, f'{kind.name} has no field "{path}"; `plimsoll explain {kind.short}` lists them')
    rows = [
        [
            line.path,
            line.type.replace("\\|", "|"),
            "required" if line.required else line.default,
            line.bounds,
            line.text,
        ]
        for line in lines
    ]
    for text in table(["FIELD", "TYPE", "DEFAULT", "BOUNDS", "WHAT IT IS"], rows):
        say(text)
    return OK


def _explain_session(options: argparse.Namespace) -> int:
    word, _, name = options.path.partition("/")
    kind = fleets.kind(word).name
    if kind != SESSION:
        raise CommandError(BAD_INPUT, f"only sessions are explained one by one: `plimsoll explain {word}` shows fields")
    place = places.choose(options)
    items = place.objects(SESSION)
    [item] = _named(items, kind, name, place)
    children = [other for other in items if parent(other) == item["metadata"]["uid"]]
    for line in telling.explanation(place.whole(item), children):
        say(line)
    return OK


def describe(options: argparse.Namespace) -> int:
    """Show everything about one object: specification with defaults, status, conditions, events."""
    place = places.choose(options)
    kind = fleets.kind(options.kind).name
    [item] = _named(place.shown(place.objects(kind)), kind, options.name, place)
    if kind == SESSION:
        item = place.whole(item)
    for line in description(item, place.events(kind, options.name), now()):
        say(line)
    return OK


def events(options: argparse.Namespace) -> int:
    """Show what happened, oldest first."""
    place = places.choose(options)
    found = place.events()
    for line in table(EVENT_TITLES, [event_row(event, now()) for event in found]):
        say(line)
    last = max((event.id for event in found), default=0)
    while options.watch:
        time.sleep(place.poll_seconds)
        new = [event for event in place.events() if event.id > last]
        for event in new:
            say("  ".join(event_row(event, now())))
        last = max([last, *(event.id for event in new)])
    return OK


def watch(options: argparse.Namespace) -> int:
    """Show the fleet as it changes: a table that is redrawn, or without a terminal a line for each change."""
    place = places.choose(options)
    kinds = ("BrokerFleet", "BrokerCluster", "EdgeBroker")
    if not sys.stdout.isatty():
        before: dict[str, str] = {}
        while True:
            for item in place.shown(place.objects(*kinds)):
                _say_change(item, before)
            time.sleep(place.poll_seconds)
    while True:
        text = objects_text(place.shown(place.objects(*kinds)), "table", single=False)
        say(f"\x1b[H\x1b[2J{now():%H:%M:%S}  {place.title}  (Ctrl-C ends)\n\n{text}")
        time.sleep(options.interval)


def description(item: Object, happened: list[Event], at: datetime) -> Iterator[str]:
    """One object for a person."""
    metadata = item["metadata"]
    yield f"Name:        {metadata['name']}"
    yield f"Kind:        {item['kind']}"
    for owner in metadata.get("ownerReferences", []):
        yield f"Made by:     {owner['kind']}/{owner['name']}"
    for key, value in metadata.get("labels", {}).items():
        yield f"Label:       {key}={value}"
    yield f"Created:     {metadata['creationTimestamp']}, generation {metadata['generation']}"
    if "deletionTimestamp" in metadata:
        yield f"Leaving:     since {metadata['deletionTimestamp']}"
    yield from _block("Spec (with defaults)", _with_defaults(item))
    status = dict(item.get("status", {}))
    conditions = status.pop("conditions", [])
    if item["kind"] == SESSION:
        yield from telling.account(item, at)
    elif status:
        yield from _block("Status", status)
    if conditions:
        yield "Conditions:"
        rows = [
            [c["type"], c["status"], c["reason"], _ago(c["lastTransitionTime"], at), c["message"]] for c in conditions
        ]
        yield from (f"  {line}" for line in table(["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], rows))
    if happened:
        yield "Events:"
        yield from (f"  {line}" for line in table(EVENT_TITLES, [event_row(event, at) for event in happened]))


EVENT_TITLES = ["LAST", "COUNT", "TYPE", "REASON", "OBJECT", "MESSAGE"]


def event_row(event: Event, at: datetime) -> list[str]:
    """One event's line."""
    subject = f"{KINDS[event.kind].short}/{event.name}"
    return [_ago(event.last, at), str(event.count), event.type, event.reason, subject, event.message]


def _kinds(kind: str | None) -> tuple[str, ...]:
    return () if kind is None else (kind,)


def _named(items: list[Object], kind: str | None, name: str | None, place: Place) -> list[Object]:
    if name is None:
        return items
    found = [item for item in items if item["metadata"]["name"] == name]
    if not found:
        close = nearest(name, [item["metadata"]["name"] for item in items])
        hint = f' Did you mean "{close}"?' if close else ""
        raise CommandError(NOT_FOUND, f'no {kind or "object"} "{name}" in {place.title}.{hint}')
    return found


def _follow(portions: Iterator[list[Change]], options: argparse.Namespace) -> None:
    """Print a line for each change of what the table shows, or each changed object whole."""
    before: dict[str, str] = {}
    for portion in portions:
        for change in portion:
            if options.name in (None, change.name):
                _say_followed(change, options.output, before)


def _say_followed(change: Change, form: str, before: dict[str, str]) -> None:
    if form in ("json", "yaml", "name"):
        text = objects_text([change.object], form, single=True)
        say(f"---\n{text}" if form == "yaml" else text)
    elif change.type == "DELETED":
        say(f"{change.name}  deleted")
    else:
        _say_change(change.object, before, wide=form == "wide", prefix=False)


def _say_change(item: Object, before: dict[str, str], *, wide: bool = False, prefix: bool = True) -> None:
    shown = [column for column in columns(item["kind"], wide=wide) if column.title != "AGE"]
    cells = row(shown, item, now())
    subject = f"{KINDS[item['kind']].short}/{item['metadata']['name']}"
    named = [f"{column.title}={cell}" for column, cell in zip(shown[1:], cells[1:], strict=True)]
    text = f"{subject}  {' '.join(named)}" if prefix else "  ".join(cells)
    if before.get(subject) != text:
        before[subject] = text
        say(f"{now():%H:%M:%S}  {text}" if prefix else text)


def _with_defaults(item: Object) -> Any:
    resources, _ = read([Document(item)])
    return written(resources[0].spec, defaults=True) if resources else item.get("spec")


def _block(title: str, value: Any) -> Iterator[str]:
    yield f"{title}:"
    yield from (f"  {line}" for line in yaml_text(value).splitlines())


def _ago(time_text: str, at: datetime) -> str:
    return duration((at - datetime.fromisoformat(time_text)).total_seconds())
