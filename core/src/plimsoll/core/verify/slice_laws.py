"""The laws of consumer groups, judged by what applications were given: once, in order per slice, by one at a time.

An application writes down each item that it was given, and when it had finished it. Nothing here knows who should have
been given what: only what was published decides what is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GivenItem:
    """`at`, `until`: seconds; `until` is None for what was never finished. `item`: the publisher's number of it."""

    slice: int
    publisher: str
    item: int
    consumer: str
    at: float
    until: float | None
    is_redelivered: bool = False


@dataclass(frozen=True, slots=True)
class SliceVerdict:
    """Counts, and the first faults: the kind of each, and where it was seen."""

    processed_once: int = 0
    lost: int = 0
    repeated: int = 0
    redelivered: int = 0
    reordered: int = 0
    overlapping: int = 0
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no law is broken; what is marked as delivered again breaks none."""
        return not (self.lost or self.repeated or self.reordered or self.overlapping)


@dataclass
class _Count:
    faults: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def fault(self, kind: str, text: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.faults) < 20:
            self.faults.append((kind, text))


def judge_slices(given: Iterable[GivenItem], published: Mapping[str, Iterable[int]]) -> SliceVerdict:
    """Judge all items of a group. `published`: the numbers of each publisher that were accepted and have a slice."""
    found, items = _Count(), sorted(given, key=lambda each: (each.at, each.until is None, each.until or 0.0))
    finished: dict[tuple[str, int], int] = {}
    seen: set[tuple[str, int]] = set()
    highest: dict[tuple[int, str], int] = {}
    busy: dict[int, GivenItem] = {}
    redelivered = 0
    for each in items:
        key = each.publisher, each.item
        redelivered += each.is_redelivered
        if key in seen and not each.is_redelivered:
            found.fault("repeated", f"{each}")
        last = highest.get((each.slice, each.publisher), 0)
        if each.item < last and not each.is_redelivered:
            found.fault("reordered", f"{each} behind {last}")
        highest[each.slice, each.publisher] = max(last, each.item)
        before = busy.get(each.slice)
        if (
            before is not None
            and before.consumer != each.consumer
            and before.until is not None
            and before.until > each.at
        ):
            found.fault("overlapping", f"{each} while {before.consumer} had {before.item} of {before.publisher}")
        busy[each.slice] = each
        seen.add(key)
        if each.until is not None:
            finished[key] = finished.get(key, 0) + 1
    lost = [(name, item) for name, numbers in published.items() for item in numbers if (name, item) not in finished]
    for name, item in lost[:20]:
        found.fault("lost", f"{item} of {name}")
    once = sum(times == 1 for times in finished.values())
    counts = found.counts
    return SliceVerdict(
        once, len(lost), counts.get("repeated", 0), redelivered, counts.get("reordered", 0),
        counts.get("overlapping", 0), tuple(found.faults),
    )  # fmt: skip
