"""Law I7 in real processes: a slow edge, a frozen subscriber, a flooding publisher; the others' deliveries go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll import client
from plimsoll.client.errors import FailedError
from plimsoll.client.waiting import Timeout, run
from plimsoll.core.client.subscription_list import SubscriptionList

COUNT = 300

FROZEN = """
import sys
from plimsoll import client
with client.Connection(sys.argv[1], security="plain", name="frozen") as connection:
    with client.Subscriber(connection, name="frozen", prefer="e1") as subscriber:
        subscriber.subscribe("[kind,=,'tick']", timeout=300)
        print("subscribed", flush=True)
        for item in subscriber:
            print(type(item).__name__, flush=True)
"""


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def publish(publisher: client.Publisher, count: int, first: int = 0, payload: bytes = b"") -> None:
    for i in range(first, first + count):
        publisher.publish({"kind": "tick", "n": i}, payload)


def take(subscriber: client.Subscriber, count: int) -> list[Any]:
    return [subscriber.receive(timeout=300) for _ in range(count)]


def numbers(items: list[Any]) -> list[int]:
    return [item.attributes["n"] for item in items]


@pytest.mark.sweep
def test_a_frozen_edge_does_not_hold_up_the_others(own_fleet: Callable[..., Any]) -> None:
    """The edge e1 stands still for as long as it takes to deliver everything at e2; then e1 delivers all of it, too."""
    fleet = own_fleet()
    with fleet.connection() as connection:
        slow, quick = (client.Subscriber(connection, prefer=edge) for edge in ("e1", "e2"))
        for subscriber in (slow, quick):
            subscriber.subscribe("[kind,=,'tick']")
        publisher = client.Publisher(connection)
        with stopped(fleet.processes["e1"].pid):
            publish(publisher, COUNT)
            assert numbers(take(quick, COUNT)) == list(range(COUNT))
            assert publisher.flush(300).accepted == COUNT
        assert numbers(take(slow, COUNT)) == list(range(COUNT))


def test_a_frozen_subscriber_does_not_hold_up_the_others(own_fleet: Callable[..., Any]) -> None:
    """A process stops reading; what it misses beyond all windows and its queue is far more than the others wait for."""
    fleet = own_fleet(window_bytes=64 * 1024, queue_bytes=64 * 1024, link_buffer_bytes=16 * 1024)
    frozen = subprocess.Popen(
        [sys.executable, "-c", FROZEN, fleet.head], stdout=subprocess.PIPE, text=True
    )  # it ends with its fleet or below
    assert frozen.stdout is not None
    try:
        with fleet.connection() as connection, stopped_after_line(frozen):
            neighbour = client.Subscriber(connection, prefer="e1")
            neighbour.subscribe("[kind,=,'tick']")
            publisher = client.Publisher(connection)
            publish(publisher, COUNT, payload=bytes(4096))
            assert numbers(take(neighbour, COUNT)) == list(range(COUNT))
        assert [frozen.stdout.readline().strip() for _ in range(COUNT)] == ["Delivery"] * COUNT
    finally:
        frozen.kill()
        frozen.wait(300)
        frozen.stdout.close()


@contextmanager
def stopped_after_line(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let it subscribe, then freeze it."""
    assert process.stdout is not None
    assert process.stdout.readline() == "subscribed\n"
    with stopped(process.pid):
        yield


def test_a_subscriber_that_reads_nothing_does_not_hold_up_others_on_its_connection(fleet: Any) -> None:
    """Two logical subscribers of one link: one never takes an item, the other gets all."""
    limits = client.ClientLimits(queue_records=50)
    with fleet.connection(limits=limits) as connection:
        idle, busy = (client.Subscriber(connection, prefer="e1") for _ in range(2))
        for subscriber in (idle, busy):
            subscriber.subscribe("[kind,=,'tick']")
        publisher = client.Publisher(connection)
        for first in range(0, COUNT, 20):
            publish(publisher, 20, first)
            assert numbers(take(busy, 20)) == list(range(first, first + 20))
        assert numbers(take(idle, COUNT)) == list(range(COUNT))


@pytest.mark.sweep
def test_a_flooding_publisher_does_not_hold_up_the_others(own_fleet: Callable[..., Any]) -> None:
    """One publisher has all that its buffer takes under way; a calm one's publications are delivered meanwhile."""
    fleet = own_fleet(publisher_rate_per_second=500.0, publisher_window=256)
    flood = 5_000
    with fleet.connection() as flooding, fleet.connection() as calm:
        subscriber = client.Subscriber(calm)
        subscriber.subscribe("[kind,=,'tick']")
        flooder, publisher = client.Publisher(flooding), client.Publisher(calm)
        for i in range(flood):
            flooder.publish({"kind": "flood", "n": i})
        for i in range(20):
            publish(publisher, 1, i)
            assert numbers(take(subscriber, 1)) == [i]
        assert flooder.statistics()["accepted"] < flood, "the flood was over before the calm publisher was done"
        assert flooder.flush(300).accepted == flood


def fail(*given: Any, **named: Any) -> Any:
    raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")


def break_shell(bad: client.Subscriber, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bad, "take", fail)


def break_deliveries(bad: client.Subscriber, patch: pytest.MonkeyPatch) -> None:
    with bad._connection.lock:
        patch.setattr(bad._inner.current, "take", fail)


def break_requests(bad: client.Subscriber, patch: pytest.MonkeyPatch) -> None:
    right = SubscriptionList.send_changes

    def send_changes(changed: SubscriptionList) -> None:
        (fail if changed is bad._inner.subscription_list else right)(changed)

    patch.setattr(SubscriptionList, "send_changes", send_changes)
    bad.subscribe("[kind,=,'other']", wait=False)


@pytest.mark.parametrize("spoil", [break_shell, break_deliveries, break_requests])
def test_a_fault_at_one_subscriber_is_its_end_and_no_others(
    fleet: Any, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fleet.connection() as connection:
        bad, good = client.Subscriber(connection), client.Subscriber(connection)
        for each in (bad, good):
            each.subscribe("[kind,=,'tick']")
        publisher = client.Publisher(connection)
        spoil(bad, monkeypatch)
        publish(publisher, 3)
        with pytest.raises(FailedError, match="UnicodeEncodeError"):
            take(bad, 4)
        goes_on(connection, publisher, good)


def test_an_answer_that_its_publisher_cannot_take_is_its_end_and_no_others(fleet: Any) -> None:
    with fleet.connection() as connection:
        good = client.Subscriber(connection)
        good.subscribe("[kind,=,'tick']")
        bad, publisher = client.Publisher(connection, on_answer=fail), client.Publisher(connection)
        bad.publish({"kind": "other"})
        publish(publisher, 3)
        with connection.lock:
            assert run(connection._wait(lambda: bad._inner.failed, Timeout(60)))
        with pytest.raises(FailedError, match="UnicodeEncodeError"):
            bad.publish({"kind": "other"})
        goes_on(connection, publisher, good)


def goes_on(connection: client.Connection, publisher: client.Publisher, good: client.Subscriber) -> None:
    """What is there delivers its three, and the connection takes new ones."""
    assert numbers(take(good, 3)) == [0, 1, 2]
    publisher.flush(60)
    assert not connection.has_failed
    again = client.Subscriber(connection)
    again.subscribe("[kind,=,'tick']")
    publish(publisher, 1, first=3)
    assert numbers(take(again, 1)) == [3]
