"""Emulated hardware: work is finished in its order, at virtual times, and never by sleeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.metering.service_queue import ServiceQueue


def test_without_emulation_and_limit_a_server_is_transparent():
    assert ServiceQueue[int](BrokerHardware()).transparent
    assert not ServiceQueue[int](BrokerHardware(emulation=HardwareEmulation())).transparent
    assert not ServiceQueue[int](BrokerHardware(input_bytes_per_second=1.0)).transparent


def test_a_publication_costs_a_and_b_per_subscription():
    server = ServiceQueue[int](
        BrokerHardware(emulation=HardwareEmulation(base_seconds=0.01, per_subscription_seconds=0.001))
    )
    assert server.cost(20) == pytest.approx(0.03)
    assert ServiceQueue[int](BrokerHardware()).cost(20) == 0.0


def submit(server: ServiceQueue[str], item: str, size: int, now: float) -> None:
    server.submit(item, size, now, is_publication=True)


def test_work_queues_up_behind_what_is_being_done():
    server = ServiceQueue[str](BrokerHardware(emulation=HardwareEmulation(base_seconds=1.0)))
    submit(server, "a", 10, 0.0)
    assert server.wake_at() == 0.0
    assert server.finished(0.0, 0) is None
    submit(server, "b", 10, 0.5)
    assert server.finished(0.9, 0) is None
    assert server.wake_at() == 1.0
    assert server.finished(1.0, 0) == (0.0, 1.0, True, "a", 0)
    assert server.finished(2.0, 0) == (0.5, 1.0, True, "b", 0)
    assert server.wake_at() == float("inf")


def test_a_publication_costs_what_is_installed_when_its_service_begins():
    """Ten wait while a hundred subscriptions are installed; then ninety leave, and the rest goes ten times as fast."""
    server = ServiceQueue[str](BrokerHardware(emulation=HardwareEmulation(per_subscription_seconds=0.01)))
    for item in "abc":
        submit(server, item, 10, 0.0)
    assert server.finished(0.0, 100) is None
    assert server.finished(1.0, 10) == (0.0, 1.0, True, "a", 100)
    assert server.finished(1.0, 10) is None
    assert server.wake_at() == pytest.approx(1.1)
    done = [server.finished(1.3, 10) for _ in "bc"]
    assert [one.item for one in done if one is not None] == ["b", "c"]
    assert [one.waited_seconds for one in done if one is not None] == pytest.approx([1.0, 1.1])
    assert [one.cost_seconds for one in done if one is not None] == pytest.approx([0.1, 0.1])


def test_what_is_no_publication_costs_nothing_and_keeps_its_place():
    server = ServiceQueue[str](BrokerHardware(emulation=HardwareEmulation(base_seconds=1.0)))
    submit(server, "a", 10, 0.0)
    server.submit("cut", 10, 0.0, is_publication=False)
    assert server.finished(0.5, 0) is None
    assert server.finished(1.0, 0) == (0.0, 1.0, True, "a", 0)
    assert server.finished(1.0, 0) == (1.0, 0.0, False, "cut", 0)


def test_input_comes_in_at_its_rate():
    server = ServiceQueue[str](BrokerHardware(input_bytes_per_second=100.0))
    submit(server, "a", 50, 0.0)
    submit(server, "b", 50, 0.0)
    assert server.finished(0.49, 0) is None
    assert server.finished(0.5, 0) == (0.5, 0.0, True, "a", 0)
    assert server.finished(1.0, 0) == (1.0, 0.0, True, "b", 0)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50), st.integers(0, 100)), max_size=40))
def test_order_is_kept_and_nothing_is_done_before_its_time(work: list[tuple[float, int, int]]):
    emulation = HardwareEmulation(per_subscription_seconds=0.01)
    server: ServiceQueue[int] = ServiceQueue(BrokerHardware(input_bytes_per_second=200.0, emulation=emulation))
    now, least = 0.0, []
    for i, (wait, _, size) in enumerate(work):
        now += wait
        server.submit(i, size, now, is_publication=True)
        least.append(now + size / 200.0)
    done: list[int] = []
    now = busy = 0.0
    while server.queue:
        now = max(now, server.wake_at())
        item = server.finished(now, work[len(done)][1])
        if item is not None:
            assert now >= least[item.item] + item.cost_seconds - 1e-9
            assert item.cost_seconds == pytest.approx(work[item.item][1] * 0.01)
            assert item.waited_seconds >= -1e-9
            busy += item.cost_seconds
            done.append(item.item)
    assert done == list(range(len(work)))
    assert now <= sum(s / 200.0 for _, _, s in work) + sum(w for w, _, _ in work) + busy + 1e-6


def test_what_waits_is_known_by_its_size():
    server = ServiceQueue[str](BrokerHardware(emulation=HardwareEmulation(base_seconds=1.0)))
    submit(server, "a", 30, 0.0)
    submit(server, "b", 12, 0.0)
    assert server.waiting_bytes == 42
    server.finished(0.0, 0)
    assert server.finished(1.0, 0) is not None
    assert server.waiting_bytes == 12
