"""Laws of a fair output: it is never idle while something waits, nothing starves, and who sends little waits little."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.queueing.test_output_queue import config_of

from plimsoll.simulator.queueing.fair_output import FairOutput, Left
from plimsoll.simulator.queueing.output_queue import OutputQueue

RATE = 100_000.0
BURST = 0.05 * RATE
LIGHT = 1

Arrival = tuple[float, int, float]
"""Seconds since the one before, queue, bytes."""

arrivals = st.lists(
    st.tuples(st.sampled_from([0.0, 0.001, 0.02, 0.5]), st.integers(0, 4), st.integers(1, 15_000)), max_size=60
)


class Run:
    def __init__(self, given_ones: list[Arrival], rate: float | None = RATE) -> None:
        self.left: list[Left[tuple[int, float]]] = []
        self.output = FairOutput[tuple[int, float]](config_of(rate), self.left.append)
        self.fifo = OutputQueue(config_of(rate))
        self.now, self.waiting = 0.0, list[tuple[float, float]]()
        for pause, number, size in given_ones:
            self.now += pause
            self.output.advance(self.now)
            self.output.put(1 << number, float(size), self.now, (1 << number, float(size)))
            self.output.advance(self.now)
            self.fifo.send(size, self.now)
            self.waiting.append((self.output.waiting_bytes(self.now), self.fifo.waiting_bytes(self.now)))
        self.output.advance(1e9)


@given(arrivals)
def test_it_is_never_idle_while_something_waits(some: list[Arrival]):
    """As much waits as first come, first served, whatever the order."""
    run = Run(some)
    for fair, fifo in run.waiting:
        assert fair == pytest.approx(fifo, abs=1e-6)
    assert len(run.left) == len(some), "and all of it leaves"
    assert sum(each.item[1] for each in run.left) == sum(size for _, _, size in some)


@given(arrivals)
def test_a_queue_keeps_its_order(some: list[Arrival]):
    by_queue = defaultdict(list)
    for each in Run(some).left:
        by_queue[each.item[0]].append(each.given_at)
    assert all(times == sorted(times) for times in by_queue.values())


@given(
    st.lists(st.integers(1, 15_000), min_size=10, max_size=40),
    st.lists(st.integers(1, 15_000), min_size=10, max_size=40),
)
def test_two_busy_queues_get_the_same_to_within_a_packet_of_each(one: list[int], other: list[int]):
    """Golestani's bound, while both have something to send; so none starves."""
    run = Run([*((0.0, 0, 20_000),), *((0.0, 1, size) for size in one), *((0.0, 2, size) for size in other)])
    sent, left = {2: 0.0, 4: 0.0}, {2: len(one), 4: len(other)}
    for each in run.left[1:]:
        queue, size = each.item
        if not all(left.values()):
            break
        sent[queue] += size
        left[queue] -= 1
        assert abs(sent[2] - sent[4]) <= max(one) + max(other)


@given(arrivals, st.integers(1, 15_000))
def test_who_sends_little_waits_little(some: list[Arrival], size: int):
    """A packet of an empty queue lets each other queue send as much as it, and one packet, whatever they hold."""
    heavy = [(pause, number + 1, each) for pause, number, each in some]
    run = Run([*heavy, (0.0, 0, size)])
    (light,) = (each for each in run.left if each.item[0] == LIGHT)
    largest: dict[int, float] = {}
    for _, number, each in heavy:
        largest[number] = max(largest.get(number, 0), each)
    bound = (sum(size + each for each in largest.values()) + size) / RATE
    assert light.last - light.given_at <= bound + 1e-9


def test_first_come_first_served_would_let_it_wait():
    """The same law, where it does not hold: a queue of 100 packets ahead."""
    heavy = [(0.0, 1, 1000)] * 100
    run = Run([*heavy, (0.0, 0, 100)])
    (light,) = (each for each in run.left if each.item[0] == LIGHT)
    assert run.fifo.free_at > 0.9
    assert light.last - light.given_at <= (1000 + 100 + 100) / RATE


def test_without_a_limit_all_leaves_at_once():
    run = Run([(0.5, number, 1500) for number in range(4)], rate=None)
    assert [each.last for each in run.left] == [0.5, 1.0, 1.5, 2.0]
    assert run.output.leaves_at_once(1e9, 3.0)
    assert run.output.waiting_bytes(3.0) == 0.0


def test_what_is_saved_up_needs_no_queue():
    output = FairOutput[str](config_of(RATE), lambda _: None)
    assert output.leaves_at_once(BURST, 1.0)
    assert not output.leaves_at_once(1.0, 1.0)
    output.put(1, 100.0, 1.0, "x")
    assert not output.leaves_at_once(1.0, 1.0), "not past what waits"
    assert output.earliest_left({1: 1}, 1.0) == pytest.approx(1.001)
    assert output.earliest_left({1: 0, 2: 0}, 1.0) == 1.0


@given(arrivals)
def test_when_a_queue_has_left_is_never_said_too_early(some: list[Arrival]):
    """Asked again at the time that it says, it comes to the time at which the last of its items has left."""
    left: list[Left[int]] = []
    output = FairOutput[int](config_of(RATE), left.append)
    for _, number, size in some:
        output.put(1 << number, float(size), 0.0, 1 << number)
    given = {1: output.given[1], 2: output.given[2]}
    at, now, asked = output.earliest_left(given, 0.0), 0.0, 0
    while at > now:
        now, asked = at, asked + 1
        output.advance(now)
        at = output.earliest_left(given, now)
    lasts = [each.last for each in left if each.item in given]
    assert len(lasts) == sum(given.values())
    assert now == pytest.approx(max(lasts, default=0.0), abs=1e-9)
    assert asked <= 2 * len(some) + 1


def test_departed_bytes_add_up_to_what_was_given():
    output = FairOutput[str](config_of(RATE), lambda _: None)
    for number in range(10):
        output.put(1 << number % 3, 1000.0, 0.0, "x")
    parts = []
    for at in (0.0, 0.05, 2.0):
        output.advance(at)
        parts.append(output.departed_bytes(at))
    assert sum(parts) == pytest.approx(10_000)
    assert parts[1] == pytest.approx(0.05 * RATE)
