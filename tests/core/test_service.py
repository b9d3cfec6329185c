"""Emulated hardware: work is finished in its order, at virtual times, and never by sleeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.config import Emulation, Hardware
from plimsoll.core.service import Server


def test_without_emulation_and_limit_a_server_is_transparent():
    assert Server[int](Hardware()).transparent
    assert not Server[int](Hardware(emulation=Emulation())).transparent
    assert not Server[int](Hardware(input_bytes_per_second=1.0)).transparent


def test_a_publication_costs_a_and_b_per_subscription():
    server = Server[int](Hardware(emulation=Emulation(base_seconds=0.01, per_subscription_seconds=0.001)))
    assert server.cost(20) == pytest.approx(0.03)
    assert Server[int](Hardware()).cost(20) == 0.0


def test_work_queues_up_behind_what_is_being_done():
    server = Server[str](Hardware(emulation=Emulation(base_seconds=1.0)))
    server.submit("a", 1.0, 10, 0.0)
    server.submit("b", 1.0, 10, 0.5)
    assert server.finished(0.9) is None
    assert server.wake_at() == 1.0
    assert server.finished(1.0) == (0.0, "a")
    waited = server.finished(2.0)
    assert waited == (0.5, "b")
    assert server.wake_at() == float("inf")


def test_input_comes_in_at_its_rate():
    server = Server[str](Hardware(input_bytes_per_second=100.0))
    server.submit("a", 0.0, 50, 0.0)
    server.submit("b", 0.0, 50, 0.0)
    assert server.finished(0.49) is None
    assert server.finished(0.5) == (0.5, "a")
    assert server.finished(1.0) == (1.0, "b")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.5), st.integers(0, 100)), max_size=40))
def test_order_is_kept_and_nothing_is_done_before_its_time(work: list[tuple[float, float, int]]):
    server: Server[int] = Server(Hardware(input_bytes_per_second=200.0, emulation=Emulation()))
    now, least = 0.0, []
    for i, (wait, cost, size) in enumerate(work):
        now += wait
        server.submit(i, cost, size, now)
        least.append(now + cost + size / 200.0)
    done: list[int] = []
    while server.queue:
        now = server.wake_at()
        item = server.finished(now)
        assert item is not None
        assert now >= least[item[1]] - 1e-9
        assert item[0] >= -1e-9
        done.append(item[1])
    assert done == list(range(len(work)))
    assert now <= sum(c + s / 200.0 for _, c, s in work) + sum(w for w, _, _ in work) + 1e-6
