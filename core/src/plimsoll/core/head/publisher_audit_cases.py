"""A move of publishers that is audited, and those that count what comes of them: values of `publisher_audit.py`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.core.head.handover.log_pass import AuditCase
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER

REMEMBERED_MOVES: Final = 256


@dataclass(slots=True)
class PublisherCase(AuditCase):
    """A subscriber that counts. Of the publications of this head only those of `publishers`, above the number that each
    had, are due; `elsewhere`: what is due of other heads. A number that the log has twice is due once."""

    check: msg.AuditRequestItem | None = None
    publishers: dict[tuple[str, int], int] = field(default_factory=dict)
    own: tuple[str, int] = ("", 0)
    elsewhere: list[msg.ExpectedCount] = field(default_factory=list)

    def expect(self, pub: msg.PubOpen) -> None:
        publisher = (pub.publisher, pub.incarnation)
        if (pub.head, pub.epoch) != self.own or pub.seq <= self.publishers.get(publisher, pub.seq):
            return
        self.publishers[publisher] = pub.seq
        AuditCase.expect(self, pub)

    def item(self) -> msg.ExpectedItem:
        here = AuditCase.item(self)
        return msg.ExpectedItem(self.subscriber, self.epoch, [*self.elsewhere, *here.due])


@dataclass(slots=True)
class AuditedMove:
    """A move that this head judges: from position `low` on. `moved`: who may publish at the target, once it is over.

    `asked`: how many subscribers were asked; `counts`: by subscriber, of those that were `judged`. `is_read`: the log
    has been read for `cases`.
    """

    id: str
    target: str
    publishers: list[msg.AuditedPublisher]
    low: int
    asked: int = 0
    cases: dict[str, PublisherCase] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    counts: dict[str, msg.AuditSummaryItem] = field(default_factory=dict)
    moved: list[msg.AuditedPublisher] = field(default_factory=list)
    reads_at: float = NEVER
    is_read: bool = False

    def item(self) -> msg.AuditItem | None:
        if not self.is_read and not self.counts:
            return None
        names = ("lost", "duplicated", "reordered", "suppressed", "due_of_judge", "due_of_others")
        lost, duplicated, reordered, suppressed, before, after = (
            sum(getattr(each, name) for each in self.counts.values()) for name in names
        )
        return msg.AuditItem(len(self.counts), lost, duplicated, reordered, suppressed, self.asked, before, after)


def by_edge(cases: Iterable[PublisherCase]) -> dict[tuple[str, str], list[PublisherCase]]:
    """Cases by the head and the edge of their subscribers."""
    found: dict[tuple[str, str], list[PublisherCase]] = {}
    for case in cases:
        found.setdefault((case.head, case.edge), []).append(case)
    return found


def keep_latest(remembered: OrderedDict[str, Any]) -> None:
    """Forget the oldest of more moves than a head remembers."""
    while len(remembered) > REMEMBERED_MOVES:
        remembered.popitem(last=False)
