"""What an edge tells its head of subscribers that want to stay away for long: ahead of what makes it count."""

from __future__ import annotations

from typing import Any

from tests.core.fleet import STOCK, Client, Fleet, Publishing, one_cluster, resume

from plimsoll.core.protocol import messages as msg

LEASE = 3600.0


def watched(fleet: Fleet) -> list[Any]:
    """What `h` is told of places and covers, in order."""
    said: list[Any] = []
    head = fleet.head()
    kinds = (msg.KeepPlace, msg.PlaceLeft, msg.ResumeUp, msg.Cover, msg.Expire)
    for kind in kinds:
        handler = head.handlers.of_brokers[kind]

        def note(outbox: Any, record: Any, handler: Any = handler) -> None:
            said.append(record)
            handler(outbox, record)

        head.handlers.of_brokers[kind] = note
    return said


def attach(fleet: Fleet, *texts: str) -> Client:
    client = fleet.client("c", "h", "e1")
    asked = resume(1, "s", *texts, n=2)
    client.tell("e1", msg.Resume(1, "s", asked.epoch, 1, asked.subscriptions, asked.policy, None, [], None, LEASE))
    fleet.run(1.0)
    return client


def test_a_list_goes_ahead_of_what_makes_it_count():
    fleet = one_cluster()
    said = watched(fleet)
    client = attach(fleet)
    client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[k,=,1]")], [1]))
    fleet.run(1.0)
    kinds = [type(record) for record in said]
    assert kinds == [msg.KeepPlace, msg.ResumeUp, msg.KeepPlace, msg.Cover]
    assert [record.texts for record in said if isinstance(record, msg.KeepPlace)] == [[STOCK], ["[k,=,1]"]]


def test_a_long_list_goes_in_parts():
    fleet = one_cluster()
    said = watched(fleet)
    texts = [f"[k{i},=,'{'x' * 3_000}']" for i in range(100)]
    attach(fleet, *texts)
    parts = [record for record in said if isinstance(record, msg.KeepPlace)]
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
    assert len(parts) > 1
    assert sorted(fleet.head().durable_places.kept["s"].texts) == sorted(texts)


def test_one_that_goes_away_is_told_with_the_place_that_it_had():
    fleet = one_cluster()
    said = watched(fleet)
    client = attach(fleet)
    Publishing(client, "h").publish(4)
    fleet.run(1.0)
    client.tell("e1", msg.Detach([1], False))
    fleet.run(1.0)
    assert [(each.subscriber, each.epoch, each.position) for each in said if isinstance(each, msg.PlaceLeft)] == [
        ("s", (1, 2), 4)
    ]


def test_one_without_a_lease_of_its_own_is_not_told():
    fleet = one_cluster()
    said = watched(fleet)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s", n=2))
    fleet.run(1.0)
    client.tell("e1", msg.Detach([1], False))
    fleet.run(1.0)
    assert not [each for each in said if isinstance(each, msg.KeepPlace | msg.PlaceLeft)]
