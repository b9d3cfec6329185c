"""Turns between identities: each has its share, a flood waits in bounds and is lost to its sender alone."""

from __future__ import annotations

from collections import Counter

import pytest

from plimsoll.feeds.serving.turns import BURST, RequestTurns, WaitingRequest


def request(name: str, peer: int = 0) -> WaitingRequest:
    return WaitingRequest(b"%d" % peer, name, b"")


def test_requests_of_one_identity_come_in_their_order():
    turns = RequestTurns()
    for peer in range(5):
        assert turns.add("ann", request("ann", peer))
    assert [turns.take(0.0) for _ in range(6)] == [*(request("ann", peer) for peer in range(5)), None]


def test_identities_have_turns_however_much_one_of_them_asks():
    turns = RequestTurns(waiting=10)
    taken: Counter[str] = Counter()
    for step in range(300):
        for peer in range(20):
            turns.add("eve", request("eve", peer))
        for name in ("ann", "bob"):
            turns.add(name, request(name))
        for _ in range(3):
            found = turns.take(step / 10)
            assert found is not None
            taken[found.key] += 1
    assert taken == {"ann": 300, "bob": 300, "eve": 300}
    assert turns.dropped == 300 * 20 - 300 - 9, "what does not wait is lost, of the one that floods"


def test_the_rate_of_an_identity_is_bounded_and_holds_up_no_other():
    turns = RequestTurns(rate=100.0, waiting=10_000)
    for peer in range(5000):
        turns.add("eve", request("eve", peer))
    now, taken = 0.0, 0
    while turns.take(now) is not None:
        taken += 1
    assert taken == BURST
    assert turns.wait_seconds(now) == pytest.approx(0.01)
    turns.add("ann", request("ann"))
    assert turns.wait_seconds(now) == 0.0
    assert turns.take(now) == request("ann")
    now = 1.0
    while turns.take(now) is not None:
        taken += 1
    assert taken == pytest.approx(BURST + 100, abs=1)


def test_nothing_waits_where_nothing_was_asked():
    turns = RequestTurns()
    assert turns.take(0.0) is None
    assert turns.wait_seconds(0.0) is None


def test_what_is_remembered_of_identities_is_bounded():
    turns = RequestTurns()
    for number in range(3000):
        turns.add(f"i{number}", request(f"i{number}"))
        assert turns.take(float(number)) == request(f"i{number}")
    assert len(turns._buckets) <= 1024
    assert not turns._of
