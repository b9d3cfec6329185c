"""What a subscriber counts while it moves, and when it gives no answer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.client import delivery_tally as tallies
from plimsoll.core.client.delivery_tally import DeliveryTally, PublisherTally, TallyResult
from plimsoll.core.protocol import messages as msg

SINCE = ("h", 5, 10)


def tally(kit: Any, *offsets: int, marks: tuple[Any, ...] = (("h", 5, 10),)) -> DeliveryTally:
    one = DeliveryTally("4.7", SINCE, marks, 1)
    for offset in offsets:
        one.saw(kit.pub(offset))
    return one


# -- counting


@pytest.mark.parametrize(
    ("offsets", "due", "found"),
    [
        ((11, 12, 13), (13, 3), TallyResult(0, 0, 0)),
        ((11, 13), (13, 3), TallyResult(1, 0, 0)),
        ((), (13, 3), TallyResult(3, 0, 0)),
        ((11, 12, 13, 14, 20), (13, 3), TallyResult(0, 0, 0)),
        ((11, 11, 12), (12, 2), TallyResult(0, 1, 0)),
        ((10, 11), (11, 1), TallyResult(0, 1, 0)),
        ((12, 11), (12, 2), TallyResult(0, 0, 1)),
        ((13, 11, 12, 11), (13, 4), TallyResult(1, 1, 1)),
        ((13, 12, 11), (13, 3), TallyResult(0, 0, 2)),
        ((11, 12, 13), (13, 2), None),
    ],
)
def test_what_was_given_is_held_against_what_was_due(
    kit: Any, offsets: tuple[int, ...], due: tuple[int, int], found: TallyResult | None
):
    assert tally(kit, *offsets).against([("h", 5, *due)]) == found


def test_origins_are_counted_apart(kit: Any):
    one = tally(kit, 11, 12)
    one.saw(kit.pub(1, offset=3, head="k", epoch=2))
    one.saw(kit.pub(2, offset=11, epoch=6))
    assert one.against([("h", 5, 12, 2), ("k", 2, 3, 1), ("h", 6, 11, 1)]) == TallyResult(0, 0, 0)
    assert one.against([("h", 5, 12, 2), ("k", 2, 3, 2), ("h", 6, 11, 3)]) == TallyResult(3, 0, 0)
    assert one.against([("k", 2, 3, 0)]) is None, "a delivery that was not due was given"


def test_the_number_of_remembered_deliveries_is_bounded(kit: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tallies, "ITEMS_AT_MOST", 3)
    one = tally(kit)
    assert [one.saw(kit.pub(11)) for _ in range(4)] == [True, True, True, False]


# -- a subscriber that moves


def counted(move: Any) -> list[msg.AuditReply]:
    return list(move.target.all(msg.AuditReply))


def moved(move: Any, kit: Any, *before: int) -> None:
    """The source delivers these; then the subscriber moves to the target."""
    move.begin()
    move.held()
    move.source.tell(*[msg.Deliver(move.id, kit.pub(at)) for at in before])
    move.end()


def ask(move: Any, *due: msg.ExpectedCount, session: str = "4.7") -> None:
    move.target.tell(msg.AuditQuery(session, [msg.AuditQueryItem(move.next, list(due))]))
    move.run()


def test_it_counts_from_move_to_on_and_says_from_where(move: Any, kit: Any):
    move.source.tell(msg.Deliver(move.id, kit.pub(11, offset=7)))
    move.run()
    moved(move, kit, 15, 17)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next, ("h", 5, 11), [("h", 5, 7)])])
    move.target.tell(msg.Deliver(move.next, kit.pub(21)), msg.Deliver(move.next, kit.pub(23)))
    ask(move, ("h", 5, 23, 6))
    assert counted(move) == [msg.AuditReply(move.session, [msg.AuditReplyItem(move.next, 2, 0, 0, 0)])]


def test_what_is_held_back_is_told(move: Any, kit: Any):
    moved(move, kit, 15, 17)
    move.target.tell(
        *[msg.Deliver(move.next, kit.pub(at, offset=offset)) for at, offset in ((21, 15), (22, 17), (23, 18))]
    )
    ask(move, ("h", 5, 18, 3))
    assert counted(move) == [msg.AuditReply(move.session, [msg.AuditReplyItem(move.next, 0, 0, 0, 2)])]


def test_who_is_given_something_twice_or_late_says_so(move: Any, kit: Any):
    """The subscriber's watermarks would prevent it; the count does not rely on them."""
    moved(move, kit, 17)
    move.subscriber.stream.watermarks.clear()
    move.target.tell(
        *[msg.Deliver(move.next, kit.pub(at, offset=offset)) for at, offset in ((21, 16), (22, 17), (23, 18))]
    )
    ask(move, ("h", 5, 18, 3))
    assert counted(move) == [msg.AuditReply(move.session, [msg.AuditReplyItem(move.next, 0, 1, 1, 0)])]


def test_it_answers_once(move: Any, kit: Any):
    moved(move, kit, 17)
    ask(move, ("h", 5, 17, 1))
    ask(move, ("h", 5, 17, 1))
    assert len(counted(move)) == 1
    assert move.subscriber.stream.tally is None
    assert move.subscriber.current.take == move.subscriber.stream.take, "and pays for no more"


def test_what_does_not_fit_is_not_answered(move: Any, kit: Any):
    moved(move, kit, 15, 17)
    ask(move, ("h", 5, 17, 1))
    assert counted(move) == []
    ask(move, ("h", 5, 17, 2))
    assert counted(move) == [], "it has been asked"


def test_another_hand_over_is_not_answered_for(move: Any, kit: Any):
    moved(move, kit, 15)
    ask(move, ("h", 5, 15, 1), session="4.8")
    assert counted(move) == []


def test_a_list_that_changes_meanwhile_ends_it(move: Any, kit: Any):
    moved(move, kit, 15)
    move.change()
    ask(move, ("h", 5, 15, 1))
    assert counted(move) == []


def test_a_list_that_has_changed_on_the_way_says_nothing_at_end(move: Any, kit: Any):
    move.begin()
    move.held()
    move.change()
    move.held()
    move.end()
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next)])


def test_who_has_more_watermarks_than_go_may_have_does_not_count(move: Any, kit: Any):
    for n in range(msg.COUNTED_MARKS_AT_MOST + 1):
        move.source.tell(msg.Deliver(move.id, kit.pub(11 + n, offset=1, head=f"h{n}")))
    move.run()
    moved(move, kit)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next)])


def test_too_many_deliveries_end_it(move: Any, kit: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tallies, "ITEMS_AT_MOST", 2)
    moved(move, kit, 15, 16, 17)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next)])
    assert move.stage.app.seqs() == [15, 16, 17]


def test_an_attachment_that_is_lost_ends_it(move: Any, kit: Any):
    moved(move, kit, 15)
    move.lose_target()
    assert move.subscriber.stream.tally is None


def test_staying_ends_it(move: Any, kit: Any):
    move.begin()
    move.held()
    assert move.subscriber.stream.tally is not None
    move.stay()
    assert move.subscriber.stream.tally is None
    assert move.subscriber.current.take == move.subscriber.stream.take


# -- a changed list


def test_a_changed_list_counts_from_the_second_progress_on(move: Any, kit: Any):
    """What is due begins ahead of SUBACK, at a place that only the head knows; PROGRESS may be of a place before it."""
    move.change()
    move.suback()
    for position, counts in ((11, False), (11, False), (12, True)):
        move.source.tell(msg.Progress(position, []))
        move.run()
        assert (move.subscriber.stream.even_version == move.subscriber.subscription_list.version) is counts
    moved(move, kit)
    assert move.target.last_of(msg.Go).members[0].since == ("h", 5, 12)


def test_progress_that_does_not_speak_for_it_is_none(move: Any, kit: Any):
    move.change()
    move.suback()
    for position in (11, 12, 13):
        move.source.tell(msg.Progress(position, [move.id]))
    move.run()
    moved(move, kit)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next)])


def test_a_change_that_is_not_acknowledged_is_none_to_count_by(move: Any, kit: Any):
    move.change()
    for position in (11, 12, 13):
        move.source.tell(msg.Progress(position, []))
    move.run()
    moved(move, kit)
    assert move.target.last_of(msg.Go) == msg.Go(move.session, [msg.GoItem(move.next)])


# -- by replay


def test_by_replay_it_counts_from_its_resume_on(move: Any, kit: Any):
    move.source.tell(msg.Deliver(move.id, kit.pub(12)), msg.Moved([move.id], "o", kit.other, "", "4.7"))
    move.run()
    resume = move.stage.answer(12, move.target)
    assert (resume.token, resume.watermarks, resume.session) == (("h", 5, 12), [("h", 5, 12)], "4.7")
    move.target.tell(*[msg.Deliver(resume.attachment, kit.pub(at)) for at in (13, 15)])
    move.target.tell(msg.AuditQuery("4.7", [msg.AuditQueryItem(resume.attachment, [("h", 5, 15, 3)])]))
    move.run()
    assert counted(move) == [msg.AuditReply("4.7", [msg.AuditReplyItem(resume.attachment, 1, 0, 0, 0)])]


def test_who_is_only_sent_elsewhere_counts_nothing(move: Any, kit: Any):
    move.source.tell(msg.Moved([move.id], "o", kit.other, ""))
    move.run()
    move.stage.answer(12, move.target)
    assert move.subscriber.stream.tally is None


# -- publishers that move

BOTH = [("h", 5, 20, 2), ("k", 2, 2, 2)]
"""Of publisher p two were due of head h, with numbers 4 and 5, and two of head k, with 6 and 7."""


def publishers_tally(kit: Any, *seen: tuple[int, str, int]) -> PublisherTally:
    """Of publisher p above number 3: its numbers, the heads that have accepted them, and their offsets there."""
    asked = msg.CountPublishers("4.7", [1], ["h", "k"], [msg.AuditedPublisher("p", 1, 3)])
    one = PublisherTally(asked, SINCE, [("h", 5, 10)], 1)
    for number, head, offset in seen:
        one.saw(of_publisher(kit, number, head, offset))
    return one


def of_publisher(kit: Any, number: int, head: str, offset: int, publisher: str = "p", incarnation: int = 1) -> Any:
    pub = kit.pub(offset, offset=offset, head=head, epoch=5 if head == "h" else 2)
    return replace(pub, publisher=publisher, incarnation=incarnation, seq=number)


A, B, C, D = (4, "h", 19), (5, "h", 20), (6, "k", 1), (7, "k", 2)


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ((A, B, C, D), TallyResult(0, 0, 0)),
        ((A, B, D), TallyResult(1, 0, 0)),
        ((A, C, B, D), TallyResult(0, 0, 1)),
        ((A, B, C, (6, "k", 2), D), TallyResult(0, 1, 0)),
        ((A, B, (5, "k", 1), C, D), TallyResult(0, 1, 0)),
        ((C, D), TallyResult(2, 0, 0)),
        ((A, B, C, D, (8, "k", 3)), TallyResult(0, 0, 0)),
        (((3, "h", 18), A, B, C, D), TallyResult(0, 0, 0)),
        (((8, "h", 9), A, B, C, D), TallyResult(0, 1, 0)),
    ],
    ids=["all", "lost", "around", "again", "at-both", "before", "behind", "below", "at-mark"],
)
def test_order_and_copies_are_judged_by_the_numbers_of_a_publisher(kit: Any, seen: Any, found: TallyResult):
    assert publishers_tally(kit, *seen).against(BOTH) == found


def test_only_the_named_publishers_count(kit: Any):
    one = publishers_tally(kit, A, B, C, D)
    for pub in (of_publisher(kit, 9, "k", 3, "q"), of_publisher(kit, 9, "k", 4, "p", 2)):
        assert one.saw(pub)
        one.passed_over(pub)
    assert (one.items, one.suppressed) == (4, 0)
    one.passed_over(of_publisher(kit, 6, "k", 1))
    assert one.suppressed == 1
    assert one.against(BOTH) == TallyResult(0, 0, 0)
