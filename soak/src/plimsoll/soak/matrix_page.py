"""What the pages of all kill matrices have: how many cells have passed, tables, and the text of a cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar


class JudgedCell(Protocol):
    """`broken`: why the cell failed; empty if it has passed."""

    broken: list[str]


R = TypeVar("R", bound=JudgedCell)


def passed_of(hit: Collection[JudgedCell], cells: int) -> str:
    """How many of all cells were run and have passed."""
    failed = sum(bool(one.broken) for one in hit)
    return f"{len(hit)} of {cells} cells were run, {len(hit) - failed} passed, {failed} failed"


def meanings(steps: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What each step is, as a list."""
    for step, meaning in steps:
        yield f"- *{step}*: {meaning}."


def table(first: str, columns: Sequence[str], rows: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """A table; `first`: the heading of the first column, in which each row has its name."""
    yield "| " + " | ".join([first, *columns]) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, cells in rows:
        yield f"| {name} | " + " | ".join(cells) + " |"


def cell_text(one: R | None, text: Callable[[R], str]) -> str:
    """A result as a page has it, with why it failed, if it did."""
    if one is None:
        return "not run"
    failed = f"**failed: {'; '.join(one.broken)}** " if one.broken else ""
    return failed + text(one)
