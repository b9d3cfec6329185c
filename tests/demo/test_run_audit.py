"""The audit of journals: a missing, repeated or reordered delivery fails the run, and the message names it."""

import re

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournalError
from plimsoll.demo.run_audit import audit_run

HEAD = "quotes-head"


def test_all_delivered_once_and_in_order_passes(judged):
    judgement = judged([1, 2, 3, 4], counter=4)
    assert judgement.passed, judgement.problems
    assert (judgement.verdict.published, judgement.verdict.expected, judgement.verdict.delivered) == (4, 4, 4)


def test_delays_are_from_call_to_hand_over_by_edge(judged):
    delays = judged([1, 2, 3, 4]).delays
    assert delays.edges == ["b1"]
    assert delays.summary() == {"count": 4, "p50": 0.25, "p99": 0.25, "max": 0.25}
    assert delays.series("b1")["seconds"] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("delivered", "word", "law"),
    [([1, 2, 4], "lost", "I1"), ([1, 2, 2, 3, 4], "duplicated", "I2"), ([1, 3, 2, 4], "reordered", "I3")],
)
def test_a_fault_fails_and_is_named(judged, delivered, word, law):
    judgement = judged(delivered)
    assert not judgement.passed
    assert judgement.problems == [f"1 deliveries were {word}"]
    assert re.match(rf"{law} at \d\.\d\d\d s, subscriber s/1: p/5/\d ", judgement.cases[0])


def test_what_was_refused_need_not_come(judged):
    assert judged([1, 2], accepted=2).passed


def test_what_lies_in_a_gap_that_was_told_is_not_lost(judged):
    gap = seen.GapObserved("s", 1, HEAD, 9, 4, 9, 4, [(HEAD, 9, 4)], "log", 20.0)
    judgement = judged([1, 2, 3], extra=[gap])
    assert judgement.passed, judgement.problems
    assert (judgement.verdict.gaps, judgement.verdict.excused) == (1, 1)


def test_a_counter_of_the_product_that_is_not_true_fails(judged):
    judgement = judged([1, 2, 3, 4], counter=5)
    assert judgement.problems == ["law I8 was broken 1 times"]
    assert "says 5 delivered, 4 were seen" in judgement.cases[0]


def test_the_death_of_a_broker_fails_a_run_in_which_nothing_was_lost(judged):
    assert judged([1, 2, 3, 4], faults=["b1: was ended by SIGKILL"]).problems == ["b1: was ended by SIGKILL"]


def test_a_run_in_which_nothing_had_to_come_shows_nothing(judged):
    assert judged([], accepted=0).problems == ["nothing had to be delivered, so nothing was shown"]


def test_a_damaged_journal_is_no_ground_for_a_judgement(judged, tmp_path):
    judged([1, 2, 3, 4])
    path = tmp_path / "subscribing"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DeliveryJournalError):
        audit_run([tmp_path / "publishing"], [path], 10.0)


def test_what_was_still_under_way_when_a_run_was_given_up_is_not_judged(judged):
    """If nothing relieves an overloaded broker, its queue outlives the run; earlier deliveries are judged."""
    assert judged([1, 2], every=5.0).verdict.lost == 2
    assert judged([1, 2], every=5.0, settled=2).passed
    assert judged([2, 3], every=5.0, settled=3).verdict.lost == 1
