"""Answers to publications: a receipt for each, and a summary between two flushes."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from plimsoll.client.errors import NotAcceptedError
from plimsoll.client.waiting import run
from plimsoll.core.client import Answered

FAILURES_KEPT = 1000
"""Bad answers kept for a summary; all of them are counted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Publications by their answer. `not_accepted`: the answers `refused` and `unknown`, the first 1,000 of them."""

    accepted: int
    unconfirmed: int
    refused: int
    unknown: int
    not_accepted: tuple[Answered, ...]


class AnswerWaiter(Protocol):
    """A connection that receipts can wait on."""

    lock: AbstractContextManager[Any]

    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None: ...


class BaseReceipt:
    """The base of `Receipt` and `AsyncReceipt`."""

    __slots__ = ("_connection", "answer", "number")

    def __init__(self, number: int, connection: AnswerWaiter) -> None:
        self.number, self._connection = number, connection
        self.answer: Answered | None = None

    async def _wait_answered(self, timeout: float | None) -> None:
        with self._connection.lock:
            await self._connection.wait_for(
                lambda: self.answer is not None, timeout, f"answered: publication {self.number}"
            )

    def require_accepted(self) -> Answered:
        """The answer if the publication was accepted; raises if not."""
        answer = self.answer
        if answer is None:
            raise RuntimeError("a receipt without an answer was asked for it")
        if answer.answer in ("refused", "unknown"):
            raise NotAcceptedError(f"{answer.answer}: {answer.text or answer.code}", (answer,))
        return answer

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.number}, {self.answer.answer if self.answer else 'unanswered'})"


class Receipt(BaseReceipt):
    """The receipt of one publication: `number` from 1, and its answer once there is one."""

    __slots__ = ()

    def wait(self, timeout: float | None = 30.0) -> Answered:
        """Wait for the answer `accepted`, or `unconfirmed`, which is accepted too.

        Raises:
            NotAcceptedError: it was refused, or its outcome is unknown.
            WaitTimeoutError: there is no answer yet.

        """
        if self.answer is None:
            run(self._wait_answered(timeout))
        return self.require_accepted()


R = TypeVar("R", bound=BaseReceipt)


class ReceiptBook(Generic[R]):
    """The receipts of one publisher that have no answer yet, and the answers since the last summary."""

    def __init__(self) -> None:
        self._open: dict[int, R] = {}
        self._counts = {"accepted": 0, "unconfirmed": 0, "refused": 0, "unknown": 0}
        self._bad: list[Answered] = []

    def add(self, number: int, receipt: R) -> R:
        self._open[number] = receipt
        return receipt

    def answer(self, answer: Answered) -> None:
        """Give receipts their answer."""
        for number in range(answer.first, answer.last + 1):
            receipt = self._open.pop(number, None)
            if receipt is not None:
                receipt.answer = answer
        self._counts[answer.answer] += answer.last - answer.first + 1
        if answer.answer in ("refused", "unknown") and len(self._bad) < FAILURES_KEPT:
            self._bad.append(answer)

    def answered_through(self, number: int) -> bool:
        """Whether all up to this number are answered."""
        return not self._open or next(iter(self._open)) > number

    def summary(self) -> Summary:
        """Counts since the last summary."""
        counts, bad = self._counts, tuple(self._bad)
        self._counts, self._bad = dict.fromkeys(counts, 0), []
        return Summary(**counts, not_accepted=bad)


def describe_failures(answers: tuple[Answered, ...]) -> str:
    first = answers[0]
    count = sum(answer.last - answer.first + 1 for answer in answers)
    return f"{count} publications were not accepted; number {first.first} is {first.answer}: {first.text or first.code}"
