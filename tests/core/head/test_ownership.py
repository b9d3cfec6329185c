"""Owners: one per subscriber and epoch, compare and swap, and where a token goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.head import ownership as module
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable, replay_start


def log_of(count: int, first: int = 1) -> Log:
    log = Log(10**9)
    for i in range(1, count + 1):
        log.append(LogEntry(b"x", ((("h", 5), i),), False))
    while log.first < first:
        log._evict()
    return log


def test_a_swap_keeps_since_and_a_new_entry_begins_now():
    owners = OwnershipTable()
    assert owners.newest("s") == (0, 0)
    assert owners.swap("s", "e1#1", (1, 2), (5, 10)) is None
    assert owners.entries["s"] == OwnerEntry("e1#1", (1, 2), (5, 10))
    old = owners.swap("s", "e2#1", (1, 4), (5, 90))
    assert old == OwnerEntry("e1#1", (1, 2), (5, 10))
    assert owners.entries["s"].since == (5, 10)
    assert owners.newest("s") == (1, 4)
    assert owners.of("e2#1") == ["s"]
    assert owners.keys() == {"e2#1"}


def test_a_forgotten_entry_leaves_its_epoch():
    owners = OwnershipTable()
    owners.swap("s", "e1#1", (1, 6), (5, 10))
    owners.forget("s")
    assert owners.entries == {}
    assert owners.newest("s") == (1, 6)
    assert owners.swap("s", "e2#1", (2, 1), (5, 40)) is None
    assert owners.entries["s"].since == (5, 40), "what lies between had no cover"


def test_a_subscriber_that_resumes_where_its_new_cover_begins_has_lapsed():
    owners = OwnershipTable()
    owners.swap("new", "e1#1", (1, 2), (5, 10))
    owners.swap("back", "e1#1", (1, 2), (5, 10), True)
    owners.swap("back", "e2#1", (1, 4), (5, 11), False)
    tokens = [("h", 5, 10), ("h", 5, 11), ("k", 5, 10), ("h", 4, 10), None]
    assert [owners.entries["back"].has_lapsed("h", token) for token in tokens] == [True, *[False] * 4]
    assert not any(owners.entries["new"].has_lapsed("h", token) for token in tokens)


def test_epochs_of_the_past_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED_EPOCHS", 10)
    owners = OwnershipTable()
    for i in range(30):
        owners.swap(f"s{i}", "e", (1, 1), (0, 0))
        owners.forget(f"s{i}")
    assert owners.newest("s29") == (1, 1)
    assert owners.newest("s0") == (0, 0)
    assert len(owners._past) == 10


@given(st.permutations([("e1#1", (1, 2)), ("e2#1", (1, 4)), ("e3#1", (2, 0))]))
def test_in_any_order_of_reports_the_highest_epoch_owns(reports: list[tuple[str, tuple[int, int]]]):
    owners, losers = OwnershipTable(), set()
    for key, epoch in reports:
        loser = owners.adopt("s", OwnerEntry(key, epoch, (5, 1)))
        if loser is not None:
            losers.add(loser.key)
    assert owners.entries["s"].key == "e3#1"
    assert losers == {"e1#1", "e2#1"}


def test_a_report_said_twice_has_no_loser():
    owners = OwnershipTable()
    assert owners.adopt("s", OwnerEntry("e1#1", (1, 2), (5, 1))) is None
    assert owners.adopt("s", OwnerEntry("e1#1", (1, 2), (5, 1))) is None


# -- tokens


def test_without_a_token_it_goes_on_from_now():
    assert replay_start(None, (5, 3), "h", 5, log_of(20)) == (20, None, False)


@pytest.mark.parametrize("at", [10, 15, 20])
def test_a_token_in_the_log_is_exact(at: int):
    assert replay_start(("h", 5, at), (5, 3), "h", 5, log_of(20, first=11)) == (at, None, False)


def test_a_token_older_than_the_log_is_a_gap_up_to_its_first_entry():
    start, gap, lapsed = replay_start(("h", 5, 4), (5, 3), "h", 5, log_of(20, first=11))
    assert (start, lapsed) == (10, False)
    assert gap is not None
    assert (gap.low_epoch, gap.low, gap.epoch, gap.high, gap.reason) == (5, 5, 5, 10, "log")
    assert gap.last == [("h", 5, 10)]


def test_a_token_before_its_cover_has_lapsed():
    start, gap, lapsed = replay_start(("h", 5, 4), (5, 12), "h", 5, log_of(20))
    assert (start, lapsed) == (12, True)
    assert gap is not None
    assert (gap.low, gap.high, gap.reason) == (5, 12, "lapsed")


def test_a_token_of_an_older_epoch_is_in_doubt_from_there_to_here():
    start, gap, lapsed = replay_start(("h", 4, 70), (4, 3), "h", 5, log_of(20))
    assert (start, lapsed) == (0, False)
    assert gap is not None
    assert (gap.low_epoch, gap.low, gap.epoch, gap.high, gap.reason) == (4, 71, 5, 0, "restart")


def test_a_token_of_another_head_says_nothing_here():
    start, gap, lapsed = replay_start(("k", 9, 70), (5, 20), "h", 5, log_of(20))
    assert (start, lapsed) == (20, True)
    assert gap is not None
    assert (gap.low_epoch, gap.low, gap.reason) == (0, 0, "elsewhere")


def test_a_token_beyond_the_end_of_the_log_is_none_of_this_log():
    start, gap, lapsed = replay_start(("h", 5, 21), (5, 3), "h", 5, log_of(20, first=11))
    assert (start, lapsed) == (20, False)
    assert gap is not None
    assert (gap.low_epoch, gap.low, gap.epoch, gap.high, gap.reason) == (0, 0, 5, 20, "elsewhere")


tokens = st.none() | st.tuples(st.sampled_from(["h", "k"]), st.integers(3, 6), st.integers(0, 30))


@given(tokens, st.tuples(st.integers(3, 5), st.integers(0, 20)), st.integers(1, 20), st.integers(0, 20))
def test_what_is_neither_replayed_nor_seen_lies_inside_the_gap(
    token: tuple[str, int, int] | None, since: tuple[int, int], first: int, count: int
):
    log = log_of(count, min(first, count + 1) if count else 1)
    since = min(since, (5, log.last))
    start, gap, lapsed = replay_start(token, since, "h", 5, log)
    assert 0 <= start <= log.last
    assert start + 1 >= log.first, "entries outside the log cannot be replayed"
    assert not lapsed or gap is not None
    if gap is not None:
        assert gap.high == start
        assert gap.epoch == 5
    if token is not None and gap is None:
        assert start == token[2]


def test_what_is_taken_and_what_has_ended_is_told_once():
    owners = OwnershipTable()
    owners.swap("s", "e1#1", (1, 1), (1, 0), identity="ann")
    owners.swap("s", "e2#1", (1, 2), (1, 0), identity="ann")
    owners.claimed("s", 7)
    owners.adopt("s", OwnerEntry("e1#2", (1, 3), (1, 0), False, "ann"))
    assert owners.entries["s"].claimed == 7
    assert (owners.has_names, owners.take_taken(), owners.has_names) == (True, ["s"], False)
    owners.forget("s")
    assert owners.take_ended() == {}
    owners.swap("s", "e1#1", (1, 4), (1, 0), identity="bob")
    owners.forget("s", ends_name=True)
    assert {name: gone.identity for name, gone in owners.take_ended().items()} == {"s": "bob"}
    assert owners.take_taken() == ["s"]
