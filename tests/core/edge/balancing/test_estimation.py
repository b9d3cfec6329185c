"""Brokers use the policy's parameters, on the clock of the fleet; a policy that cannot be read is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Mediator, Publishing, resume

from plimsoll.core.edge.balancing import estimation
from plimsoll.core.profiling.profile_codec import decode_profile
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.problems import InvalidResourcesError
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.policy import EstimationSpec, PressParameters, RingParameters


def test_samples_are_kept_on_the_clock_of_the_fleet():
    spec = EstimationSpec(
        ring=RingParameters(samples=8, rate_over=Duration.parse("20s")),
        press=PressParameters(samples=9, timeout=Duration.parse("10s")),
    )
    ring, press = estimation.ring(spec, 0.5, 3.0), estimation.press(spec, 0.5, 3.0)
    assert (ring.width, ring.window_seconds) == (8, 10.0)
    assert (press.samples, press.timeout_seconds, press.started_at) == (9, 5.0, 3.0)
    assert estimation.ring(EstimationSpec(), 1.0, 0.0).width == 64
    assert estimation.press(EstimationSpec(), 1.0, 0.0).samples == 50


def test_an_unknown_policy_is_refused():
    assert estimation.policy_of(None) is None
    with pytest.raises(InvalidResourcesError, match="Padres"):
        estimation.policy_of({"type": "Pardes"})


def test_press_samples_only_while_a_query_waits(balanced: Any):
    policy = {"type": "Padres", "estimation": {"type": "Press", "press": {"samples": 10, "timeout": "20s"}}}
    fleet = balanced(2, policy=policy)
    mediator: Mediator = fleet.mediator("h")
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publishing = Publishing(client, "h")
    fleet.run(0.5)

    def publish(count: int) -> None:
        for _ in range(count):
            publishing.publish()
            fleet.run(0.1)

    def answers(number: int) -> list[msg.ProfileReply]:
        return [said for said in mediator.heard["h"] if isinstance(said, msg.ProfileReply) and said.id == number]

    publish(20)
    mediator.say_control("h", msg.ProfileQuery(1, "e1", "e2"))
    publish(5)
    assert not answers(1)
    publish(6)
    profile = decode_profile(answers(1)[0].piece)
    assert profile.traffic.width == 10
    assert profile.input_rate == pytest.approx(10.0, rel=0.2)
    mediator.say_control("h", msg.ProfileQuery(2, "e1", "e2"))
    publish(3)
    fleet.run(2.5)  # of 2 s, on this clock
    assert decode_profile(answers(2)[0].piece).traffic.width == 3
