"""The page docs/kill-matrix.md, from the results of the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.soak import matrix_page
from plimsoll.soak.kill_matrix.cells import (
    MEANINGS,
    MODES,
    SIGNALS,
    KillMatrixCell,
    KillMatrixResult,
    Mode,
    Signal,
    Victim,
    signal_name,
    victims_of,
)

PAGE_HEAD = """\
<!-- Written by `python -m plimsoll.soak.kill_matrix.runner --write FILE` from a run. Do not edit. -->
# Kill matrix of a hand-over

Each process of a hand-over is killed or frozen at each of its steps, while publications flow, and every delivery is
audited.

The processes run on one machine: a head and three edges (across clusters: two heads with two edges each), a mediator, a
publisher, and two client processes with 12 subscribers each, which are all served by the source and subscribe to
everything, at about 30 publications a second. 16 of the subscribers, of both client processes, are handed over to the
target. A step is held by freezing the process whose answer it waits for; then the signal is sent, and the frozen
process is woken. A killed process is restarted after a second. A frozen one wakes after 3 s, before any other process
has given it up, or after 13 s, when all others have: edges and heads give up a silent peer after 10 s, clients after
5 s. Leases last 16 s. *subscribers* is the first of the two client processes; after a kill it resumes behind the last
delivery in its journal.

Each cell has the members' results in the head's final outcome, and the longest time in which a member received no
delivery. A cell has passed if the audit found no delivery lost, repeated or out of order, the hand-over ended by its
deadline with outcomes that agree with what the applications saw, and nothing was left over in brokers: no slots,
attachments that are not live, open sessions, remote members, or owner entries of subscribers that are served elsewhere.
Gaps are allowed only if a head is killed, and then every loss must lie within a reported gap. A killed head loses its
sessions, so the cell of the source's head shows where the members were served at the end. A process that is frozen for
13 s and that no other can replace causes a silence as long. `detached` are members that did not complete the hand-over
within the 12 s for draining.
"""


TITLES: Final[dict[Mode, str]] = {
    "drain": "By drain",
    "across": "By drain, across clusters",
    "replay": "By replay",
}


def kill_matrix_page(found: Mapping[KillMatrixCell, KillMatrixResult]) -> str:
    """The page as Markdown."""
    return "\n".join([PAGE_HEAD, *_sums(found), *(line for mode in MODES for line in _of_mode(found, mode))]) + "\n"


def _sums(found: Mapping[KillMatrixCell, KillMatrixResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    passed = sum(one.is_passed for one in hit)
    delivered = sum(one.delivered for one in hit)
    yield (
        f"{len(hit)} cells, {passed} passed, {len(hit) - passed} failed; {delivered:,} deliveries, "
        f"{sum(one.lost for one in hit)} lost, {sum(one.duplicated for one in hit)} repeated, "
        f"{sum(one.reordered for one in hit)} out of order, {sum(one.orphaned for one in hit)} left over; "
        f"{sum(one.excused for one in hit):,} lost within reported gaps.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield (
                f"{TITLES[cell.mode]}, without a signal: {members_text(one)}; the hand-over took "
                f"{one.session_seconds:.2f} s, and the longest silence was {one.silence_seconds:.2f} s.\n"
            )


def _of_mode(found: Mapping[KillMatrixCell, KillMatrixResult], mode: Mode) -> Iterator[str]:
    yield f"## {TITLES[mode]}\n"
    yield from matrix_page.meanings(MEANINGS[mode].items())
    for signal in SIGNALS:
        yield f"\n### {signal_name(signal)}\n"
        columns = _columns(found, mode, signal)
        if not columns:
            yield "Not run."
            continue
        rows = (
            (
                step,
                (
                    matrix_page.cell_text(found.get(KillMatrixCell(mode, step, victim, signal)), _end_text)
                    for victim in columns
                ),
            )
            for step in MEANINGS[mode]
        )
        yield from matrix_page.table("step", columns, rows)
    yield ""


def _columns(found: Mapping[KillMatrixCell, KillMatrixResult], mode: Mode, signal: Signal) -> list[Victim]:
    """The victims of which a cell was run."""
    hit = {cell.victim for cell in found if (cell.mode, cell.signal) == (mode, signal)}
    return [victim for victim in victims_of(mode, signal) if victim in hit]


def _end_text(one: KillMatrixResult) -> str:
    gaps = f", {one.gaps} gaps" if one.gaps else ""
    return f"{members_text(one)}, {one.silence_seconds:.1f} s{gaps}"


def members_text(one: KillMatrixResult) -> str:
    """The outcomes of the members; if the session was lost, where the members were served at the end."""
    if one.state == "failed":
        return "session lost: " + _counted({f"at the {edge}": count for edge, count in one.homes.items()})
    return _counted(one.outcomes) or one.state


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
