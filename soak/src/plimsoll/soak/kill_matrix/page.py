"""The kill matrix as a page of documentation, from the results of its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.soak.kill_matrix.cells import (
    MEANINGS,
    MODES,
    SIGNALS,
    KillMatrixCell,
    KillMatrixResult,
    Mode,
    Signal,
    Step,
    signal_name,
    victims_of,
)

PAGE_HEAD = """\
<!-- Written by `python -m plimsoll.soak.kill_matrix.runner --write docs/kill-matrix.md` from a run; not by hand. -->
# Kill matrix of a hand-over

Real processes on one machine: a head and three edges (across clusters: two heads with two edges each), a mediator, a
publishing process, and two processes with 12 subscribers each, all of which are served by the source and want
everything; about 30 publications a second. 16 of them, of both processes, are handed over to the target. A step is held
by freezing the process whose answer it waits for; then the signal is sent, and the others go on. What is killed comes
back a second later. What is frozen wakes after 3 s, when nobody has given it up, or after 13 s, when everybody has:
edges and heads wait 10 s for a sign of life, clients 5 s. Leases last 16 s. *subscribers* is the first of the two
processes: killed, it goes on behind the last delivery that stands in its file.

Each cell says what the members came to by the head's final outcome, and the longest time in which a member had nothing
delivered. A cell is kept if the audit of every delivery found none lost, repeated or out of order, the hand-over ended
by its deadline with outcomes that are what applications saw, and nothing was left over in brokers: slots, records that
are not live, open sessions, guests, owner entries of somebody who is elsewhere. Nobody may be told of a gap, but where
a head is killed: there every loss has to lie inside a gap that was told. The sessions of the source's head are lost
with it, so the cell says where the members were served in the end. Whoever is frozen for 13 s while nothing else can
serve it has nothing for as long; `detached` is who was not through within the 12 s for draining.
"""


TITLES: Final[dict[Mode, str]] = {
    "drain": "By drain",
    "across": "By drain, across clusters",
    "replay": "By replay",
}


def kill_matrix_page(found: Mapping[KillMatrixCell, KillMatrixResult]) -> str:
    """The whole page."""
    return "\n".join([PAGE_HEAD, *_sums(found), *(line for mode in MODES for line in _of_mode(found, mode))]) + "\n"


def _sums(found: Mapping[KillMatrixCell, KillMatrixResult]) -> Iterator[str]:
    hit = [one for cell, one in found.items() if cell.victim is not None]
    kept = sum(one.is_passed for one in hit)
    delivered = sum(one.delivered for one in hit)
    yield (
        f"{len(hit)} cells, {kept} kept, {len(hit) - kept} broken; {delivered:,} deliveries, "
        f"{sum(one.lost for one in hit)} lost, {sum(one.duplicated for one in hit)} repeated, "
        f"{sum(one.reordered for one in hit)} out of order, {sum(one.orphaned for one in hit)} left over; "
        f"{sum(one.excused for one in hit):,} lost inside gaps that were told.\n"
    )
    for cell, one in found.items():
        if cell.victim is None:
            yield (
                f"{TITLES[cell.mode]}, with nobody hit: {members_text(one)}; the hand-over took "
                f"{one.session_seconds:.2f} s, and the longest silence was {one.silence_seconds:.2f} s.\n"
            )


def _of_mode(found: Mapping[KillMatrixCell, KillMatrixResult], mode: Mode) -> Iterator[str]:
    yield f"## {TITLES[mode]}\n"
    for step, meaning in MEANINGS[mode].items():
        yield f"- *{step}*: {meaning}."
    for signal in SIGNALS:
        yield f"\n### {signal_name(signal)}\n"
        columns = victims_of(mode)
        yield "| step | " + " | ".join(columns) + " |"
        yield "|---" * (len(columns) + 1) + "|"
        for step in MEANINGS[mode]:
            yield f"| {step} | " + " | ".join(_cells(found, mode, step, signal)) + " |"
    yield ""


def _cells(found: Mapping[KillMatrixCell, KillMatrixResult], mode: Mode, step: Step, signal: Signal) -> Iterator[str]:
    for victim in victims_of(mode):
        one = found.get(KillMatrixCell(mode, step, victim, signal))
        if one is None:
            yield "not run"
        else:
            broken = f"**broken: {'; '.join(one.broken)}** " if one.broken else ""
            told = f", {one.gaps} gaps" if one.gaps else ""
            yield f"{broken}{members_text(one)}, {one.silence_seconds:.1f} s{told}"


def members_text(one: KillMatrixResult) -> str:
    """The outcomes of the members; of a lost session, where they were served in the end."""
    if one.state == "failed":
        return "session lost: " + _counted({f"at the {edge}": count for edge, count in one.homes.items()})
    return _counted(one.outcomes) or one.state


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
