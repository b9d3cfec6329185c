"""A small run in its journals: one publisher, one subscriber, four publications."""

from pathlib import Path

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal, JournalAttachment
from plimsoll.demo.run_audit import DemoAudit, audit_run

HEAD = ("quotes-head", 9)
STOCK: dict[str, seen.Value] = {"class": "STOCK", "symbol": "IBM-2004", "high": 90.0}
ASKED = (("symbol", "=", "IBM-2004"), ("class", "=", "STOCK"))


def journals(
    folder: Path, delivered: list[int], *, accepted: int = 4, extra=(), faults=(), counter: int | None = None,
    settled: int | None = None, every: float = 1.0,
) -> DemoAudit:  # fmt: skip
    """One publisher with publications 1 to 4, one subscriber that had `delivered`, in that order."""
    with DeliveryJournal(folder / "publishing") as journal:
        for seq in range(1, 5):
            journal.note(seen.PublicationObserved("p", 5, seq, STOCK, 10.0 + seq * every))
            answer: seen.Answer = "accepted" if seq <= accepted else "refused"
            journal.note(seen.AnswerObserved("p", 5, seq, answer, 10.5 + seq * every))
    with DeliveryJournal(folder / "subscribing") as journal:
        journal.note(seen.SubscriptionObserved("s", 1, 1, ASKED, 1.0))
        journal.attached(JournalAttachment("s", "b1", 1.5))
        journal.note(seen.AcknowledgementObserved("s", 1, [1], "quotes-head", [], 2.0))
        for seq in delivered:
            journal.delivered(("s", 1), ("p", 5, seq), (*HEAD, seq), (*HEAD, seq), 10.25 + seq * every)
        for one in extra:
            journal.note(one)
        if counter is not None:
            journal.note(seen.CounterObserved("s", 1, "delivered", counter, 99.0))
    return audit_run([folder / "publishing"], [folder / "subscribing"], 10.0, faults, settled)


@pytest.fixture
def judged(tmp_path):
    """Judge a run in which the subscriber had these publications, in this order."""

    def judged(delivered: list[int], **more) -> DemoAudit:
        return journals(tmp_path, delivered, **more)

    return judged
