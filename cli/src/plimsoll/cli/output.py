"""Tables for people, JSON and YAML for programs; and all that the command prints.

Text from outside (names above all) goes to a terminal here alone, with what is unprintable in it as escapes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import yaml

from plimsoll.cli.exit_codes import FAILED, CommandError
from plimsoll.cli.tables import columns, row
from plimsoll.core.printable import printable, printable_cell, printable_lines
from plimsoll.core.spec import KINDS


def print_line(text: str = "") -> None:
    """Print one line to standard output and flush it, for readers of a pipe."""
    _write(printable(text))


def print_lines(text: str) -> None:
    """Print lines that were made one by one: a table, an object, a report of problems."""
    _write(printable_lines(text))


def _write(text: str) -> None:
    try:
        print(printable_lines(text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        # What could not be written is still in the buffer: the flush at the end of the process must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(FAILED, f"cannot write to standard output: {error.strerror}") from error


def redraw(text: str) -> None:
    """Print lines in the place of all that the terminal shows."""
    sys.stdout.write("\x1b[H\x1b[2J")
    print_lines(text)


def print_error(text: str) -> None:
    """Print one line to standard error."""
    print_error_lines(printable(text))


def print_error_lines(text: str) -> None:
    """Print lines that were made one by one to standard error. They are lost where its disk is full."""
    with contextlib.suppress(OSError):  # there is nowhere else to say it, and the exit code still tells
        print(printable_lines(text), file=sys.stderr, flush=True)


def now() -> datetime:
    return datetime.now(UTC)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with aligned columns; the last column is not padded."""
    lines = [list(titles), *([printable_cell(cell) for cell in line] for line in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(titles))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def objects_text(items: Sequence[Mapping[str, Any]], form: str, *, single: bool) -> str:
    """Objects in the requested format; `single`: one object by its name, not a list of one."""
    if form == "name":
        return "\n".join(printable(f"{KINDS[item['kind']].plural}/{item['metadata']['name']}") for item in items)
    if form in ("json", "yaml"):
        whole = items[0] if single else {"apiVersion": "v1", "kind": "List", "items": list(items)}
        return json.dumps(whole, indent=2) if form == "json" else yaml_text(whole)
    blocks = []
    for kind, group in groupby(sorted(items, key=_sort_key), key=lambda item: str(item["kind"])):
        shown = columns(kind, wide=form == "wide")
        lines = table([column.title for column in shown], [row(shown, item, now()) for item in group])
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def yaml_text(value: object) -> str:
    """YAML in the order of the fields, as files are written; with escapes of its own where text is not printable."""
    text = str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))
    if printable_lines(text) != text:
        text = str(yaml.safe_dump(value, sort_keys=False, allow_unicode=False, width=120))
    return text.rstrip("\n")


def _sort_key(item: Mapping[str, Any]) -> tuple[int, str]:
    return list(KINDS).index(item["kind"]), item["metadata"]["name"]
