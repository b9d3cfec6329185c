"""Values of decisions on slices: what a slice costs, and sessions of pairs."""

from __future__ import annotations

from tests.core.policies.consumer_groups.small import consumer

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SliceLoad, SliceMove, owners


def test_a_slice_costs_its_rate_by_the_work_of_an_item() -> None:
    assert round(SliceLoad(0, 50.0, 0.01).cost, 3) == 0.5
    assert SliceLoad(0).cost > 0


def test_the_usage_of_a_consumer_is_the_higher_of_processor_and_memory() -> None:
    assert ConsumerLoad("a", cpu=0.4, memory=0.7).usage == 0.7


def test_moves_are_sessions_of_one_pair_each_and_a_slice_moves_once() -> None:
    shares = Shares.of([consumer("a", 1, 1, 1), consumer("b"), consumer("c")])
    shares.move(0, "a", "b")
    shares.move(1, "a", "c")
    shares.move(0, "b", "c")
    shares.move(2, "a", "b")
    shares.move(2, "b", "a")
    assert shares.sessions() == ((SliceMove("a", "c", 0), SliceMove("a", "c", 1)),)


def test_the_owner_of_each_slice() -> None:
    assert owners([consumer("b", 1, 1), consumer("a", 1, first=2)]) == {0: "b", 1: "b", 2: "a"}
