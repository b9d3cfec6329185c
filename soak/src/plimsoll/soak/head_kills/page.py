"""The page docs/kill-matrix-heads.md, from the results of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.core.verify.head_kill_cells import (
    KEEPS,
    MEANINGS,
    MODES,
    STEPS,
    TIMES,
    VICTIMS,
    HeadKillCell,
    HeadKillResult,
    Mode,
    all_cells,
)
from plimsoll.soak import matrix_page

PAGE_HEAD: Final = """\
<!-- Written by `python -m plimsoll.soak.head_kills.runner --write FILE` from a run. Do not edit. -->
# Kill matrix of heads that forget nothing

A head is killed before and behind each message of a hand-over, while publications flow, and its log outlasts it: on its
[disk](durability.md), at its [standby](durability.md#a-standby), or both. Every delivery is audited. [Another
matrix](kill-matrix-durable.md) does this with real processes at steps that are held.

A cell is a run of the simulator, with the machines of the product in virtual time: a head and three edges (across
clusters: two heads with two edges each), a mediator, four processes with a publisher and three or four subscribers
each, about 67 publications a second, and 4,000 a second while the hand-over is under way, so that something is on its
way at every moment. Four subscribers of the source, of different processes if it has them, are handed over. *Before*:
the message has been sent and has not arrived; what the killed head had on its way is lost. *Behind*: it has been dealt
with. The machine of a head with a *disk* stops, which loses or tears what was not synced; it is back after a second. A
*standby* is promoted 0.2 s after the kill. With *node lost* no connection of the head is closed: its peers hear nothing
more, and its standby is promoted 3.2 s later. Before *draining* the processes of half of the members are frozen; they
wake with the kill.

Each cell has the outcomes of the members, or, if the session was lost with its head, where they were served in the end,
and the longest time from the kill on in which no publisher at that head had an answer. A cell has passed if the step
was reached; no publication was lost, repeated, out of order or `unknown` to its publisher; no subscriber had a gap; the
hand-over ended; and nothing was left over in brokers.
"""
TITLES: Final[dict[Mode, str]] = {"drain": "By drain", "replay": "By replay", "across": "By drain, across clusters"}


def head_kill_page(found: Mapping[HeadKillCell, HeadKillResult]) -> str:
    """The page as Markdown."""
    return "\n".join([PAGE_HEAD, *_sums(found), *(line for mode in MODES for line in _of_mode(found, mode))])


def _sums(found: Mapping[HeadKillCell, HeadKillResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    cells = sum(cell.victim is not None for cell in all_cells())
    yield (
        f"{matrix_page.passed_of(hit, cells)}; "
        f"{sum(one.delivered for one in hit):,} deliveries; {sum(one.lost for one in hit)} lost, "
        f"{sum(one.repeated for one in hit)} repeated, {sum(one.reordered for one in hit)} out of order, "
        f"{sum(one.gaps for one in hit)} gaps, {sum(one.unknown for one in hit)} unknown.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield f"{TITLES[cell.mode]}, without a kill: {matrix_page.cell_text(one, end_text)}.\n"


def _of_mode(found: Mapping[HeadKillCell, HeadKillResult], mode: Mode) -> Iterator[str]:
    columns = [(victim, keeps) for victim in VICTIMS[mode] for keeps in KEEPS]
    yield f"## {TITLES[mode]}\n"
    yield from matrix_page.meanings((step, MEANINGS[step]) for step in STEPS[mode])
    yield ""
    rows = (
        (
            f"{when} *{step}*",
            (matrix_page.cell_text(found.get(HeadKillCell(mode, step, when, *each)), end_text) for each in columns),
        )
        for step in STEPS[mode]
        for when in TIMES
    )
    yield from matrix_page.table("killed", [f"{victim}: {keeps}" for victim, keeps in columns], rows)
    yield ""


def end_text(one: HeadKillResult) -> str:
    """How a cell has ended."""
    outcomes = ", ".join(f"{count} {what}" for what, count in one.outcomes.items())
    homes = ", ".join(f"{count} at the {where}" for where, count in one.homes.items())
    gaps = f", {one.gaps} gaps" if one.gaps else ""
    return f"{outcomes or homes}, {one.pause_seconds:.2f} s{gaps}"
