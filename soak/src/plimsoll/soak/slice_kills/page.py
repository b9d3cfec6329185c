"""The page docs/kill-matrix-slices.md, from the results of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.core.verify.slice_kill_cells import (
    MEANINGS,
    STEPS,
    TIMES,
    VICTIMS,
    WAYS,
    InSession,
    SliceKillCell,
    SliceKillResult,
    all_cells,
)
from plimsoll.soak import matrix_page

PAGE_HEAD: Final = """\
<!-- Written by `python -m plimsoll.soak.slice_kills.runner --write FILE` from a run. Do not edit. -->
# Kill matrix of slices

A process is killed before and behind each message by which a slice of a [consumer group](groups.md) moves from one
consumer to another, from the log (`inSession: Deliver`) and with caches (`Cache`), while publications flow. Each item
is judged by what consumers write down. [Another matrix](kill-matrix.md) does the same to hand-overs between edges.

A cell is a run of the simulator, with the machines of the product in virtual time: a head, two edges, a mediator, two
consumers with four slices, two publishers with 80 publications a second of which half are in a slice, and 60 ms of
work an item, so that items wait at the giver. *Before*: the message has been sent and has not arrived; what the killed
process had on its way is lost. *Behind*: it has been dealt with, and what follows from it is on its way. What is
killed comes back a second later. A silent consumer counts as gone after 1.8 s. *giver's edge* serves the slice when
the move begins.

Each cell has how the slice has left its giver, with the size of the cache, who has it at the end, the time from the
kill until its next item was given to an application, and the items that came again, marked, since a killed consumer
may have had them. A cell has passed if no item of any slice was lost, given twice without a mark, out of order or in
two hands at a time; everything is at rest in the end; and there is no gap, but for a killed head.
"""
TITLES: Final[dict[InSession, str]] = {"Deliver": "From the log", "Cache": "With caches"}


def slice_kill_page(found: Mapping[SliceKillCell, SliceKillResult]) -> str:
    """The page as Markdown."""
    return "\n".join([PAGE_HEAD, *_sums(found), *(line for way in WAYS for line in _of_way(found, way))])


def _sums(found: Mapping[SliceKillCell, SliceKillResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    cells = sum(cell.victim is not None for cell in all_cells())
    yield (
        f"{matrix_page.passed_of(hit, cells)}; "
        f"{sum(one.processed_once for one in hit):,} items processed once, "
        f"{sum(one.redelivered for one in hit):,} came again with a mark; "
        f"{sum(one.lost for one in hit)} lost, {sum(one.repeated for one in hit)} repeated, "
        f"{sum(one.reordered for one in hit)} out of order.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield f"{TITLES[cell.in_session]}, without a kill: {matrix_page.cell_text(one, end_text)}.\n"


def _of_way(found: Mapping[SliceKillCell, SliceKillResult], way: InSession) -> Iterator[str]:
    yield f"## {TITLES[way]}\n"
    yield from matrix_page.meanings((step, MEANINGS[step]) for step in STEPS[way])
    yield ""
    rows = (
        (
            f"{when} *{step}*",
            (matrix_page.cell_text(found.get(SliceKillCell(way, step, when, each)), end_text) for each in VICTIMS),
        )
        for step in STEPS[way]
        for when in TIMES
    )
    yield from matrix_page.table("killed", VICTIMS, rows)
    yield ""


def end_text(one: SliceKillResult) -> str:
    """How a cell has ended."""
    again = f", {one.redelivered} again" if one.redelivered else ""
    cached = f", {one.cached:,} B" if one.cached else ""
    gaps = f", {one.gaps} gaps" if one.gaps else ""
    return f"{one.way}{cached}, at the {one.at}, {one.pause_seconds:.2f} s{again}{gaps}"
