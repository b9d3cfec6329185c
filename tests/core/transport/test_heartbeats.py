"""What a node says on its links as time passes."""

from __future__ import annotations

from itertools import count

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

LIMITS = LinkLimits(heartbeat_seconds=1.0, dead_seconds=10.0)


def node(role: str, name: str) -> OverlayNode:
    ids = count(1)
    return OverlayNode(Info(name, role, 1), LIMITS, lambda: next(ids), max_frame_bytes=10**6)  # type: ignore[arg-type]  # a role


def said(one: OverlayNode) -> list[int]:
    """The kinds of frames that it has to send."""
    return [wire.decode_frame(data).kind for _, data in one.data_to_send()]


def test_hello_is_said_again_with_each_heartbeat_until_it_is_answered():
    edge = node("edge", "e")
    edge.dial("h", "sim://h")
    for now in (0.0, 0.5, 1.0, 1.5, 2.0):
        edge.poll(now)
    assert said(edge) == [wire.HELLO] * 4, "when it dials, and at 0, 1 and 2 seconds"
    assert edge.heartbeats.next_at() == edge.heartbeats.next_beat_at == 3.0


def test_open_links_are_pinged_and_a_silent_one_is_given_up():
    edge, head = node("edge", "e"), node("head", "h")
    edge.dial("h", "sim://h")
    head.receive(b"e", [data for _, data in edge.data_to_send()], 0.5)
    head.poll(1.0)
    assert wire.PING in said(head)
    head.poll(10.0)
    assert head.links
    head.poll(11.0)
    assert not head.links
    assert head.counters["links_lost"] == 1


def test_probing_ends_with_the_policy_that_wants_it():
    heartbeats = node("head", "h").heartbeats
    heartbeats.measure_ways(closely=True)
    at = heartbeats.next_probe_at
    heartbeats.measure_ways(closely=True)
    assert heartbeats.next_probe_at == at, "a policy that comes again does not begin again"
    heartbeats.measure_ways(closely=False)
    assert heartbeats.next_probe_at == NEVER
