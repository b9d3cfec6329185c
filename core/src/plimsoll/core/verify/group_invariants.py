"""The laws of consumer groups over a journal: what was due to a group, and what its consumers were given.

Items of a slice are processed once (I1, I2), in order (I3) and by one consumer at a time (I4), and are of that slice
(I8): `slice_laws` judges that, here and wherever else applications of a group write down what they were given. A
journal adds what was due: publications that were accepted once each slice of the group had been served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.histories import FOREVER, PublicationHistory
from plimsoll.core.verify.invariants import AuditFindings
from plimsoll.core.verify.slice_laws import GivenItem, judge_slices

LAWS: Final = {"lost": "I1", "repeated": "I2", "reordered": "I3", "overlapping": "I4"}
IsExcused = Callable[[str, PublicationHistory], bool | None]
"""Whether a gap of this slice, by the name of its subscriber, covers a publication; None if the journal is unclear."""


class GroupAudit:
    """All groups of a journal. `take` observations in any order; `check` once at the end."""

    def __init__(self, found: AuditFindings) -> None:
        self._found = found
        self._groups: dict[str, seen.GroupObserved] = {}
        self._items: dict[str, list[seen.SliceItemObserved]] = {}
        self._served_since: dict[str, float] = {}

    def take(self, one: seen.GroupObserved | seen.SliceItemObserved) -> None:
        if isinstance(one, seen.GroupObserved):
            self._groups[one.group] = one
        else:
            self._items.setdefault(one.group, []).append(one)

    def on_owner(self, one: seen.OwnerObserved) -> None:
        """A slice counts from when an edge serves it first, under either of its names."""
        if "@@" in one.subscriber:
            self._served_since.setdefault(one.subscriber.removesuffix("+"), one.at)

    def check(self, publications: Sequence[PublicationHistory], is_excused: IsExcused) -> None:
        for name in sorted(self._groups):
            self._check_items(name, {one.identity: one for one in publications})
            self._judge(name, publications, is_excused)

    def _judge(self, name: str, publications: Sequence[PublicationHistory], is_excused: IsExcused) -> None:
        group, items = self._groups[name], self._items.get(name, [])
        slices = [f"{name}@@{number}" for number in range(group.count)]
        begins = max(self._served_since.get(each, FOREVER) for each in slices)
        processed = {one.publication for one in items if one.until is not None}
        due: dict[str, list[int]] = {}
        for one in publications:
            number = slice_of(group, one)
            if number is None or not one.is_accepted or not begins <= one.counts_from < FOREVER:
                continue
            excuse = False if one.identity in processed else is_excused(slices[number], one)
            self._found.counts["excused"] += excuse is True
            self._found.counts["uncertain"] += excuse is None
            if excuse is False:
                due.setdefault(_publisher(one.identity), []).append(one.identity[2])
        verdict = judge_slices([_given(one) for one in items], due)
        self._found.counts["processed_once"] += verdict.processed_once
        self._found.counts["redelivered"] += verdict.redelivered
        for kind, text in verdict.faults:
            self._found.add(LAWS[kind], f"group {name}", f"{kind}: {text}", group.at)

    def _check_items(self, name: str, known: dict[seen.PublicationIdentity, PublicationHistory]) -> None:
        """I8: an item was published, not refused, and is in the slice that it came with."""
        group = self._groups[name]
        for item in self._items.get(name, []):
            one = known.get(item.publication)
            if one is None or one.attributes is None or one.answer == "refused":
                self._found.add("I8", f"group {name}", f"{item} was not published, or was refused", item.at)
            elif slice_of(group, one) != item.slice:
                text = f"{one} came with slice {item.slice}, and is in {slice_of(group, one)}"
                self._found.add("I8", f"group {name}", text, item.at)


def slice_of(group: seen.GroupObserved, one: PublicationHistory) -> int | None:
    """The slice of a publication by the definition of the group: a whole number modulo the slices, or none."""
    value = (one.attributes or {}).get(group.by)
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        return None
    return int(value) % group.count


def _publisher(identity: seen.PublicationIdentity) -> str:
    return f"{identity[0]}/{identity[1]}"


def _given(one: seen.SliceItemObserved) -> GivenItem:
    return GivenItem(
        one.slice, _publisher(one.publication), one.publication[2], one.consumer, one.at, one.until, one.is_redelivered
    )
