"""Real sockets on the loopback: peers that connect, and rounds until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable

import zmq

from plimsoll.broker.network.socket_lane import SocketLane
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.core.config import BrokerLimits

DEADLINE_SECONDS = 300
LIMITS = BrokerLimits(max_frame_bytes=4096, window_frames=8)
KEPT: list[zmq.Socket] = []
"""A socket without a reference is closed; these stay open until their context ends."""


def dealer(context: zmq.Context, endpoint: str, **options: object) -> zmq.Socket:
    made = context.socket(zmq.DEALER)
    for name, value in options.items():
        setattr(made, name, value)
    made.connect(endpoint)
    KEPT.append(made)
    return made


def pump(sockets: BrokerSockets, lane: SocketLane, until: Callable[[], bool], got: list | None = None) -> None:
    """Run rounds until a condition holds; a deadline makes it fail rather than hang."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not until():
        assert time.monotonic() < deadline, f"not reached: {dict(lane.counters)}, {got}"
        sockets.wait(0.05)
        sockets.serve_events()
        for peer, frames in sockets.receive(lane, 1000, 1 << 20):
            if got is not None:
                got.append((peer, frames))
        if lane.backlog:
            lane.retry()


def all_frames(got: list) -> list[bytes]:
    return [data for _, frames in got for data in frames]
