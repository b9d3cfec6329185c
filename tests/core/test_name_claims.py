"""Claims to names: who wins, what is told on, what is forgotten, and how much is kept of whom."""

from __future__ import annotations

import random

from plimsoll.core.name_claims import CLAIMS_OF_IDENTITY_AT_MOST, ClaimTable, in_records
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

LEASE = 30.0


def table(**options: int) -> ClaimTable:
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


def test_the_share_of_an_identity_is_a_part_of_the_whole():
    assert table().most > CLAIMS_OF_IDENTITY_AT_MOST * 4


def test_all_is_told_in_records_that_a_frame_has_room_for():
    claims = table()
    for number in range(600):
        claims.use(f"p{number}" + "\U0001f600" * 200, "\U0001f600" * 253, 1, 0.0)
    records = list(in_records(claims.all(0.0)))
    assert [len(record.publishers) for record in records] == [256, 256, 88]
    assert max(len(wire.encode(record)) for record in records) < 600_000


def test_tables_that_tell_each_other_come_to_know_the_same():
    for seed in range(50):
        draw = random.Random(seed)
        tables = {name: table() for name in "abc"}
        for _ in range(12):
            claim = said(draw.choice(["ann", "bob", "cid"]), draw.randrange(9), draw.choice([0.0, 40.0]), "p")
            tables[draw.choice("abc")].hear(claim, "", 0.0)
        while any(each.has_news for each in tables.values()):
            source = draw.choice([name for name, each in tables.items() if each.has_news])
            for _, claim in tables[source].take_news(0.0):
                for other in tables.keys() - {source}:
                    tables[other].hear(claim, source, 0.0)
        known = {(each.by_name["p"].identity, each.by_name["p"].since) for each in tables.values()}
        assert len(known) == 1, f"seed {seed}: {known}"
