"""The laws over a subscriber's stream: what must come, what may be missing, and what must never come."""

from __future__ import annotations

import pytest

from plimsoll.core.verify import audit_journal
from plimsoll.core.verify import observations as seen

ANY: list[seen.Triple] = [("a", ">", 0)]


def publish(seq: int, at: float, head: str = "h", answer: seen.Answer = "accepted") -> list[seen.Observation]:
    """Published, logged by `head` as offset and position `seq`, and answered."""
    name = f"p-{head}"
    return [
        seen.PublicationObserved(name, 1, seq, {"a": seq}, at),
        seen.LogEntryObserved(head, 1, seq, (name, 1, seq), (head, 1, seq), at + 0.1),
        seen.AnswerObserved(name, 1, seq, answer, at + 0.2),
    ]


def have(seq: int, at: float, head: str = "h", incarnation: int = 1) -> seen.DeliveryObserved:
    return seen.DeliveryObserved("s", incarnation, (f"p-{head}", 1, seq), (head, 1, seq), at)


def gap(low: int, high: int, at: float, head: str = "h", last: int | None = None) -> seen.GapObserved:
    return seen.GapObserved("s", 1, head, 1, low, 1, high, [("h", 1, last or high)], "log", at)


def subscribe(acknowledged_at: float = 1.0, unreached: tuple[str, ...] = ()) -> list[seen.Observation]:
    return [
        seen.SubscriptionObserved("s", 1, 7, ANY, 0.5),
        seen.AcknowledgementObserved("s", 1, [7], "h", list(unreached), acknowledged_at),
    ]


FIVE = [each for seq in range(1, 6) for each in publish(seq, 1.0 + seq)]
LATE = [have(seq, 10.0 + seq) for seq in range(1, 6)]


def without(
    seqs: set[int], *more: seen.Observation, base: list[seen.DeliveryObserved] = LATE
) -> list[seen.Observation]:
    return [*subscribe(), *FIVE, *(one for one in base if one.publication[2] not in seqs), *more]


def test_a_clean_run():
    verdict = audit_journal([*subscribe(), *FIVE, *LATE])
    assert verdict.ok
    assert (verdict.expected, verdict.delivered, verdict.lost, verdict.uncertain) == (5, 5, 0, 0)


def test_the_order_between_writers_does_not_matter():
    assert audit_journal([*LATE, *reversed(FIVE), *subscribe()]) == audit_journal([*subscribe(), *FIVE, *LATE])


@pytest.mark.parametrize("seqs", [{1}, {3}, {5}, {1, 2, 3, 4, 5}])
def test_a_loss_is_found_wherever_it_is(seqs):
    verdict = audit_journal(without(seqs))
    assert verdict.violated == {"I1": len(seqs)}
    assert verdict.lost == len(seqs)


def test_a_told_gap_excuses_what_lies_in_it_and_nothing_else():
    told = [have(1, 11.0), gap(2, 3, 11.5), have(4, 14.0), have(5, 15.0)]
    verdict = audit_journal([*subscribe(), *FIVE, *told])
    assert verdict.ok
    assert (verdict.expected, verdict.excused, verdict.gaps) == (5, 2, 1)
    told[1] = gap(3, 3, 11.5)
    verdict = audit_journal([*subscribe(), *FIVE, *told])
    assert verdict.violated == {"I1": 1}
    assert (verdict.excused, verdict.lost) == (1, 1)


def test_a_gap_over_a_restart_spans_the_epochs():
    told = seen.GapObserved("s", 1, "h", 1, 4, 3, 2, [], "restart", 13.5)
    again = [
        seen.PublicationObserved("q", 1, 1, {"a": 1}, 12.0),
        seen.LogEntryObserved("h", 3, 2, ("q", 1, 1), ("h", 3, 2), 12.1),
        seen.AnswerObserved("q", 1, 1, "accepted", 12.2),
    ]
    verdict = audit_journal([*subscribe(), *FIVE, *LATE[:3], *again, told])
    assert verdict.ok
    assert verdict.excused == 3


def test_without_logs_the_last_offsets_of_a_gap_decide():
    bare = [one for one in FIVE if not isinstance(one, seen.LogEntryObserved)]
    other = [seen.DeliveryObserved("t", 1, one.publication, one.origin, one.at) for one in LATE]
    both = [
        seen.SubscriptionObserved("t", 1, 1, ANY, 0.5),
        seen.AcknowledgementObserved("t", 1, [1], "h", [], 1.0),
        *other,
    ]
    told = [have(1, 11.0), gap(20, 30, 11.5, last=3), have(4, 14.0), have(5, 15.0)]
    assert audit_journal([*subscribe(), *bare, *both, *told]).ok
    told[1] = gap(20, 30, 11.5, last=2)
    assert audit_journal([*subscribe(), *bare, *both, *told]).violated == {"I1": 1}


def test_a_gap_does_not_excuse_what_order_had_lost_before_it():
    bare = [one for one in FIVE if not isinstance(one, seen.LogEntryObserved)]
    logs = [one for one in FIVE if isinstance(one, seen.LogEntryObserved)]
    moved = [seen.LogEntryObserved("g", 1, one.position, one.publication, one.origin, one.at) for one in logs]
    told = [have(1, 11.0), have(3, 13.0), gap(4, 5, 14.0, last=5)]
    assert audit_journal([*subscribe(), *bare, *moved, *told]).violated == {"I1": 1}


def test_an_undelivered_publication_is_placed_after_its_publishers_last():
    bare = [one for one in FIVE if not isinstance(one, seen.LogEntryObserved)]
    assert audit_journal([*subscribe(), *bare, *LATE[:3], gap(4, 5, 14.0)]).ok
    assert audit_journal([*subscribe(), *bare, *LATE[:3], gap(4, 5, 14.0, last=3)]).violated == {"I1": 2}


def test_the_crash_of_a_head_loses_what_only_it_had_if_it_says_so():
    far = [each for seq in (1, 2) for each in publish(seq, 2.0 + seq, head="g")]
    told = seen.GapObserved("s", 1, "h", 1, 9, 1, 9, [], "restart", 17.0)
    crash = seen.HeadEndObserved("g", 1, 9.0)
    base = [*subscribe(), *FIVE, *LATE, *far]
    assert audit_journal([*base, have(1, 16.0, "g"), crash, told]).ok
    assert audit_journal([*base, have(1, 16.0, "g"), crash]).violated == {"I1": 1}
    assert audit_journal([*base, have(1, 16.0, "g"), told]).violated == {"I1": 1}
    assert audit_journal([*base, have(2, 16.0, "g"), crash, told]).violated == {"I1": 1}
    between = [*base, have(1, 16.0, "g"), seen.HeadTreeObserved([("g", "m"), ("m", "h"), ("m", "other")]), told]
    assert audit_journal([*between, seen.HeadEndObserved("m", 1, 9.0)]).ok, (
        "it was under way through a head that crashed"
    )
    assert audit_journal([*between, seen.HeadEndObserved("m", 1, 2.0)]).violated == {"I1": 1}, "which crashed before it"
    assert audit_journal([*between, seen.HeadEndObserved("other", 1, 9.0)]).violated == {"I1": 1}, (
        "which is not on the way"
    )


@pytest.mark.parametrize("acknowledged_at", [3.05, 3.15])
def test_what_was_logged_before_the_acknowledgement_is_uncertain(acknowledged_at):
    journal = [*subscribe(acknowledged_at), *FIVE, *LATE[2:]]
    verdict = audit_journal(journal)
    if acknowledged_at > 3.1:  # publication 2 was logged at 3.1
        assert verdict.ok
        assert (verdict.expected, verdict.uncertain) == (3, 2)
    else:
        assert verdict.violated == {"I1": 1}


def test_what_is_missing_at_a_withdrawal_is_uncertain_unless_it_was_overtaken():
    end = [seen.WithdrawalObserved("s", 1, [7], 12.5), seen.RemovalObserved("s", 1, [7], 12.7)]
    verdict = audit_journal([*subscribe(), *FIVE, *LATE[:2], *end])
    assert verdict.ok
    assert verdict.uncertain == 3
    verdict = audit_journal([*subscribe(), *FIVE, LATE[1], *end])
    assert verdict.violated == {"I1": 1}
    assert verdict.uncertain == 3


def test_nothing_is_logged_for_one_whose_withdrawal_was_acknowledged():
    end = [seen.WithdrawalObserved("s", 1, [7], 5.2), seen.RemovalObserved("s", 1, [7], 5.5)]
    assert audit_journal([*subscribe(), *FIVE, *LATE[:4], *end]).ok
    verdict = audit_journal([*subscribe(), *FIVE, *LATE, *end])
    assert verdict.violated == {"I8": 1}
    assert verdict.unwanted == 1


def test_another_subscription_of_the_same_subscriber_keeps_its_due():
    second = [
        seen.SubscriptionObserved("s", 1, 8, [("a", ">=", 4)], 0.5),
        seen.AcknowledgementObserved("s", 1, [8], "h", [], 1.0),
    ]
    end = [seen.WithdrawalObserved("s", 1, [7], 10.5)]
    verdict = audit_journal([*subscribe(), *second, *FIVE, LATE[4], *end])
    assert verdict.violated == {"I1": 1}
    assert verdict.uncertain == 3


def test_the_end_of_an_incarnation_ends_what_is_due():
    verdict = audit_journal([*subscribe(), *FIVE, *LATE[:3], seen.IncarnationEndObserved("s", 1, 13.5)])
    assert verdict.ok
    assert verdict.uncertain == 2
    assert audit_journal([*subscribe(), *FIVE, *LATE[:3], seen.IncarnationEndObserved("s", 1, 12.5)]).violated == {
        "I8": 1
    }


def test_a_lapse_voids_what_had_not_come_and_the_next_acknowledgement_counts():
    again = seen.AcknowledgementObserved("s", 1, [7], "h", [], 12.9)
    later = [each for seq in (6, 7) for each in publish(seq, 12.0 + seq)]
    journal = [*subscribe(), *FIVE, *LATE[:2], seen.LeaseEndObserved("s", 1, 12.5), again, *later]
    verdict = audit_journal([*journal, have(6, 20.0), have(7, 21.0)])
    assert verdict.ok
    assert verdict.uncertain == 3
    assert audit_journal([*journal, have(7, 21.0)]).violated == {"I1": 1}


def test_what_lies_behind_an_unreached_head_is_not_due():
    far = publish(1, 5.0, head="g")
    links = seen.HeadTreeObserved([("h", "m"), ("m", "g")])
    assert audit_journal([*subscribe(unreached=("m",)), links, *far]).ok
    assert audit_journal([*subscribe(unreached=("k",)), links, *far]).violated == {"I1": 1}
    second = seen.AcknowledgementObserved("s", 1, [7], "h", [], 4.0)
    assert audit_journal([*subscribe(unreached=("m",)), second, links, *far]).violated == {"I1": 1}


@pytest.mark.parametrize("answer", ["refused", "unknown", None])
def test_only_accepted_publications_are_due(answer):
    journal = publish(1, 2.0, answer=answer or "accepted")
    if answer in ("refused", None):
        journal = [one for one in journal if not isinstance(one, seen.LogEntryObserved)]
    if answer is None:
        journal = [*journal[:1], seen.IncarnationEndObserved("p-h", 1, 3.0)]
    verdict = audit_journal([*subscribe(), *journal])
    assert verdict.ok
    assert verdict.uncertain == (0 if answer == "refused" else 1)


def test_what_was_published_last_may_be_under_way():
    assert audit_journal([*subscribe(), *FIVE, *LATE[:3]], settled_until=4.5).ok
    assert audit_journal([*subscribe(), *FIVE, *LATE[:3]], settled_until=5.5).violated == {"I1": 1}
    assert audit_journal([*subscribe(), *FIVE, *LATE[:3], LATE[4]], settled_until=4.5).violated == {"I1": 1}, (
        "overtaken"
    )


@pytest.mark.parametrize(
    ("stream", "broken", "words"),
    [
        ([*LATE[:3], LATE[2], *LATE[3:]], {"I2": 1}, "came again"),
        ([LATE[0], LATE[2], LATE[1], LATE[3], LATE[4]], {"I3": 1}, "came after offset 3"),
        ([*LATE, have(6, 20.0)], {"I8": 2}, "came, which no subscription of that time matches"),
        ([LATE[0], gap(2, 3, 11.5), *LATE[2:]], {"I8": 2}, "came after it was told"),
        ([*LATE[:3], gap(2, 3, 13.5), *LATE[3:]], {"I8": 1}, "and had"),
        ([*LATE, gap(9, 8, 20.0)], {"I8": 1}, "ends before it begins"),
        ([have(1, 1.9), *LATE[1:]], {"I8": 1}, "before it was published"),
    ],
)
def test_a_planted_fault_is_named(stream, broken, words):
    verdict = audit_journal([*subscribe(), *FIVE, *stream])
    assert verdict.violated == broken, str(verdict)
    assert words in str(verdict)


def test_order_is_asked_of_each_origin_alone():
    far = [each for seq in (1, 2) for each in publish(seq, 2.0 + seq, head="g")]
    assert audit_journal([*subscribe(), *FIVE, *far, *LATE[:2], have(1, 12.5, "g"), *LATE[2:], have(2, 16.0, "g")]).ok
    turned = [*LATE, have(2, 16.0, "g"), have(1, 16.5, "g")]
    assert audit_journal([*subscribe(), *FIVE, *far, *turned]).violated == {"I3": 1}


def test_a_publishers_numbers_rise_within_an_origin():
    swapped = [
        *(seen.PublicationObserved("p-h", 1, seq, {"a": 1}, 2.0) for seq in (1, 2)),
        *(seen.AnswerObserved("p-h", 1, seq, "accepted", 2.2) for seq in (1, 2)),
        seen.LogEntryObserved("h", 1, 1, ("p-h", 1, 2), ("h", 1, 1), 2.1),
        seen.LogEntryObserved("h", 1, 2, ("p-h", 1, 1), ("h", 1, 2), 2.1),
    ]
    stream = [
        seen.DeliveryObserved("s", 1, ("p-h", 1, 2), ("h", 1, 1), 3.0),
        seen.DeliveryObserved("s", 1, ("p-h", 1, 1), ("h", 1, 2), 4.0),
    ]
    assert audit_journal([*subscribe(), *swapped, *stream]).violated == {"I3": 1}


def test_a_new_incarnation_may_have_it_again():
    again = [
        seen.IncarnationEndObserved("s", 1, 16.0),
        seen.SubscriptionObserved("s", 2, 7, ANY, 16.5),
        seen.AcknowledgementObserved("s", 2, [7], "h", [], 17.0),
        have(5, 18.0, incarnation=2),
    ]
    assert audit_journal([*subscribe(), *FIVE, *LATE, *again]).ok


def test_the_undisturbed_have_each_delivery_in_time():
    claim = seen.LatencyClaim(0.0, 100.0, 9.6, ["frozen"])
    verdict = audit_journal([*subscribe(), *FIVE, *LATE, claim])
    assert verdict.ok
    assert verdict.undisturbed == 5
    strict = seen.LatencyClaim(0.0, 100.0, 8.0, ["frozen"])
    assert audit_journal([*subscribe(), *FIVE, *LATE, strict]).violated == {"I7": 5}
    assert audit_journal([*subscribe(), *FIVE, *LATE, seen.LatencyClaim(0.0, 100.0, 8.0, ["s"])]).ok
    assert audit_journal([*subscribe(), *FIVE, *LATE, seen.LatencyClaim(0.0, 100.0, 8.0, ["p-h"])]).ok
    assert audit_journal([*subscribe(), *FIVE, *LATE, seen.LatencyClaim(50.0, 100.0, 8.0, [])]).ok


def test_a_gap_is_no_way_to_leave_the_undisturbed_alone():
    told = [have(1, 2.2), gap(2, 5, 11.5)]
    assert audit_journal([*subscribe(), *FIVE, *told, seen.LatencyClaim(0.0, 100.0, 9.6, [])]).violated == {"I7": 4}


def placed(name: str, seq: int, position: int, at: float) -> seen.DeliveryObserved:
    return seen.DeliveryObserved(name, 1, ("p-h", 1, seq), ("h", 1, seq), at, ("h", 1, position))


def test_without_logs_the_places_of_others_deliveries_decide():
    bare = [one for one in FIVE if not isinstance(one, seen.LogEntryObserved)]
    other = [placed("t", seq, 10 + seq, 10.0 + seq) for seq in range(1, 6)]
    both = [
        seen.SubscriptionObserved("t", 1, 1, ANY, 0.5),
        seen.AcknowledgementObserved("t", 1, [1], "h", [], 1.0),
        *other,
    ]
    mine = [placed("s", seq, 10 + seq, 10.0 + seq) for seq in (1, 4, 5)]
    told = seen.GapObserved("s", 1, "h", 1, 12, 1, 13, [], "blocked", 11.5)
    verdict = audit_journal([*subscribe(), *bare, *both, mine[0], told, *mine[1:]])
    assert verdict.ok, str(verdict)
    assert verdict.excused == 2
    told = seen.GapObserved("s", 1, "h", 1, 12, 1, 12, [], "blocked", 11.5)
    assert audit_journal([*subscribe(), *bare, *both, mine[0], told, *mine[1:]]).violated == {"I1": 1}


def test_an_undelivered_publication_may_lie_in_a_gap_between_its_publishers_others():
    bare = [one for one in FIVE if not isinstance(one, seen.LogEntryObserved)]
    mine = [placed("s", seq, 10 + seq, 10.0 + seq) for seq in (1, 4, 5)]
    told = seen.GapObserved("s", 1, "h", 1, 12, 1, 13, [], "blocked", 11.5)
    verdict = audit_journal([*subscribe(), *bare, mine[0], told, *mine[1:]])
    assert verdict.ok, str(verdict)
    assert verdict.uncertain == 2, "the journal does not say"
    elsewhere = seen.GapObserved("s", 1, "h", 1, 15, 1, 18, [], "blocked", 20.5)
    assert audit_journal([*subscribe(), *bare, *mine, elsewhere]).violated["I1"] == 2
