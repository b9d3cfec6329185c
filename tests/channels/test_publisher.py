"""Counts and positions of what is published. Crashes and heads that forget are in test_ledger.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.channels.batch import Result, first_commit
from plimsoll.channels.ledger import ChannelLedger, PublishedCounts
from plimsoll.channels.publisher import OPEN_SECONDS, ResultPublisher
from plimsoll.client import errors
from plimsoll.core.client import Answered, PublisherPosition

RESULTS = tuple(Result({"n": number}) for number in range(4))


class SlowPublisher:
    """Answers when a test says so."""

    def __init__(self, on_answer: Callable[[list[Answered]], None]) -> None:
        self.on_answer = on_answer
        self.number, self.is_open = 0, True
        self.published: list[Any] = []

    @property
    def position(self) -> PublisherPosition | None:
        return PublisherPosition(1, self.number, self.number, "h", 1)

    def answer(self, first: int, last: int, answer: Any, through: int) -> None:
        self.number = through
        self.on_answer([Answered(first, last, answer, 1, first)])

    def publish(self, attributes: Any, payload: bytes = b"") -> None:
        self.published.append(attributes)

    def flush(self, timeout: float | None = None) -> None:
        raise errors.WaitTimeoutError("some are unanswered")

    def close(self, timeout: float = 0.0) -> None: ...


def test_answers_are_counted_up_to_the_position_and_others_wait(tmp_path: Path) -> None:
    made: list[SlowPublisher] = []
    ledger = ChannelLedger(tmp_path)

    def opened(*given: Any) -> SlowPublisher:
        made.append(SlowPublisher(given[3]))
        return made[0]

    publisher = ResultPublisher(ledger, opened, lambda: 1)
    ledger.commit(first_commit({}, 1))
    publisher.publish(RESULTS)
    [inner] = made
    inner.answer(3, 3, "refused", through=0)
    publisher.save()
    assert publisher.counts == PublishedCounts()
    inner.answer(1, 2, "accepted", through=3)
    publisher.save()
    assert publisher.counts == PublishedCounts(accepted=2, refused=1)
    assert ledger.position is not None
    assert (ledger.position.number, ledger.position.counts) == (3, publisher.counts)
    inner.number = 4  # answered, and the answer has not come to us
    publisher.save()
    assert ledger.position.number == 3
    inner.answer(4, 4, "unknown", through=4)
    publisher.close()
    assert ledger.position.counts == PublishedCounts(accepted=2, unknown=1, refused=1)
    ledger.close()


def test_a_fleet_that_does_not_open_it_is_an_error(tmp_path: Path) -> None:
    now = 0

    def wait(seconds: float) -> None:
        nonlocal now
        now += round(OPEN_SECONDS * 1e6 / 3)

    class Closed(SlowPublisher):
        is_open = False

        def __init__(self, on_answer: Callable[[list[Answered]], None]) -> None:
            super().__init__(on_answer)
            self.is_open = False

    ledger = ChannelLedger(tmp_path)
    with pytest.raises(errors.WaitTimeoutError, match="no head has opened the channel's publisher for 30 s"):
        ResultPublisher(ledger, lambda *given: Closed(given[3]), lambda: now, wait)
    ledger.close()
