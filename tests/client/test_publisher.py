"""The publisher of the library against real brokers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from plimsoll.client import Answered, ClientLimits, Connection, Publisher, Subscriber, errors


def test_every_publication_gets_an_answer(fleet: Any):
    with fleet.connection() as connection:
        publisher = Publisher(connection, name="p")
        receipts = [publisher.publish({"n": n}) for n in range(100)]
        assert receipts[-1].wait(300).answer == "accepted"
        assert publisher.flush(300).accepted == 100
        assert [receipt.number for receipt in receipts] == list(range(1, 101))
        assert publisher.flush(300).accepted == 0
        assert publisher.statistics()["accepted"] == 100


def test_a_publication_that_no_broker_would_take_is_refused_here(fleet: Any):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        with pytest.raises(errors.PublicationError, match="attribute 'a' is list"):
            publisher.publish({"a": []})  # type: ignore[dict-item]  # what a user may write
        with pytest.raises(errors.PublicationError, match="at most 256000"):
            publisher.publish({}, b"x" * 300_000)
        assert publisher.publish({"n": 1}).wait(300).answer == "accepted"


def test_edges_confirm_if_asked(fleet: Any):
    with fleet.connection() as connection:
        subscriber = Subscriber(connection)
        subscriber.subscribe("[confirmed,=,true]")
        with Publisher(connection, confirm="edges") as publisher:
            assert publisher.publish({"confirmed": True}).wait(300).answer == "accepted"


def test_answers_come_by_callback_too(fleet: Any):
    answers: list[Answered] = []
    with fleet.connection() as connection:
        publisher = Publisher(connection, on_answer=answers.extend)
        for n in range(20):
            publisher.publish({"n": n})
        publisher.close()
        assert sum(each.last - each.first + 1 for each in answers) == 20


def test_a_publisher_may_have_a_connection_of_its_own(fleet: Any):
    with Publisher(fleet.head, security="plain") as publisher:
        publisher.publish({"n": 1})
    assert publisher.statistics()["accepted"] == 1
    with pytest.raises(errors.ClosedError):
        publisher.publish({"n": 1})


def test_how_to_connect_must_be_said(fleet: Any):
    with pytest.raises(ValueError, match="security='plain'"):
        Publisher(fleet.head)
    with fleet.connection() as connection, pytest.raises(ValueError, match="has its security already"):
        Publisher(connection, security="plain")


def test_an_unanswered_publication_is_not_forgotten_in_silence():
    publisher = Publisher("tcp://127.0.0.1:1", security="plain")
    receipt = publisher.publish({"n": 1})
    with pytest.raises(errors.WaitTimeoutError, match=r"no head answers at tcp://127.0.0.1:1"):
        receipt.wait(0.05)
    with pytest.raises(errors.WaitTimeoutError):
        publisher.flush(0.05)
    publisher.close(timeout=0.05)
    with pytest.raises(errors.NotAcceptedError, match="refused"):
        receipt.wait(1)


def test_leaving_the_block_reports_what_was_not_accepted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.client.publisher.CLOSE_SECONDS", 0.05)
    publisher = Publisher("tcp://127.0.0.1:1", security="plain")
    publisher.publish({"n": 1})
    publisher.close(timeout=0.05)
    with pytest.raises(errors.NotAcceptedError, match="1 publications were not accepted") as caught:
        publisher.__exit__(None, None, None)
    assert [(each.first, each.last, each.answer) for each in caught.value.answers] == [(1, 1, "refused")]


@pytest.mark.sweep
def test_a_full_buffer_holds_the_application_and_says_so(own_fleet: Any):
    fleet = own_fleet()
    limits = ClientLimits(publisher_buffer_bytes=20_000)
    with Connection("tcp://127.0.0.1:1", security="plain", limits=limits) as connection:
        publisher = Publisher(connection)
        for n in range(19):
            publisher.publish({"n": n}, b"x" * 1000)
        with pytest.raises(errors.BufferFullError, match="its buffer takes 20000 bytes"):
            publisher.publish({}, b"x" * 1000, timeout=0.02)
        publisher.close(timeout=0.0)
    with fleet.connection(limits=limits) as connection, Publisher(connection) as publisher:
        for n in range(200):
            publisher.publish({"n": n}, b"x" * 1000, timeout=300)
    assert publisher.statistics()["accepted"] == 200


def test_many_threads_may_publish(fleet: Any):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        threads = [threading.Thread(target=lambda: [publisher.publish({"n": n}) for n in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert publisher.flush(300).accepted == 800


def test_a_name_is_used_once(fleet: Any):
    with fleet.connection() as connection:
        Publisher(connection, name="once")
        with pytest.raises(ValueError, match="in use in this process"):
            Publisher(connection, name="once")
