"""The output keeps to its bandwidth, saves up as the token bucket does, and loses no byte."""

import pytest

from plimsoll.core.config import BrokerConfig, BrokerHardware, PeerBroker
from plimsoll.simulator.queueing.output_queue import OutputQueue


def config_of(rate: float | None) -> BrokerConfig:
    hardware = BrokerHardware(output_bytes_per_second=rate)
    head = PeerBroker(name="h")
    return BrokerConfig(name="e", role="edge", cluster="c", data="", control="", head=head, hardware=hardware)


def output(rate: float | None) -> OutputQueue:
    return OutputQueue(config_of(rate))


def test_without_a_limit_all_leaves_at_once():
    one = output(None)
    assert one.send(1e9, 3.0) == (3.0, 3.0)
    assert one.waiting_bytes(3.0) == 0.0


def test_what_is_too_much_leaves_at_the_bandwidth():
    one = output(100_000.0)
    one.send(5_000, 1.0)  # the twentieth of a second that is saved up
    first, last = one.send(100_000, 1.0)
    assert (first, last) == pytest.approx((1.0, 2.0))
    assert one.send(100_000, 1.5) == pytest.approx((2.0, 3.0))
    assert one.waiting_bytes(2.0) == pytest.approx(100_000)


def test_departed_bytes_add_up_to_what_was_given():
    one = output(100_000.0)
    one.send(250_000, 0.0)
    parts = [one.departed_bytes(at) for at in (0.0, 1.0, 2.0, 9.0)]
    assert sum(parts) == pytest.approx(250_000)
    assert parts[1] == pytest.approx(100_000)
