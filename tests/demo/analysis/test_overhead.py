"""Which messages are overhead, and how counts of parties that come and go add up over time."""

from collections import Counter

import pytest

from plimsoll.core.protocol import messages
from plimsoll.demo.analysis import overhead
from plimsoll.demo.analysis.overhead import MessageLedger


def report(role="edge", **counters):
    return {"broker": "b1", "role": role, "counters": counters}


def test_an_edge_counts_what_it_says_and_what_comes_and_goes():
    found = overhead.message_counts(
        report(said_LoadUpdate=3, said_End=2, heard_PeerLoads=9, arrivals=10, deliveries=70, gaps_in=1)
    )
    assert +found == Counter(LoadUpdate=3, End=2, Publication=10, Delivery=70)


def test_what_mediators_say_is_counted_where_it_comes_in_and_nowhere_else():
    """A head passes it on to an edge: that is another message, sent by the head."""
    said = {"heard_Reservation": 4, "said_Reservation": 4, "heard_Command": 1, "heard_LoadUpdate": 8, "deliveries": 99}
    assert +overhead.message_counts(report("head", **said)) == Counter(Reservation=8, Command=1)
    assert +overhead.message_counts(report("edge", heard_Reservation=4)) == Counter()


def test_kinds_are_those_of_the_protocol():
    kinds = overhead.LOAD_REPORTS | overhead.SESSIONS | overhead.REDIRECTS | overhead.RESUBSCRIPTIONS | overhead.JOINS
    kinds |= overhead.ACKNOWLEDGEMENTS - {"Ack"}
    assert [kind for kind in kinds if not hasattr(messages, kind)] == []


def test_no_kind_is_counted_twice():
    sets = (overhead.LOAD_REPORTS, overhead.SESSIONS, overhead.REDIRECTS, overhead.RESUBSCRIPTIONS, overhead.JOINS,
            overhead.ACKNOWLEDGEMENTS)  # fmt: skip
    assert sum(map(len, sets)) == len(frozenset().union(*sets))


def test_the_first_of_each_newcomer_is_no_overhead_and_what_is_more_is():
    """Ten have joined; two of them have subscribed again elsewhere, and one more is still under way."""
    found = overhead.counts_by_category(
        {"Newcomer": 10, "Join": 9, "Resume": 12, "Resumed": 12, "Attach": 3, "MoveTo": 3}
    )
    assert found["subscriptions"] == 9 + 10 + 10
    assert found["resubscriptions"] == 2 + 2 + 3
    assert found["redirects"] == 3


def test_what_is_read_again_from_the_log_is_payload_and_told_apart():
    found = overhead.counts_by_category({"Replay": 5, "Fetch": 1, "Delivery": 70})
    assert (found["payload"], found["replayed"], found["sessions"]) == (75, 5, 1)


def test_the_ratio_leaves_acknowledgements_out():
    counts = {"load_reports": 1, "sessions": 1, "redirects": 1, "resubscriptions": 1, "payload": 90,
              "subscriptions": 6, "acknowledgements": 1000}  # fmt: skip
    assert overhead.overhead_ratio(counts) == pytest.approx(0.04)
    assert overhead.overhead_ratio({}) is None


def test_windows_add_up():
    ledger = MessageLedger()
    for second in range(11):
        ledger.take("b1", Counter(LoadUpdate=second, Delivery=100 * second), float(second))
    assert overhead.counts_between(ledger, (2.0, 4.0), (8.0, 9.0))["load_reports"] == 3
    assert overhead.counts_between(ledger, (2.0, 4.0))["payload"] == 200
    assert overhead.counts_between(ledger, (20.0, 30.0))["payload"] == 0


def test_a_restarted_party_continues_from_its_last_count():
    ledger = MessageLedger()
    ledger.take("b1", Counter(LoadUpdate=5), 1.0, life=7)
    ledger.take("b2", Counter(LoadUpdate=1), 1.0)
    ledger.take("b1", Counter(LoadUpdate=2), 2.0, life=8)
    assert [ledger.total(at)["LoadUpdate"] for at in (0.5, 1.5, 2.5)] == [0, 6, 8]


def test_what_is_said_to_the_watcher_of_a_run_does_not_count():
    ledger = MessageLedger()
    ledger.take("h", Counter(LoadUpdate=30, Delivery=100), 10.0)
    ledger.watch({"LoadUpdate": 4, "StatusReply": 2}, 5.0)
    ledger.watch({"LoadUpdate": 10}, 10.0)
    assert ledger.total(9.0)["LoadUpdate"] == -4
    assert ledger.summed(10.0)["load_reports"] == 20
