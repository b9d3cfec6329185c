"""Groups in a journal: what was due to them is judged, and each law that is broken is named."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.verify import AuditVerdict, audit_journal
from plimsoll.core.verify import observations as seen

BEGINS = 1.0


def journal(*items: seen.SliceItemObserved, more: tuple[seen.Observation, ...] = ()) -> list[seen.Observation]:
    """A group of two slices by `v`, and publications 1 to 4 of p, of which 3 is in no slice."""
    values: list[Any] = [1, 2, 2.5, 3]
    found: list[seen.Observation] = [seen.GroupObserved("g", 2, "v", 0.0)]
    found += [seen.OwnerObserved(f"g@@{number}", (1, 1), "e", BEGINS) for number in range(2)]
    for seq, value in enumerate(values, 1):
        found += [
            seen.PublicationObserved("p", 1, seq, {"v": value}, 2.0),
            seen.LogEntryObserved("h", 1, seq, ("p", 1, seq), ("h", 1, seq), 2.0),
            seen.AnswerObserved("p", 1, seq, "accepted", 2.1),
        ]
    return [*found, *items, *more]


def item(seq: int, number: int, at: float, consumer: str = "a", **fields: Any) -> seen.SliceItemObserved:
    values: dict[str, Any] = {"is_redelivered": False, "until": at + 0.1, **fields}
    return seen.SliceItemObserved("g", number, consumer, ("p", 1, seq), at=at, **values)


ALL = (item(1, 1, 3.0), item(2, 0, 3.0, "b"), item(4, 1, 3.2))


def judged(*items: seen.SliceItemObserved, more: tuple[seen.Observation, ...] = ()) -> AuditVerdict:
    return audit_journal(journal(*items, more=more))


def test_each_item_once_keeps_the_laws():
    verdict = judged(*ALL)
    assert verdict.ok, verdict
    assert verdict.processed_once == 3


@pytest.mark.parametrize(
    ("law", "items"),
    [
        ("I1", ALL[:2]),
        ("I1", (*ALL[:2], item(4, 1, 3.2, until=None))),
        ("I2", (*ALL, item(2, 0, 4.0, "b"))),
        ("I3", (item(4, 1, 3.0), item(2, 0, 3.0, "b"), item(1, 1, 3.2))),
        ("I4", (item(1, 1, 3.0, until=9.0), ALL[1], item(4, 1, 4.0, "b"))),
        ("I8", (*ALL[:2], item(4, 0, 3.2))),
        ("I8", (*ALL, item(3, 0, 3.3))),
        ("I8", (*ALL, item(9, 0, 3.3))),
    ],
)
def test_each_law_that_is_broken_is_named(law: str, items: tuple[seen.SliceItemObserved, ...]):
    assert law in judged(*items).violated


def test_what_comes_again_marked_breaks_no_law():
    verdict = judged(ALL[0], ALL[1], item(4, 1, 3.2, until=None), item(4, 1, 8.0, "b", is_redelivered=True))
    assert verdict.ok, verdict
    assert verdict.redelivered == 1


def test_nothing_is_due_before_each_slice_was_served():
    served = [one for one in journal() if not (isinstance(one, seen.OwnerObserved) and one.subscriber == "g@@1")]
    assert audit_journal(served).ok


def test_a_gap_of_a_slice_excuses_items_of_that_slice_alone():
    gap = seen.GapObserved("g@@1", 0, "h", 1, 4, 2, 0, [], "restart", 5.0)
    other = seen.GapObserved("g@@0", 0, "h", 1, 4, 2, 0, [], "restart", 5.0)
    assert judged(*ALL[:2], more=(gap,)).ok
    assert "I1" in judged(*ALL[:2], more=(other,)).violated


def test_a_claim_to_be_free_of_gaps_holds_for_slices():
    gap = seen.GapObserved("g@@1", 0, "h", 1, 4, 2, 0, [], "restart", 5.0)
    assert "I1" in judged(*ALL, more=(gap, seen.GapFreeClaim(0.0, []))).violated
