"""The display of a running demo: a table that is redrawn in a terminal, and plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.printable import printable, printable_lines

WriteText = Callable[[str], None]
_COLUMNS: Final = (
    ("broker", 11), ("subs", 6), ("in/s", 5), ("out/s", 6), ("input", 5), ("output", 6), ("matching", 8),
    ("queue", 5), ("state", 11),
)  # fmt: skip
"""Headings with their widths: 79 characters in all."""


@dataclass(frozen=True)
class RunTotals:
    """The run so far. `delay_seconds`: the 99th percentile of the last second, None if nothing was delivered."""

    seconds_left: float
    published: int = 0
    delivered: int = 0
    subscribers: int = 0
    wanted_subscribers: int = 0
    gaps: int = 0
    delay_seconds: float | None = None
    phase: str = "running"

    def lines(self) -> list[str]:
        """Two lines that fit into 80 characters."""
        left = f"{self.seconds_left:.0f} s left" if self.seconds_left > 0 else self.phase
        delay = "" if self.delay_seconds is None else f"   delay p99 {self.delay_seconds * 1000:.0f} ms"
        return [
            f"{left}   subscribers {self.subscribers:,} of {self.wanted_subscribers:,}{delay}",
            f"published {self.published:,}   delivered {self.delivered:,}   gaps {self.gaps:,}",
        ]


def broker_table(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per broker below a line of headings. Utilisations are in per cent, the matching delay in ms."""
    return [_row([title for title, _ in _COLUMNS]), *(_row(_cells(report)) for report in reports)]


def _row(cells: Sequence[str]) -> str:
    widths = [width for _, width in _COLUMNS]
    return "  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])])


def _cells(report: Mapping[str, Any]) -> list[str]:
    def number(key: str) -> float:
        return float(report.get(key, 0))

    return [
        str(report["broker"]),
        f"{number('subscribers'):,.0f}",
        f"{number('input_rate'):,.0f}",
        f"{number('output_rate'):,.0f}",
        f"{number('input_utilization'):.0%}",
        f"{number('output_utilization'):.0%}",
        f"{number('match_delay_seconds') * 1000:.2f} ms",
        f"{number('input_queue_messages') + number('output_queue_messages'):,.0f}",
        str(report.get("state", "N/A")),
    ]


class LiveDisplay:
    """Shows the state of the run: redrawn each time on a terminal, else every `interval_seconds`."""

    def __init__(self, write: WriteText, terminal: bool, interval_seconds: float) -> None:
        self._write, self._terminal, self._interval = write, terminal, interval_seconds
        self._drawn = 0
        self._next: float | None = None

    def say(self, text: str) -> None:
        """Print a line; the table, if there is one, is drawn below it."""
        self._erase()
        self._write(printable_lines(text) + "\n")

    def show(self, reports: Sequence[Mapping[str, Any]], totals: RunTotals, now: float) -> None:
        """Show the state at `now` seconds; may be called often."""
        if not self._terminal and not self._is_time(now):
            return
        lines = ["", *broker_table(reports), *totals.lines()]
        self._erase()
        if self._terminal:  # a wrapped line would count as two at the next redraw
            columns = shutil.get_terminal_size().columns
            lines = [line[: columns - 1] for line in lines]
        self._write("".join(printable(line) + "\n" for line in lines))
        self._drawn = len(lines) if self._terminal else 0

    def keep(self) -> None:
        """Leave the last drawing on the screen."""
        self._drawn = 0

    def _is_time(self, now: float) -> bool:
        due = self._next is not None and now >= self._next
        if due or self._next is None:
            self._next = now + self._interval
        return due

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def stdout_display(interval_seconds: float) -> LiveDisplay:
    """A display on standard output, redrawn if that is a terminal."""
    return LiveDisplay(_write, sys.stdout.isatty(), interval_seconds)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
