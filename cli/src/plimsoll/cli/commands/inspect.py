"""Commands that only read: get, explain, describe, watch, events."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from plimsoll.cli import backend, selectors
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import away, bundles, consumers, topics
from plimsoll.cli.describe import session
from plimsoll.cli.describe.object import EVENT_TITLES, describe_object, event_row
from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import now, objects_text, print_error, print_line, print_lines, redraw, table
from plimsoll.cli.staleness import StalenessNotes
from plimsoll.cli.tables import columns, row
from plimsoll.core.printable import printable
from plimsoll.core.spec import KINDS
from plimsoll.core.spec.problems import nearest_word
from plimsoll.core.spec.schemas.field_reference import field_references
from plimsoll.local.storage.object_store import Object, ObjectChange
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.session_objects import parent_uid


def get(options: argparse.Namespace) -> int:
    """Show objects of a kind, or of all kinds."""
    if options.kind in bundles.WORDS:
        return bundles.get_bundles(options)
    if options.kind in away.WORDS:
        return away.get_subscribers(options)
    if options.kind in consumers.WORDS:
        return consumers.get_consumers(options)
    if options.kind in topics.WORDS:
        return topics.get_topics(options)
    place: FleetReader = backend.choose_backend(options)
    kind = None if options.kind == "all" else selectors.resolve_kind(options.kind).name
    if options.watch:
        items, changes = place.watch(*_kinds(kind))
    else:
        items, changes = place.objects(*_kinds(kind)), iter(())
    notes = StalenessNotes(place)
    notes.print_changes()
    items = _with_name(place.displayed(items), kind, options.name, place)
    text = objects_text(items, options.output, single=options.name is not None)
    if text:
        print_lines(text)
    elif not options.watch:
        print_error(f"no {kind or 'objects'} in {place.title}")
    if not options.watch and (why := place.unserved_reason()):
        print_error(why)
    _print_changes(changes, options, notes)
    return OK


def explain(options: argparse.Namespace) -> int:
    """Show the fields of a kind, or those below a path such as `bc.edges`; or why a session did what it did."""
    if "/" in options.path:
        return _explain_session(options)
    word, _, path = options.path.partition(".")
    kind = selectors.resolve_kind(word)
    prefix = "spec." + path.removeprefix("spec.").removeprefix("spec")
    lines = [
        line
        for line in field_references(kind, brief=not path)
        if line.path.replace("[]", "").startswith(prefix.rstrip("."))
    ]
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
    for text in table(["FIELD", "TYPE", "DEFAULT", "BOUNDS", "DESCRIPTION"], rows):
        print_line(text)
    return OK


def _explain_session(options: argparse.Namespace) -> int:
    word, _, name = options.path.partition("/")
    kind = selectors.resolve_kind(word).name
    if kind != SESSION:
        raise CommandError(BAD_INPUT, f"only sessions are explained one by one: `plimsoll explain {word}` shows fields")
    place: FleetReader = backend.choose_backend(options)
    items = place.objects(SESSION)
    [item] = _with_name(items, kind, name, place)
    children = [place.with_plan(other) for other in items if parent_uid(other) == item["metadata"]["uid"]]
    for line in session.session_explanation(place.with_plan(item), children):
        print_line(line)
    return OK


def describe(options: argparse.Namespace) -> int:
    """Show everything about one object: specification with defaults, status, conditions, events."""
    place: FleetReader = backend.choose_backend(options)
    kind = selectors.resolve_kind(options.kind).name
    StalenessNotes(place).print_changes()
    [item] = _with_name(place.displayed(place.objects(kind)), kind, options.name, place)
    if kind == SESSION:
        item = place.with_plan(item)
    for line in describe_object(item, place.events(kind, options.name), now()):
        print_line(line)
    return OK


def events(options: argparse.Namespace) -> int:
    """Show events, oldest first."""
    place: FleetReader = backend.choose_backend(options)
    notes = StalenessNotes(place)
    notes.print_changes()
    found = place.events()
    for line in table(EVENT_TITLES, [event_row(event, now()) for event in found]):
        print_line(line)
    last = max((event.id for event in found), default=0)
    while options.watch:
        time.sleep(place.poll_seconds)
        notes.print_changes()
        new = [event for event in place.events() if event.id > last]
        for event in new:
            print_line("  ".join(event_row(event, now())))
        last = max([last, *(event.id for event in new)])
    return OK


def watch(options: argparse.Namespace) -> int:
    """Show the fleet as it changes: a table that is redrawn, or without a terminal a line for each change."""
    place: FleetReader = backend.choose_backend(options)
    kinds = ("BrokerFleet", "BrokerCluster", "EdgeBroker")
    if not sys.stdout.isatty():
        before: dict[str, str] = {}
        notes = StalenessNotes(place)
        while True:
            notes.print_changes()
            for item in place.displayed(place.objects(*kinds)):
                _print_change(item, before)
            time.sleep(place.poll_seconds)
    while True:
        text = objects_text(place.displayed(place.objects(*kinds)), "table", single=False)
        note = printable(place.staleness_note())
        header = f"{now():%H:%M:%S}  {printable(place.title)}  (Ctrl-C ends)" + (f"\n{note}" if note else "")
        redraw(f"{header}\n\n{text}")
        time.sleep(options.interval)


def _kinds(kind: str | None) -> tuple[str, ...]:
    return () if kind is None else (kind,)


def _with_name(items: list[Object], kind: str | None, name: str | None, place: FleetReader) -> list[Object]:
    if name is None:
        return items
    found = [item for item in items if item["metadata"]["name"] == name]
    if not found:
        close = nearest_word(name, [item["metadata"]["name"] for item in items])
        hint = f' Did you mean "{close}"?' if close else ""
        raise CommandError(NOT_FOUND, f'no {kind or "object"} "{name}" in {place.title}.{hint}')
    return found


def _print_changes(portions: Iterator[list[ObjectChange]], options: argparse.Namespace, notes: StalenessNotes) -> None:
    """Print a line for each change of what the table shows, or each changed object whole."""
    before: dict[str, str] = {}
    for portion in portions:
        notes.print_changes()
        for change in portion:
            if options.name in (None, change.name):
                _print_followed_change(change, options.output, before)


def _print_followed_change(change: ObjectChange, form: str, before: dict[str, str]) -> None:
    if form in ("json", "yaml", "name"):
        text = objects_text([change.object], form, single=True)
        print_lines(f"---\n{text}" if form == "yaml" else text)
    elif change.type == "DELETED":
        print_line(f"{change.name}  deleted")
    else:
        _print_change(change.object, before, wide=form == "wide", prefix=False)


def _print_change(item: Object, before: dict[str, str], *, wide: bool = False, prefix: bool = True) -> None:
    shown = [column for column in columns(item["kind"], wide=wide) if column.title != "AGE"]
    cells = row(shown, item, now())
    subject = f"{KINDS[item['kind']].short}/{item['metadata']['name']}"
    named = [f"{column.title}={cell}" for column, cell in zip(shown[1:], cells[1:], strict=True)]
    text = f"{subject}  {' '.join(named)}" if prefix else "  ".join(cells)
    if before.get(subject) != text:
        before[subject] = text
        print_line(f"{now():%H:%M:%S}  {text}" if prefix else text)
