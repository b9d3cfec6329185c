"""Whose name it is, with real brokers and keys: others get a refusal in words, and the owner notices nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import zmq
from tests.client.conftest import STARTED_SECONDS, Fleet

from plimsoll.client import Connection, Curve, Delivery, Publisher, Subscriber, errors

STOCK = "[class,=,'STOCK']"
FOREIGN = "not permitted: {} belongs to another identity; "


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    made = Fleet(tmp_path_factory.mktemp("names"), curve=True)
    lines = []
    for name, more in (("ann", "names=desk-"), ("eve", "")):
        public, secret = zmq.curve_keypair()
        (made.folder / f"{name}.key").write_bytes(secret)
        lines.append(f"{public.decode()} client {name} {more}".strip())
    path = made.folder / "authorized"
    path.write_text(path.read_text() + "\n".join(lines) + "\n")
    yield made
    made.close()


def connect(fleet: Fleet, key: str, name: str = "") -> Connection:
    security = Curve(secret=fleet.folder / f"{key}.key", server=fleet.folder / "head.pub")
    connection = Connection(fleet.head, security=security, name=name or key)
    connection.wait_open(STARTED_SECONDS)
    return connection


def publisher_of(subscriber: Subscriber) -> str:
    """Of the next delivery."""
    item = subscriber.receive(300)
    assert isinstance(item, Delivery)
    return item.publisher


def test_names_of_subscribers_and_publishers_are_their_makers(fleet: Fleet):
    with connect(fleet, "ann") as ann, connect(fleet, "eve") as eve:
        owner, feed = Subscriber(ann, name="x"), Publisher(ann, name="feed")
        owner.subscribe(STOCK)
        with pytest.raises(errors.FailedError, match=FOREIGN.format("subscriber 'x'")) as refused:
            Subscriber(eve, name="x").subscribe(STOCK)
        assert refused.value.code == "role"
        with pytest.raises(errors.NotAcceptedError, match=FOREIGN.format("publisher 'feed'")) as unheard:
            Publisher(eve, name="feed").publish({"class": "STOCK"}).wait(300)
        assert [answer.code for answer in unheard.value.answers] == ["role"]
        feed.publish({"class": "STOCK"}).wait(300)
        assert publisher_of(owner) == "feed"
        with pytest.raises(errors.FailedError, match="belongs to another identity"):
            Subscriber(eve, name="desk-1").subscribe(STOCK)
        Subscriber(ann, name="desk-1").subscribe(STOCK)


def test_a_client_for_any_name_is_no_broker(fleet: Fleet, eventually: Callable[..., None]):
    with connect(fleet, "ann") as ann:
        subscriber = Subscriber(ann, name="y")
        subscriber.subscribe(STOCK)
        intruder = Connection(fleet.head, security=fleet.curve(), name="e1")

        def refused() -> bool:
            with pytest.raises(errors.WaitTimeoutError) as found:
                intruder.wait_open(0.5)
            return "'e1' is the name of a broker" in str(found.value)

        eventually(refused)
        intruder.close(0.0)
        with Publisher(ann, name="more") as publisher:
            publisher.publish({"class": "STOCK"})
        assert publisher_of(subscriber) == "more"
        assert subscriber.statistics()["reconnects"] == 0


def test_connections_without_a_name_share_the_identity_of_their_key(fleet: Fleet):
    """As the tool and the examples have them; each process has one, and none ends the link of another."""
    security = Curve(secret=fleet.folder / "ann.key", server=fleet.folder / "head.pub")
    with Connection(fleet.head, security=security) as one, Connection(fleet.head, security=security) as other:
        for connection in (one, other):
            connection.wait_open(STARTED_SECONDS)
        subscriber = Subscriber(one, name="desk-7")
        subscriber.subscribe(STOCK)
        with Publisher(other, name="desk-feed") as publisher:
            publisher.publish({"class": "STOCK"})
        assert publisher_of(subscriber) == "desk-feed"
        assert subscriber.statistics()["reconnects"] == 0
