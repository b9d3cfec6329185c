"""`plimsoll simulate`: a world of one's own in virtual time, under several policies side by side."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.output import print_line, table
from plimsoll.core.printable import html_text
from plimsoll.core.spec import InvalidResourcesError, SourceDocument
from plimsoll.core.spec.problems import ResourceProblem
from plimsoll.local import manifests
from plimsoll.pages.charts import Chart, ChartLine, svg
from plimsoll.pages.style import STYLE

PROGRAM = "plimsoll.simulator.worlds"
STANDARD_OUTPUT = Path("-")
COLUMNS = (
    "POLICY", "MAX LOAD", "COV", "MOVES", "SESSIONS", "DELAY", "P99", "AT THE END", "LATE", "OVERLOADED", "OVERHEAD",
)  # fmt: skip
COPY_COLUMNS = ("BROKER", "IN%", "MODEL", "OUT%", "MODEL", "PUBS/S", "MODEL", "OUT/S", "MODEL")
COPIED = (
    ("inputUtilizationPercent", "input_utilization", 100), ("outputUtilizationPercent", "output_utilization", 100),
    ("publicationsPerSecond", "input_rate", 1), ("deliveriesPerSecond", "output_rate", 1),
)  # fmt: skip
"""Fields of what was measured, and of load reports, with their scales."""


def simulate(options: argparse.Namespace) -> int:
    """Run the world of the files under each policy, and print a row for each."""
    for file in (options.json, options.page):
        if file is not None and file != STANDARD_OUTPUT:
            _check_writable(file)
    if options.page == STANDARD_OUTPUT:
        raise CommandError(BAD_INPUT, "a page is for a browser; name a file for --page")
    documents = manifests.load(options.file)
    world = _world(documents)
    rest = [each for each in documents if each.content is not None and _kind(each) != "World"]
    asked = {
        "documents": [each.content for each in rest], "world": _spec(world), "policies": options.policy or ["own"],
        "seed": options.seed,
    }  # fmt: skip
    answer = _run(asked)
    if "problems" in answer:
        raise InvalidResourcesError(_located(each, world, rest) for each in answer["problems"])
    rows: list[dict[str, Any]] = answer["rows"]
    if options.json == STANDARD_OUTPUT:
        print_line(json.dumps(rows))
    else:
        for line in (*table(COLUMNS, [_row(row) for row in rows]), *_beside_measured(_spec(world), rows[0])):
            print_line(line)
    if options.json is not None and options.json != STANDARD_OUTPUT:
        _write(options.json, json.dumps(rows, indent=1))
    if options.page is not None:
        _write(options.page, page(rows))
    return OK


def _check_writable(file: Path) -> None:
    """Before the run: it may take minutes."""
    folder = file.parent
    if file.is_dir():
        raise CommandError(BAD_INPUT, f"{file} is a folder; name a file, which is written when the run is over")
    if not folder.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        said = "may not be written to" if folder.is_dir() else f"has no folder: there is no {folder}"
        raise CommandError(BAD_INPUT, f"{file} {said}; name another file")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(FAILED, f"{file} cannot be written: {error.strerror}") from error


def _located(problem: Mapping[str, Any], world: SourceDocument, rest: Sequence[SourceDocument]) -> ResourceProblem:
    """A problem with the file and the line of what it is about."""
    number, path = problem.get("document"), tuple(problem.get("path", ()))
    document, subject = (world, _subject(world)) if number is None else (rest[number], problem["subject"])
    if number is None:
        path = ("spec", *path)
    line = document.line_of(path)
    return ResourceProblem(document.file, line, subject, path, problem["found"], problem.get("remedy", ""))


def _subject(world: SourceDocument) -> str:
    metadata = world.content.get("metadata") if isinstance(world.content, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"World/{name}" if name else "World"


def _beside_measured(world: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Lines that show how good a copy the World is: what its fleet measured, and the first minute of the first run."""
    measured = world.get("measured")
    if measured is None:
        return
    yield ""
    yield f"measured at {measured['at']}, and the first minute under {row['policy']}:"
    yield from table(COPY_COLUMNS, [_copy_row(each, row["first_minute"]) for each in measured["brokers"]])


def _copy_row(measured: Mapping[str, Any], first: Mapping[str, Mapping[str, float]]) -> list[str]:
    model = first.get(measured["name"], {})
    cells = [measured["name"]]
    is_head = "subscribers" not in measured  # the model sends none of the messages between heads and edges
    for key, metric, scale in COPIED:
        if is_head and key == "deliveriesPerSecond":
            cells += ["-", "-"]
            continue
        cells.append(f"{measured[key]:,}" if key in measured else "-")
        cells.append(f"{model[metric] * scale:,.0f}" if metric in model else "-")
    return cells


def _kind(document: SourceDocument) -> str:
    return str(document.content.get("kind")) if isinstance(document.content, Mapping) else ""


def _world(documents: Sequence[SourceDocument]) -> SourceDocument:
    found = [each for each in documents if _kind(each) == "World"]
    if len(found) != 1:
        said = "there is no World" if not found else f"there are {len(found)} Worlds"
        raise CommandError(BAD_INPUT, f"{said} in the files: give one, as `plimsoll example worlds/two-edges` prints")
    if not isinstance(_spec(found[0]), Mapping):
        raise CommandError(BAD_INPUT, f"{found[0].file}: the World has no spec: name duration, publishers, subscribers")
    return found[0]


def _spec(world: SourceDocument) -> Any:
    content: Any = world.content
    return content.get("spec")


def _run(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run the simulator as a program."""
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM], input=json.dumps(asked, default=str), stdout=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(FAILED, f"the simulation ended with code {done.returncode}; what it wrote is above")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(row["policy"]), f"{row['max_load']:.3f}", f"{row['cov']:.3f}", f"{row['moves']:,}", str(row["sessions"]),
        _milliseconds(row["delay_mean_seconds"]), _milliseconds(row["delay_p99_seconds"]),
        _milliseconds(row["delay_end_seconds"]), _late(row), f"{row['overload_seconds']:.0f} s",
        f"{row['overhead_ratio']:.2%}",
    )  # fmt: skip


def _late(row: Mapping[str, Any]) -> str:
    """Deliveries later than required, as a share of those with a deadline; `-` if none has one."""
    total = row["with_deadline"]
    return f"{row['late'] / total:.2%}" if total else "-"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The comparison as one HTML page: the table, and the loads of every edge under each policy."""
    charts = "".join(
        f"<figure><h3>{html_text(str(row['policy']))} <span class='dim'>(load of each edge)</span></h3>"
        f"{svg(_chart(row))}</figure>"
        for row in rows
    )
    heads = "".join(f"<th>{html_text(each.lower())}</th>" for each in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in _row(row)) + "</tr>" for row in rows)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plimsoll: policies side by side</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Policies side by side</h1>\n<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>\n"
        f"<div class='charts'>{charts}</div>\n</body>\n</html>\n"
    )


def _chart(row: Mapping[str, Any]) -> Chart:
    lines = [
        ChartLine(edge, 1 + number % 7, [(at, load) for at, load in points])
        for number, (edge, points) in enumerate(row["loads"].items())
    ]
    return Chart("Load", "ratio", lines)
