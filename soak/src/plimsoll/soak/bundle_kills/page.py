"""The page docs/kill-matrix-bundles.md, from the results of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.soak import matrix_page
from plimsoll.soak.bundle_kills.cells import (
    CHANGES,
    MEANINGS,
    BundleKillCell,
    BundleKillResult,
    Change,
    all_cells,
    victims_of,
)

PAGE_HEAD = """\
<!-- Written by `python -m plimsoll.soak.bundle_kills.runner --write FILE` from a run. Do not edit. -->
# Kill matrix of bundles

A process is killed (SIGKILL) before and behind each step in which a [bundle of topics](pulsar.md) is unloaded or
split, while publications flow, and every delivery is audited. [The other matrix](kill-matrix.md) does the same to one
hand-over.

The fleet is one of `plimsoll up` on one machine: a head, three edges, the mediator, and their supervisor, which
starts again what is killed; 12 topics with Zipf rates, at 120 publications a second, and 12 subscribers of two to
five of them each. There are two bundles to begin with; the one with most units is unloaded, or split. A step is held
by freezing the process that would end it, or by a plan that waits for its approval; then the process is killed, and
the others are woken. *owner* is the edge of the bundle, *target* the one that the session names for it; by lookup the
lookup may draw another.

Each cell has the end of the session, the units that it has moved, the edge that has the bundle (or its first half) at
the end, and the time from the signal until ranges and owners were right for two seconds. A cell has passed if

- no delivery was lost, repeated or out of order; only if the head is killed there may be gaps, with every loss in one;
- the session has ended, and what it says is so: a split has divided the bundle if it has succeeded, and only then;
- head and store have the same ranges, and each unit is served at the edge that owns its bundle, as load reports say.
"""

TITLES: Final[dict[Change, str]] = {
    "transfer": "Unload by Transfer",
    "lookup": "Unload by Lookup",
    "split": "Split",
}


def bundle_kill_page(found: Mapping[BundleKillCell, BundleKillResult]) -> str:
    """The page as Markdown."""
    return "\n".join([PAGE_HEAD, *_sums(found), *(line for change in CHANGES for line in _of_change(found, change))])


def _sums(found: Mapping[BundleKillCell, BundleKillResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    cells = sum(cell.victim is not None for cell in all_cells())
    yield (
        f"{matrix_page.passed_of(hit, cells)}; "
        f"{sum(one.delivered for one in hit):,} deliveries, {sum(one.lost for one in hit)} lost, "
        f"{sum(one.duplicated for one in hit)} repeated, {sum(one.reordered for one in hit)} out of order; "
        f"{sum(one.excused for one in hit):,} lost within reported gaps.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield f"{TITLES[cell.change]}, without a signal: {matrix_page.cell_text(one, end_text)}.\n"


def _of_change(found: Mapping[BundleKillCell, BundleKillResult], change: Change) -> Iterator[str]:
    yield f"## {TITLES[change]}\n"
    yield from matrix_page.meanings(MEANINGS[change].items())
    yield ""
    victims = victims_of(change)
    rows = (
        (step, (matrix_page.cell_text(found.get(BundleKillCell(change, step, each)), end_text) for each in victims))
        for step in MEANINGS[change]
    )
    yield from matrix_page.table("step", victims, rows)
    yield ""


def end_text(one: BundleKillResult) -> str:
    """How a cell has ended."""
    end = one.phase if one.reason in ("", one.phase) else f"{one.phase} ({one.reason})"
    what = f"{one.bundles} bundles" if one.cell.change == "split" else f"{one.moved} moved"
    gaps = f", {one.gaps} gaps" if one.gaps else ""
    return f"{end}, {what}, at the {one.at}, {one.settled_seconds:.1f} s{gaps}".replace("the another", "another")
