"""What the log had for moved members: no more, no less, and no answer where it does not know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.head.handover.hosts import FakeHost

from plimsoll.core.head.handover import delivery_audit as module
from plimsoll.core.head.handover import log_pass
from plimsoll.core.head.handover.delivery_audit import DeliveryAudit
from plimsoll.core.head.log import LogEntry
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

S = "1.1"


class Head(FakeHost):
    def __init__(self, limit_bytes: int = 10**7) -> None:
        super().__init__()
        self.log.limit_bytes = limit_bytes
        self.changed: list[str] = []
        self.delivery_audit = DeliveryAudit(self, self, self.changed.append)

    def publish(self, n: int, origin: tuple[str, int] = ("h", 5), offset: int = 0) -> int:
        """At the next position, with this number in it; by default the offset is the position."""
        at = self.log.last + 1
        body = msgspec.Raw(wire.encode(msg.Body({"n": n})))
        record = wire.encode(msg.Pub(at, *origin, offset or at, "p", 1, at, 0, 0, body))
        return self.log.append(LogEntry(record, ((origin, offset or at),), False))

    def gap(self) -> None:
        record = wire.encode(msg.Gap("k", 3, 1, 3, 4, [("k", 3, 4)], "restart"))
        self.log.append(LogEntry(record, ((("k", 3), 4),), True))

    def done(
        self, *checks: msg.AuditRequestItem, moved: tuple[str, ...] = ("x", "y"), head: str = "h", edge: str = "b"
    ) -> None:
        self.delivery_audit.done(head, msg.Done(S, [check.subscriber for check in checks], edge, list(checks)), moved)

    def run(self, seconds: float = 5.0) -> None:
        end = self.now + seconds
        while self.delivery_audit.wake_at() <= end:
            self.now = max(self.now, self.delivery_audit.wake_at())
            self.delivery_audit.tick()
        self.now = end

    def due(self) -> dict[str, list[msg.ExpectedCount]]:
        return {item.subscriber: item.due for _, _, told in self.said for item in told.members}


def check(x: str = "x", low: int = 0, *texts: str, marks: tuple[Any, ...] = (), epoch: int = 5) -> msg.AuditRequestItem:
    return msg.AuditRequestItem(x, (1, 5), ("h", epoch, low), list(marks), list(texts or ("[n,>,0]",)))


@pytest.mark.parametrize(("to", "due"), [("h", ("h", 5, 6, 4)), ("k", ("h", 5, 5, 3))])
def test_what_is_due_lies_behind_the_place_and_before_the_end(to: str, due: msg.ExpectedCount):
    """Another head's log goes on; this one claims nothing once the source may have left the cover."""
    head = Head()
    for n in (1, 2, 0, 3, 4):
        head.publish(n)
    head.done(check(low=1), head=to)
    head.publish(5)
    head.run(module.GATHER_SECONDS)
    head.publish(6)
    head.run()
    assert head.said == [(to, "b", msg.ExpectedDeliveries(S, "h", [msg.ExpectedItem("x", (1, 5), [due])]))]
    assert len(head.delivery_audit) == 0
    assert head.delivery_audit.wake_at() == float("inf")


def test_what_the_watermarks_have_is_not_due_and_origins_are_apart():
    head = Head()
    for offset in (4, 5, 6):
        head.publish(1, ("k", 3), offset)
        head.publish(1)
    head.done(check(marks=(("k", 3, 5), ("k", 2, 9))))
    head.run()
    assert head.due() == {"x": [("h", 5, 6, 3), ("k", 3, 6, 1)]}


def test_several_subscriptions_are_one_list():
    head = Head()
    for n in (1, 2, 3):
        head.publish(n)
    head.done(check("x", 0, "[n,>,0]", "[n,=,3]"), check("y", 0, "[n,=,1]", "[n,=,3]"))
    head.run()
    assert head.due() == {"x": [("h", 5, 3, 3)], "y": [("h", 5, 3, 2)]}


def test_nothing_due_is_an_answer_too():
    head = Head()
    head.publish(0)
    head.done(check())
    head.run()
    assert head.due() == {"x": []}


@pytest.mark.parametrize(
    "given_",
    [check(epoch=4), check(low=9), check("stranger"), check("x", 0, "[n,>,")],
    ids=["another-epoch", "ahead-of-the-log", "not-moved", "unreadable"],
)
def test_members_without_an_answer(given_: msg.AuditRequestItem):
    head = Head()
    head.publish(1)
    head.done(given_, check("y"))
    head.run()
    assert head.due() == {"y": [("h", 5, 1, 1)]}


def test_an_edge_that_does_not_say_who_it_is_is_not_answered():
    head = Head()
    head.publish(1)
    head.done(check(), edge="")
    head.run()
    assert head.said == []


def test_a_gap_in_the_log_leaves_affected_members_unaudited():
    head = Head()
    head.publish(1)
    head.gap()
    head.done(check("x", 0), check("y", 2))
    head.run()
    assert head.due() == {"y": []}


def test_what_has_been_evicted_is_not_judged():
    head = Head(limit_bytes=2_000)
    for _ in range(4):
        head.publish(1)
    head.done(check("x", 0), check("y", 3))
    for _ in range(8):
        head.publish(1)
    assert 2 < head.log.first <= 13
    head.log.limit_bytes = 10**7
    head.run()
    assert "x" not in head.due()
    head.done(check("x", 0))
    assert len(head.delivery_audit) == 0, "it begins before the log does"


def test_a_log_that_moves_on_while_it_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_pass, "SLICE_ENTRIES", 2)
    head = Head(limit_bytes=6_000)
    for _ in range(12):
        head.publish(1)
    head.done(check("x", 0), check("y", 11))
    head.run(module.GATHER_SECONDS + 3 * log_pass.PAUSE_SECONDS)
    for _ in range(30):
        head.publish(1)
    assert head.log.first > 8
    head.run()
    assert head.due() == {}, "what x is due is gone, and so is the end of what y is"


def test_it_is_read_in_slices_with_pauses_between_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_pass, "SLICE_ENTRIES", 10)
    monkeypatch.setattr(log_pass, "SLICE_SUBSCRIPTIONS", 2)
    head, began = Head(), 100.0
    for _ in range(35):
        head.publish(1)
    head.done(check("x", 0, "[n,>,0]", "[n,>,1]", "[n,>,2]"))
    turns = 0
    while head.delivery_audit.wake_at() < float("inf"):
        assert head.delivery_audit.wake_at() - head.now == pytest.approx(
            log_pass.PAUSE_SECONDS if turns else module.GATHER_SECONDS
        )
        head.now = head.delivery_audit.wake_at()
        head.delivery_audit.tick()
        turns += 1
    assert turns == 2 + 4
    assert head.now == pytest.approx(began + module.GATHER_SECONDS + 5 * log_pass.PAUSE_SECONDS)
    assert head.due() == {"x": [("h", 5, 35, 35)]}


def test_many_matches_are_a_slice_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_pass, "SLICE_MATCHES", 3)
    head = Head()
    for _ in range(8):
        head.publish(1)
    head.done(check())
    head.run(module.GATHER_SECONDS + 1.5 * log_pass.PAUSE_SECONDS)
    assert head.said == []
    head.run()
    assert head.due() == {"x": [("h", 5, 8, 8)]}


def test_what_takes_too_long_is_given_up_and_those_who_wait_come_next(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_pass, "SLICE_ENTRIES", 1)
    monkeypatch.setattr(log_pass, "READ_SECONDS", 0.1)
    head = Head()
    for _ in range(30):
        head.publish(1)
    head.done(check("x", 0))
    head.run(module.GATHER_SECONDS + 0.04)
    head.done(check("y", 29))
    assert len(head.delivery_audit) == 2
    head.run()
    assert head.due() == {"y": [("h", 5, 30, 1)]}
    assert len(head.delivery_audit) == 0


def test_those_who_come_together_are_read_for_together_and_told_apart():
    head = Head()
    head.publish(1)
    head.done(check("x"))
    head.run(0.2)
    head.done(check("y"), head="k", edge="k1")
    head.run()
    assert [(to, edge, len(told.members)) for to, edge, told in head.said] == [("h", "b", 1), ("k", "k1", 1)]


def test_the_number_of_waiting_members_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAITING_AT_MOST", 1)
    head = Head()
    head.publish(1)
    head.done(check("x"), check("y"))
    head.run()
    assert head.due().keys() == {"x"}


def test_a_long_list_is_told_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "DUE_AT_ONCE", 2)
    names = [f"x{n}" for n in range(5)]
    head = Head()
    head.publish(1)
    head.done(*[check(x) for x in names], moved=tuple(names))
    head.run()
    assert [[item.subscriber for item in told.members] for _, _, told in head.said] == [
        names[:2],
        names[2:4],
        names[4:],
    ]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    st.integers(0, 40),
    st.integers(0, 20),
    st.integers(1, 7),
)
def test_it_finds_what_one_would_find_by_looking(said: list[tuple[int, bool]], low: int, mark: int, at_once: int):
    head, offsets = Head(), {("h", 5): 0, ("k", 3): 0}
    expected: dict[tuple[str, int], tuple[int, int]] = {}
    low = min(low, len(said))
    for position, (n, far) in enumerate(said, 1):
        origin = ("k", 3) if far else ("h", 5)
        offsets[origin] += 1
        head.publish(n, origin, offsets[origin])
        if position > low and n > 1 and (not far or offsets[origin] > mark):
            count = expected.get(origin, (0, 0))[1]
            expected[origin] = (offsets[origin], count + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_pass, "SLICE_ENTRIES", at_once)
        head.done(check("x", low, "[n,>,1]", marks=(("k", 3, mark),)))
        head.run()
    assert head.due() == {"x": [(*origin, *found) for origin, found in sorted(expected.items())]}


# -- sums


def counts(*items: tuple[str, int, int, int, int], session: str = S) -> msg.AuditSummary:
    return msg.AuditSummary(session, "h", [msg.AuditSummaryItem(*item) for item in items])


def test_sums_of_those_who_have_moved_each_once():
    head = Head()
    assert head.delivery_audit.audit(S) is None
    head.delivery_audit.counted(counts(("x", 1, 0, 2, 3)), ["x", "y"])
    head.delivery_audit.counted(counts(("x", 1, 0, 2, 3), ("y", 0, 1, 0, 4), ("stranger", 9, 9, 9, 9)), ["x", "y"])
    assert head.delivery_audit.audit(S) == msg.AuditItem(2, 1, 1, 2, 7)
    assert head.changed == [S, S]


def test_strangers_make_no_sum():
    head = Head()
    head.delivery_audit.counted(counts(("stranger", 1, 1, 1, 1)), ["x"])
    assert head.delivery_audit.audit(S) is None
    assert head.changed == []


def test_sums_are_kept_as_long_as_outcomes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED_SESSIONS", 2)
    head = Head()
    for n in (1, 2, 3):
        head.delivery_audit.counted(counts(("x", 1, 0, 0, 0), session=f"1.{n}"), ["x"])
    assert [head.delivery_audit.audit(f"1.{n}") is not None for n in (1, 2, 3)] == [False, True, True]
