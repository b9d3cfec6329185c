"""Connections to real brokers: security, faults of brokers, and the end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import zmq

from plimsoll.client import ClientLimits, Connection, Curve, Delivery, Publisher, Subscriber, errors
from plimsoll.client.waiting import run
from plimsoll.core.transport.link import LinkLimits


def test_status_says_what_is_connected(fleet: Any):
    with fleet.connection(name="me") as connection:
        status = connection.status()
        assert (status["name"], status["head"], status["plain"]) == ("me", "h", True)


def test_who_does_not_answer_is_named():
    with (
        Connection("tcp://127.0.0.1:1", security="plain") as connection,
        pytest.raises(
            errors.WaitTimeoutError, match=r"not connected within 0.05 s: no head answers at tcp://127.0.0.1:1"
        ),
    ):
        connection.wait_open(0.05)


@pytest.mark.parametrize("heads", ["127.0.0.1:7000", [], ["tcp://127.0.0.1:1", "x"]])
def test_what_is_no_endpoint_is_refused(heads: Any):
    with pytest.raises(ValueError, match="tcp://"):
        Connection(heads, security="plain")


def test_a_closed_connection_says_so(fleet: Any):
    threads = threading.active_count()
    connection = fleet.connection()
    subscriber = Subscriber(connection)
    connection.close()
    connection.close()
    for call in (lambda: Publisher(connection), lambda: subscriber.subscribe("[n,>,1]"), subscriber.receive):
        with pytest.raises(errors.ClosedError):
            call()
    assert threading.active_count() == threads


def test_what_other_threads_change_is_looked_at_under_the_lock(fleet: Any, monkeypatch: pytest.MonkeyPatch):
    with fleet.connection() as connection:
        connection.wait_open()
        engine, looks = connection.engine, list[bool]()
        original = engine.seconds_to_next

        def look() -> float:
            looks.append(connection.lock.locked())
            return float(original())

        monkeypatch.setattr(engine, "seconds_to_next", look)
        with connection.lock:
            connection.wake()
            run(connection.wait_for(lambda: len(looks) > 2, 300.0, "looked at"))
    assert all(looks)


def test_closing_waits_for_answers(fleet: Any):
    connection = fleet.connection()
    publisher = Publisher(connection)
    receipts = [publisher.publish({"n": n}) for n in range(500)]
    connection.close()
    assert {receipt.answer.answer for receipt in receipts if receipt.answer} == {"accepted"}
    assert all(receipt.answer for receipt in receipts)


def test_a_fault_of_the_io_thread_reaches_everyone(fleet: Any, caplog: pytest.LogCaptureFixture):
    connection = fleet.connection()
    publisher, subscriber = Publisher(connection), Subscriber(connection)
    waiting: list[BaseException] = []

    def wait() -> None:
        try:
            subscriber.receive()
        except errors.ClientError as error:
            waiting.append(error)

    thread = threading.Thread(target=wait)
    thread.start()

    def broken() -> Any:
        raise RuntimeError("broken")

    with connection.lock:
        connection.engine.round = broken
        connection.wake()
    thread.join(300)
    assert [type(error) for error in waiting] == [errors.ConnectionFailedError]
    with pytest.raises(errors.ConnectionFailedError, match="broken"):
        publisher.publish({"n": 1})
    connection.close()
    assert "has failed" in caplog.text


# -- CURVE


def test_with_keys_everything_works_and_without_nothing(own_fleet: Any, tmp_path: Path):
    fleet = own_fleet(curve=True)
    with fleet.connection() as connection, Publisher(connection) as publisher:
        assert connection.status()["plain"] is False
        subscriber = Subscriber(connection)
        subscriber.subscribe("[n,>,0]")
        publisher.publish({"n": 1})
        assert isinstance(subscriber.receive(300), Delivery)
    stranger = zmq.curve_keypair()[1].decode()
    wrong_server = zmq.curve_keypair()[0].decode()
    for security in (
        "plain",
        Curve(secret=stranger, server=fleet.folder / "head.pub"),
        Curve(secret=fleet.folder / "app.key", server=wrong_server),
    ):
        with (
            Connection(fleet.head, security=security) as connection,
            pytest.raises(errors.WaitTimeoutError, match="no head answers"),
        ):
            connection.wait_open(0.5)


# -- faults


class Traffic:
    """Publishes numbers while something happens, and checks what arrives."""

    def __init__(self, connection: Connection) -> None:
        self.publisher = Publisher(connection)
        self.subscriber = Subscriber(connection)
        self.subscriber.subscribe("[n,>,0]")
        self.said = 0
        self.got: list[int] = []
        self.gaps: list[Any] = []

    def say(self, count: int) -> None:
        for _ in range(count):
            self.said += 1
            self.publisher.publish({"n": self.said})

    def take(self, until: int, seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while not self.got or self.got[-1] < until:
            assert time.monotonic() < end, f"{until} has not come: {self.got[-1:]}, {self.gaps}"
            try:
                item = self.subscriber.receive(1.0)
            except errors.WaitTimeoutError:  # it may come yet
                continue
            if isinstance(item, Delivery):
                self.got.append(int(item.attributes["n"]))
            else:
                self.gaps.append(item)

    @property
    def edge(self) -> str:
        return str(self.subscriber.statistics()["edge"])


def test_an_edge_that_is_killed_costs_nothing(own_fleet: Any):
    fleet = own_fleet()
    with fleet.connection() as connection:
        traffic = Traffic(connection)
        traffic.say(200)
        traffic.take(100)
        fleet.kill(traffic.edge)
        traffic.say(200)
        traffic.take(400)
        assert traffic.got == list(range(1, 401))
        assert traffic.gaps == []
        assert traffic.publisher.flush(300).accepted == 400


def test_an_edge_that_is_killed_is_left_before_its_silence_says_so(own_fleet: Any):
    fleet = own_fleet()
    limits = ClientLimits(link=LinkLimits(dead_seconds=300.0))
    with fleet.connection(limits=limits) as connection:
        traffic = Traffic(connection)
        traffic.say(10)
        traffic.take(10)
        edge = traffic.edge
        fleet.kill(edge)
        traffic.say(10)
        traffic.take(20)
        assert traffic.edge not in ("", edge)
        assert traffic.got == list(range(1, 21))
        assert traffic.gaps == []


def test_an_edge_that_leaves_costs_nothing(own_fleet: Any):
    fleet = own_fleet()
    with fleet.connection() as connection:
        traffic = Traffic(connection)
        traffic.say(200)
        thread = threading.Thread(target=fleet.leave, args=(traffic.edge,))
        thread.start()
        traffic.say(200)
        traffic.take(400)
        thread.join(300)
        traffic.say(1)
        traffic.take(401)
        assert traffic.got == list(range(1, 402))
        assert traffic.gaps == []


def test_an_edge_that_restarts_costs_nothing(own_fleet: Any, eventually: Any):
    fleet = own_fleet()
    with fleet.connection() as connection:
        traffic = Traffic(connection)
        fleet.kill("e2")  # not before the head has met it: it would wait for it
        eventually(lambda: traffic.edge == "e1")
        for round_ in range(1, 3):
            traffic.say(100)
            fleet.kill("e1")
            traffic.say(100)
            fleet.start("e1")
            traffic.take(200 * round_)
        assert traffic.got == list(range(1, 401))
        assert traffic.gaps == []


def test_a_head_that_is_killed_leaves_answers_and_a_gap(own_fleet: Any):
    fleet = own_fleet()
    with fleet.connection() as connection:
        traffic = Traffic(connection)
        traffic.say(100)
        traffic.take(100)
        before = traffic.publisher.flush(300)
        fleet.kill("h")
        traffic.say(10)
        fleet.start("h")
        after = traffic.publisher.flush(300)
        traffic.say(50)
        traffic.take(160, 40)
        assert before.accepted == 100
        assert after.accepted + after.unknown == 10
        assert traffic.gaps
        assert traffic.got == sorted(set(traffic.got))
        assert traffic.got[-50:] == list(range(111, 161))
