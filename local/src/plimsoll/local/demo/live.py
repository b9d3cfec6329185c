"""What a person sees while the demo runs: a table that is drawn again in a terminal, and plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Write = Callable[[str], None]
PLAIN_SECONDS: Final = 10.0
_COLUMNS: Final = (
    ("broker", 12), ("subscribers", 11), ("in/s", 6), ("out/s", 7), ("input", 6), ("output", 6), ("matching", 9),
    ("queue", 6), ("state", 11),
)  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """The run so far. `delay_seconds`: the 99th percentile of the last second, None if nothing came."""

    seconds_left: float
    published: int = 0
    delivered: int = 0
    subscribers: int = 0
    wanted_subscribers: int = 0
    gaps: int = 0
    delay_seconds: float | None = None
    phase: str = "running"

    def line(self) -> str:
        delay = "" if self.delay_seconds is None else f"   delay p99 {self.delay_seconds * 1000:.0f} ms"
        left = f"{self.seconds_left:3.0f} s left" if self.seconds_left > 0 else self.phase
        return (
            f"{left}   published {self.published:,}   delivered {self.delivered:,}   gaps {self.gaps:,}   "
            f"subscribers {self.subscribers:,} of {self.wanted_subscribers:,}{delay}"
        )


def table(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per broker below a line of headings. Utilisations are in per cent, the matching delay in ms."""
    lines = [
        "  ".join(title.ljust(width) if i == 0 else title.rjust(width) for i, (title, width) in enumerate(_COLUMNS))
    ]
    for report in reports:
        cells = _cells(report)
        lines.append(
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w) for i, (c, (_, w)) in enumerate(zip(cells, _COLUMNS, strict=True))
            )
        )
    return lines


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


class Live:
    """Shows the state of the run. On a terminal it redraws; else it writes every `PLAIN_SECONDS`."""

    def __init__(self, write: Write, terminal: bool) -> None:
        self._write, self._terminal = write, terminal
        self._drawn = 0
        self._next = 0.0

    def say(self, text: str) -> None:
        """One line of its own; the table, if there is one, is drawn below it."""
        self._erase()
        self._write(text + "\n")

    def show(self, reports: Sequence[Mapping[str, Any]], totals: Totals, now: float) -> None:
        """The state at `now` seconds; may be called often."""
        if not self._terminal and now < self._next:
            return
        self._next = now + PLAIN_SECONDS
        lines = ["", *table(reports), "", totals.line()] if self._terminal else ["", totals.line(), *table(reports)]
        self._erase()
        self._write("".join(line + "\n" for line in lines))
        self._drawn = len(lines) if self._terminal else 0

    def keep(self) -> None:
        """What was drawn last stays."""
        self._drawn = 0

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0
