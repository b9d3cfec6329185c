"""Shrink a failed run to one that breaks the same law with less in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from plimsoll.simulator.run import RunOutcome, SimulationRun, run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

TRIES_AT_MOST = 300


class Shrinker:
    """Leaves labels out of a run, in ever smaller groups, as long as it breaks one of the same laws.

    `planned`: how many labels the failed run had. `smallest`: the smallest run that failed.
    """

    def __init__(self, failed: RunOutcome, tries: int = TRIES_AT_MOST) -> None:
        self.failed, self.tries = failed, tries
        self.smallest = failed
        self.planned = 0

    def shrink(self) -> list[str]:
        """Return the labels that are needed to fail, as far as `tries` runs can find out."""
        kept = self._labels()
        self.planned = len(kept)
        for kind in sorted({kind_of(label) for label in kept}):
            kept = self._without(kept, [label for label in kept if kind_of(label) == kind])
        size = max(1, len(kept) // 2)
        while self.tries > 0:
            before = len(kept)
            for group in list(_chunks(kept, size)):
                kept = self._without(kept, group)
            if size == 1 and len(kept) == before:
                break
            size = max(1, size // 2)
        return kept

    def _labels(self) -> list[str]:
        """All labels that this seed plans."""
        one = SimulationRun(SCENARIOS[self.failed.scenario], self.failed.seed)
        one.draw_plan()
        return list(one.labels)

    def _without(self, kept: list[str], group: Collection[str]) -> list[str]:
        """Leave a group out, if the run still fails without it."""
        fewer = [label for label in kept if label not in group]
        if self.tries <= 0 or len(fewer) == len(kept):
            return kept
        self.tries -= 1
        outcome = run_seed(self.failed.scenario, self.failed.seed, only=frozenset(fewer))
        if not outcome.broken & self.failed.broken:
            return kept
        self.smallest = outcome
        return fewer


def kind_of(label: str) -> str:
    return label.rstrip("0123456789")


def _chunks(labels: list[str], size: int) -> Iterator[list[str]]:
    for i in range(0, len(labels), size):
        yield labels[i : i + size]


def format_labels(labels: Iterable[str]) -> str:
    """Labels as one word: `saying0-3,saying7,move1`; `nothing` if there are none."""
    runs: list[tuple[str, int, int]] = []
    for kind, number in sorted((kind_of(label), int(label[len(kind_of(label)) :])) for label in labels):
        if runs and runs[-1][0] == kind and runs[-1][2] == number - 1:
            runs[-1] = (kind, runs[-1][1], number)
        else:
            runs.append((kind, number, number))
    return ",".join(f"{kind}{low}" if low == high else f"{kind}{low}-{high}" for kind, low, high in runs) or "nothing"


def parse_labels(text: str) -> frozenset[str]:
    """Labels from one word.

    Raises:
        ValueError: naming the part that is no label.

    """
    found: set[str] = set()
    for part in text.split(",") if text != "nothing" else ():
        match = re.fullmatch(r"([a-z]+)(\d+)(?:-(\d+))?", part)
        if match is None:
            raise ValueError(f"{part!r} is not a label; write saying7, or saying0-12 for a range")
        kind, low, high = match[1], int(match[2]), int(match[3] or match[2])
        found.update(f"{kind}{number}" for number in range(low, high + 1))
    return frozenset(found)
