"""The page docs/kill-matrix-publishers.md, from the results of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.soak import matrix_page
from plimsoll.soak.publisher_kills.cells import (
    MEANINGS,
    VICTIMS,
    PublisherKillCell,
    PublisherKillResult,
    all_cells,
)

PAGE_HEAD: Final = """\
<!-- Written by `python -m plimsoll.soak.publisher_kills.runner --write FILE` from a run. Do not edit. -->
# Kill matrix of publishers

A process is killed (SIGKILL) before and behind each step in which [publishers move](handover.md#13-publishers) between
heads, while publications flow, and every delivery is audited. [The other matrix](kill-matrix.md) does the same to one
hand-over of subscribers; ten steps in virtual time are in `tests/core/client/test_publisher_move_matrix.py`.

The fleet is one of `plimsoll up` on one machine: three clusters whose heads are a chain, the mediator, and their
supervisor, which starts again what is killed. 12 publishers of 12 topics publish at the first head, 240 a second
together; 12 subscribers are spread over the three clusters. A session drains the first head towards the third. A step
is held by freezing the process that would end it, or by a plan that waits for its approval; then the process is
killed, and the others are woken. *old head* and *new head* are the ends of the chain, *edge* is one of the cluster
between. The process of the publishers is not killed, since no publisher would go on then: it is frozen for three
seconds.

Each cell has the end of the session, the publishers that it has moved, where they are at the end, and the time from
the signal until every publisher was at one head for two seconds. A cell has passed if

- no delivery was lost, repeated or out of order; only if a head is killed there may be gaps, with every loss in one;
- no answer is `unknown`, unless a head is killed;
- the session has ended, and what it says is so.
"""


def publisher_kill_page(found: Mapping[PublisherKillCell, PublisherKillResult]) -> str:
    """The page as Markdown."""
    return "\n".join([PAGE_HEAD, *_sums(found), *_table(found)])


def _sums(found: Mapping[PublisherKillCell, PublisherKillResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    cells = sum(cell.victim is not None for cell in all_cells())
    yield (
        f"{matrix_page.passed_of(hit, cells)}; "
        f"{sum(one.delivered for one in hit):,} deliveries, {sum(one.lost for one in hit)} lost, "
        f"{sum(one.duplicated for one in hit)} repeated, {sum(one.reordered for one in hit)} out of order; "
        f"{sum(one.excused for one in hit):,} lost within reported gaps, {sum(one.unknown for one in hit)} answers "
        "unknown.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield f"Without a signal: {matrix_page.cell_text(one, end_text)}.\n"


def _table(found: Mapping[PublisherKillCell, PublisherKillResult]) -> Iterator[str]:
    yield from matrix_page.meanings(MEANINGS.items())
    yield ""
    rows = (
        (step, (matrix_page.cell_text(found.get(PublisherKillCell(step, each)), end_text) for each in VICTIMS))
        for step in MEANINGS
    )
    yield from matrix_page.table("step", VICTIMS, rows)
    yield ""


def end_text(one: PublisherKillResult) -> str:
    """How a cell has ended."""
    end = one.phase if one.reason in ("", one.phase) else f"{one.phase} ({one.reason})"
    at = ", ".join(f"{count} at the {role}" for role, count in sorted(one.at.items()))
    extra = [f"{one.gaps} gaps"] if one.gaps else []
    extra += [f"{one.unknown} unknown"] if one.unknown else []
    return ", ".join([f"{end}, {one.moved} moved", at or "at no head", f"{one.settled_seconds:.1f} s", *extra])
