from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.client import errors
from plimsoll.client.receipts import FAILURES_KEPT, Receipt, ReceiptBook, describe_failures
from plimsoll.core.client import Answered


class NoConnection:
    lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:  # noqa: ASYNC109  # as a connection has it
        raise errors.WaitTimeoutError(f"not {expected}")


def receipts(count: int) -> tuple[ReceiptBook[Receipt], list[Receipt]]:
    kept: ReceiptBook[Receipt] = ReceiptBook()
    return kept, [kept.add(n, Receipt(n, NoConnection())) for n in range(1, count + 1)]


def test_an_answer_reaches_the_receipts_of_its_range():
    kept, each = receipts(5)
    kept.answer(Answered(2, 3, "accepted", 1, 2))
    assert [receipt.answer is not None for receipt in each] == [False, True, True, False, False]
    assert "unanswered" in repr(each[0])
    assert repr(each[1]) == "Receipt(2, accepted)"


def test_answered_through_means_all_of_them():
    kept, _ = receipts(3)
    assert kept.answered_through(0)
    kept.answer(Answered(2, 3, "accepted", 1, 2))
    assert not kept.answered_through(3)
    kept.answer(Answered(1, 1, "refused", 1, 1, text="no"))
    assert kept.answered_through(3)


def test_a_summary_counts_since_the_last_one():
    kept, _ = receipts(4)
    kept.answer(Answered(1, 2, "accepted", 1, 1))
    kept.answer(Answered(3, 3, "unknown", 1, 3, text="gone"))
    kept.answer(Answered(4, 4, "unconfirmed", 1, 4))
    summary = kept.summary()
    assert (summary.accepted, summary.unknown, summary.unconfirmed, summary.refused) == (2, 1, 1, 0)
    assert describe_failures(summary.not_accepted) == "1 publications were not accepted; number 3 is unknown: gone"
    assert kept.summary().accepted == 0


def test_bad_answers_are_bounded():
    kept, _ = receipts(0)
    for n in range(1, FAILURES_KEPT + 100):
        kept.answer(Answered(n, n, "refused", 1, n))
    summary = kept.summary()
    assert (summary.refused, len(summary.not_accepted)) == (FAILURES_KEPT + 99, FAILURES_KEPT)


def test_a_receipt_waits_on_its_connection_until_it_has_its_answer():
    kept, (receipt,) = receipts(1)
    with pytest.raises(errors.WaitTimeoutError, match="not answered: publication 1"):
        receipt.wait(0)
    with pytest.raises(RuntimeError, match="without an answer"):
        receipt.require_accepted()
    kept.answer(Answered(1, 1, "accepted", 1, 1))
    assert receipt.wait(0).answer == "accepted"
