"""Laws over publications, sessions and counters: each accepts a clean run and names a planted fault."""

from __future__ import annotations

import pytest

from plimsoll.core.verify import audit_journal
from plimsoll.core.verify import observations as seen


def published(seq: int, answer: str | None = "accepted", at: float = 1.0) -> list[seen.Observation]:
    said = [seen.AnswerObserved("p", 1, seq, answer, at + 0.5)] if answer else []  # type: ignore[arg-type]  # answers are words
    return [seen.PublicationObserved("p", 1, seq, {"a": seq}, at), *said]


def logged(seq: int, offset: int, head: str = "h") -> seen.LogEntryObserved:
    return seen.LogEntryObserved(head, 1, offset, ("p", 1, seq), (head, 1, offset), 1.2)


def test_each_answer_is_counted():
    answers = ("accepted", "unconfirmed", "refused", "unknown")
    verdict = audit_journal([each for seq, answer in enumerate(answers, 1) for each in published(seq, answer)])
    assert verdict.ok
    assert (verdict.published, verdict.accepted, verdict.refused, verdict.unknown) == (4, 2, 1, 1)


def test_an_unanswered_publication_is_named():
    verdict = audit_journal(published(1, None))
    assert verdict.violated == {"I8": 1}
    assert "never answered" in str(verdict)


@pytest.mark.parametrize("excuse", [seen.IncarnationEndObserved("p", 1, 2.0), None])
def test_no_answer_is_owed_to_the_dead_nor_before_the_run_has_settled(excuse):
    journal = [*published(1, None), *([excuse] if excuse else [])]
    assert audit_journal(journal, settled_until=100.0 if excuse else 0.5).ok


@pytest.mark.parametrize(
    ("fault", "law", "words"),
    [
        ([seen.AnswerObserved("p", 1, 1, "refused", 2.0)], "I8", "answered 2 times"),
        ([logged(1, 5), logged(1, 6)], "I2", "accepted more than once"),
        ([logged(1, 5), *published(2), logged(2, 5)], "I8", "given to"),
        ([*published(2, "refused"), logged(2, 6)], "I8", "refused and yet accepted"),
        ([logged(9, 9)], "I8", "was never published"),
        ([seen.SessionStartObserved("u", 5.0, 1.0)], "I5", "session u"),
        ([seen.SessionStartObserved("u", 5.0, 1.0), seen.SessionEndObserved("u", "Failed", 5.5)], "I5", "session u"),
        ([seen.ResidueObserved("e1", "records", 2, 9.0)], "I5", "2 records left over"),
        ([seen.SizeObserved("h", "queue_bytes", 11, 10, 3.0)], "I6", "bounded by 10"),
        ([seen.OwnerObserved("s", (1, 2), "e1", 1.0), seen.OwnerObserved("s", (1, 2), "e2", 1.0)], "I4", "e1 and e2"),
        ([seen.CounterObserved("p", 1, "accepted", 2, 9.0)], "I8", "says 2 accepted, 1 were seen"),
        ([seen.CounterObserved("s", 1, "delivered", 1, 9.0)], "I8", "says 1 delivered, 0 were seen"),
    ],
)
def test_a_planted_fault_is_named(fault, law, words):
    verdict = audit_journal([*published(1), *fault])
    assert verdict.violated == {law: 1}
    assert words in str(verdict)


def test_what_keeps_these_laws_passes():
    journal = [
        *published(1),
        logged(1, 5),
        logged(1, 5),
        seen.SessionStartObserved("u", 5.0, 1.0),
        seen.SessionEndObserved("u", "Succeeded", 4.0),
        seen.ResidueObserved("e1", "records", 0, 9.0),
        seen.SizeObserved("h", "queue_bytes", 10, 10, 3.0),
        seen.OwnerObserved("s", (1, 2), "e1", 1.0),
        seen.OwnerObserved("s", (1, 2), "e1", 1.5),
        seen.OwnerObserved("s", (1, 3), "e2", 2.0),
        seen.CounterObserved("p", 1, "published", 1, 9.0),
        seen.CounterObserved("p", 1, "accepted", 1, 9.0),
    ]
    assert audit_journal(journal).ok


def test_a_counter_that_is_not_audited_is_an_error():
    with pytest.raises(ValueError, match="not audited"):
        audit_journal([seen.CounterObserved("p", 1, "smiles", 1, 1.0)])


def test_all_violations_are_counted_and_some_are_told():
    verdict = audit_journal([seen.SizeObserved("h", "x", 2, 1, float(i)) for i in range(500)])
    assert verdict.violated == {"I6": 500}
    assert len(verdict.violations) == 200
