"""Claims to names: who wins, what is told on, what is forgotten, and how much is kept of whom."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plimsoll.core import name_claims
from plimsoll.core.name_claims import CLAIMS_OF_IDENTITY_AT_MOST, ClaimTable, in_records
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

LEASE = 30.0


def table(**options: Any) -> ClaimTable:
    return ClaimTable(LEASE, lambda now: now + 1000.0, **options)


def said(identity: str, since: int = 5, age: float = 0.0, name: str = "p") -> msg.NameClaim:
    return msg.NameClaim(name, identity, since, int(age * 1000))


def test_since_is_the_time_of_the_first_use_and_stays_it():
    claims = table()
    assert claims.since("p", "ann", 2.0) == 1_002_000
    claims.use("p", "ann", 1_002_000, 2.0)
    assert claims.since("p", "ann", 50.0) == 1_002_000
    assert claims.since("p", "bob", 50.0) == 1_050_000
    assert claims.whose("p") == "ann"
    assert claims.whose("q") == ""


def test_a_clock_before_1970_or_far_ahead_makes_a_time_that_can_be_sent():
    assert ClaimTable(LEASE, lambda now: -5.0).since("p", "ann", 0.0) == 0
    assert ClaimTable(LEASE, lambda now: 1e300).since("p", "ann", 0.0) == wire.COUNT_AT_MOST


def test_of_two_identities_the_one_that_had_the_name_first_wins():
    claims = table()
    assert claims.hear(said("bob", 7), "k", 0.0) == "bob"
    assert claims.hear(said("cid", 8), "k", 0.0) == "bob"
    assert claims.hear(said("ann", 6), "k", 0.0) == "ann"
    assert claims.hear(said("bob", 7), "k", 0.0) == "ann"


def test_of_the_same_time_the_first_name_wins_whatever_the_order():
    for order in (("ann", "bob"), ("bob", "ann")):
        claims = table()
        assert [claims.hear(said(identity), "k", 0.0) for identity in order][-1] == "ann"


def test_a_claim_that_has_not_been_used_for_ten_leases_yields_and_after_two_more_it_is_forgotten():
    claims = table()
    claims.use("p", "ann", 5, 0.0)
    claims.expire(9.9 * LEASE)
    assert claims.hear(said("bob", 9), "k", 9.9 * LEASE) == "ann"
    claims.expire(11.5 * LEASE)
    assert claims.whose("p") == "ann"
    assert claims.hear(said("bob", 9), "k", 11.5 * LEASE) == "bob"
    claims.expire(23.6 * LEASE)
    assert claims.whose("p") == ""


def test_a_claim_that_comes_late_is_not_taken_for_a_new_one():
    claims = table()
    assert claims.hear(said("ann", 5, 12.5 * LEASE), "k", 0.0) == ""
    claims.use("p", "bob", 9, 0.0)
    assert claims.hear(said("ann", 5, 11 * LEASE), "k", 0.0) == "bob"


def test_only_news_is_told_on_and_not_to_where_it_came_from():
    claims = table()
    claims.hear(said("ann"), "k", 0.0)
    assert claims.take_news(2.0) == [("k", said("ann", age=2.0))]
    claims.hear(said("ann", age=1.0), "m", 2.0)
    assert claims.take_news(2.0) == []
    claims.hear(said("ann"), "m", 0.6 * LEASE)
    assert claims.take_news(0.6 * LEASE) == [("m", said("ann"))]
    claims.hear(said("ann", 3), "k", 0.6 * LEASE)
    assert claims.take_news(0.6 * LEASE) == [("k", said("ann", 3))]
    claims.hear(said("bob", 9), "k", 0.6 * LEASE)
    assert claims.take_news(0.6 * LEASE) == []


def test_what_came_from_several_goes_to_all():
    claims = table()
    claims.hear(said("bob", 9), "k", 0.0)
    claims.hear(said("ann", 5), "m", 0.0)
    assert claims.take_news(0.0) == [("", said("ann"))]


def test_no_identity_fills_the_table():
    claims = table(most=5, most_of_identity=3)
    for number in range(10):
        claims.use(f"p{number}", "mallory", 1, 0.0)
    claims.use("q", "ann", 2, 0.0)
    claims.use("r", "ann", 2, 0.0)
    claims.use("s", "bob", 2, 0.0)
    assert (len(claims), claims.dropped) == (5, 8)
    assert claims.whose("q") == "ann"
    claims.expire(12.5 * LEASE)
    claims.use("s", "mallory", 2, 12.5 * LEASE)
    assert len(claims) == 1


def over(identity: str, since: int, age: float = 0.0, name: str = "p") -> msg.NameClaim:
    return msg.NameClaim(name, identity, since, int(age * 1000), is_over=True)


def test_a_claim_that_is_over_is_forgotten_and_what_comes_late_does_not_revive_it():
    claims = table()
    claims.hear(said("ann", 5), "k", 0.0)
    claims.take_news(0.0)
    claims.end("p", "ann", 0, 1.0)
    assert claims.whose("p") == ""
    assert claims.take_news(1.0) == [("", over("ann", 5))]
    assert claims.hear(said("ann", 5), "k", 2.0) == ""
    assert claims.take_news(2.0) == []
    assert list(claims.all(3.0)) == [over("ann", 5, 2.0)]
    assert claims.hear(said("bob", 3), "k", 3.0) == "bob"
    claims.expire(12.9 * LEASE)
    assert claims.hear(said("ann", 5, 12.5 * LEASE), "k", 12.9 * LEASE) != "ann"


def test_who_goes_on_has_a_later_time_than_what_is_over_and_an_earlier_one_than_all_others():
    claims = table()
    claims.use("p", "ann", 5, 0.0)
    claims.hear(over("ann", 5), "k", 1.0)
    assert claims.since("p", "ann", 1.0, known=5) == 6
    assert claims.use("p", "ann", 6, 1.0) == "ann"
    assert claims.take_news(1.0) == [("k", over("ann", 5)), ("", said("ann", 6))]
    assert claims.hear(said("eve", 7), "k", 1.0) == "ann"
    claims.hear(over("ann", 4), "k", 1.0)
    assert claims.whose("p") == "ann", "an earlier claim of it was over"


def test_a_clock_that_was_set_back_makes_no_claim_that_is_over_already():
    claims = table()
    claims.hear(over("ann", 2_000_000), "k", 0.0)
    assert claims.since("p", "ann", 0.0) == 2_000_001
    claims.hear(over("ann", wire.COUNT_AT_MOST), "k", 0.0)
    assert claims.since("p", "ann", 0.0) == wire.COUNT_AT_MOST


def test_a_name_that_is_over_is_reserved_but_for_who_has_it_elsewhere():
    claims = table(reserve_seconds=2.0)
    claims.use("p", "ann", 5, 0.0)
    claims.end("p", "ann", 5, 1.0)
    claims.expire(2.9)
    assert claims.whose("p") == "ann"
    assert claims.since("p", "ann", 2.9) == 6
    assert [each for _, each in claims.take_news(2.9)] == list(claims.all(2.9)) == [over("ann", 5, 1.9)]
    claims.expire(3.0)
    assert claims.whose("p") == ""
    claims.use("q", "ann", 5, 4.0)
    claims.end("q", "ann", 5, 4.0)
    assert claims.hear(said("bob", 9, name="q"), "k", 4.0) == "bob"
    claims.expire(9.0)
    assert claims.whose("q") == "bob"


def test_ends_are_bounded_and_passed_on_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(name_claims, "ENDS_AT_MOST", 3)
    claims = table()
    for number in range(5):
        claims.hear(over("ann", 5, name=f"p{number}"), "k", 0.0)
    assert [(source, claim.name) for source, claim in claims.take_news(0.0)] == [("k", f"p{n}") for n in (2, 3, 4)]
    claims.hear(over("ann", 5, name="p4"), "m", 0.0)
    assert not claims.has_news
    claims.hear(over("ann", 5, 12.5 * LEASE, name="p5"), "m", 0.0)
    assert not claims.has_news


def test_claims_of_both_kinds_have_records_of_their_own():
    records = list(in_records([said("ann")] * 257, [said("bob")] * 300))
    assert [(len(each.publishers), len(each.subscribers)) for each in records] == [(256, 0), (1, 0), (0, 256), (0, 44)]


def test_the_share_of_an_identity_is_a_part_of_the_whole():
    assert table().most > CLAIMS_OF_IDENTITY_AT_MOST * 4


def test_all_is_told_in_records_that_a_frame_has_room_for():
    claims = table()
    for number in range(600):
        claims.use(f"p{number}" + "\U0001f600" * 200, "\U0001f600" * 253, 1, 0.0)
    records = list(in_records(claims.all(0.0)))
    assert [len(record.publishers) for record in records] == [256, 256, 88]
    assert max(len(wire.encode(record)) for record in records) < 600_000


def settle(tables: dict[str, ClaimTable], draw: random.Random) -> None:
    """Let tables tell each other all news."""
    while any(each.has_news for each in tables.values()):
        source = draw.choice([name for name, each in tables.items() if each.has_news])
        for _, claim in tables[source].take_news(0.0):
            for other in tables.keys() - {source}:
                tables[other].hear(claim, source, 0.0)


def test_tables_that_tell_each_other_come_to_know_the_same():
    for seed in range(50):
        draw = random.Random(seed)
        tables = {name: table() for name in "abc"}
        for _ in range(12):
            claim = said(draw.choice(["ann", "bob", "cid"]), draw.randrange(9), draw.choice([0.0, 40.0]), "p")
            tables[draw.choice("abc")].hear(claim, "", 0.0)
        settle(tables, draw)
        known = {(each.by_name["p"].identity, each.by_name["p"].since) for each in tables.values()}
        assert len(known) == 1, f"seed {seed}: {known}"


def test_tables_that_tell_each_other_come_to_know_what_is_over_and_keep_nothing_of_it():
    for seed in range(50):
        draw = random.Random(seed)
        tables = {name: table() for name in "abc"}
        for _ in range(12):
            made = draw.choice([said, over])
            claim = made(draw.choice(["ann", "bob", "cid"]), draw.randrange(1, 9), draw.choice([0.0, 40.0]), "p")
            tables[draw.choice("abc")].hear(claim, "", 0.0)
        settle(tables, draw)
        ends = [{c.identity: c.since for c in each.all(0.0) if c.is_over} for each in tables.values()]
        assert ends[0] == ends[1] == ends[2], f"seed {seed}: {ends}"
        for each in tables.values():
            kept = [claim for claim in each.all(0.0) if not claim.is_over]
            assert all(claim.since > ends[0].get(claim.identity, 0) for claim in kept), f"seed {seed}: {kept}, {ends}"
