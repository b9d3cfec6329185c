"""What a world is made of: how many brokers and applications, what goes wrong, and what is claimed nevertheless."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from plimsoll.core.config import Hardware, Limits
from plimsoll.simulator.faults import Chances
from plimsoll.simulator.fleet import Shape
from plimsoll.simulator.moves import Moving
from plimsoll.simulator.network import Weather
from plimsoll.simulator.planning import Asking, Policy
from plimsoll.simulator.workload import Load

LIMITS = Limits(
    log_bytes=400_000,
    window_bytes=20_000,
    window_frames=64,
    link_buffer_bytes=8_000,
    queue_bytes=8_000,
    inbox_bytes=100_000,
    block_seconds=1.0,
    confirm_seconds=1.0,
    lease_seconds=4.0,
    heartbeat_seconds=0.4,
    dead_seconds=2.0,
    progress_seconds=0.5,
    report_seconds=4.0,
    publisher_window=16,
)
"""Small and quick, so that a short run meets every bound."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of run. The claim `undisturbed_seconds` is about all but what `victims` names, 0 claims nothing.

    At most `settle_seconds` pass after everything has healed, and `last_seconds` after the last publications.
    `control`: the weather of control sockets. `slow`: the hardware of half of the brokers. `is_steady`: no bound is
    met, so nobody is told of a gap.

    `policy`: clusters have one, and the first edge of each is slower than the others, so that there is something to do.

    `victim`: what is singled out before faults are drawn: a slow `edge`, a frozen `subscriber`, a flooding `publisher`.
    """

    name: str
    about: str
    shape: Shape = field(default_factory=Shape)
    load: Load = field(default_factory=Load)
    weather: Weather = field(default_factory=Weather)
    chances: Chances = field(default_factory=Chances)
    log_bytes: int = LIMITS.log_bytes
    window_bytes: int = LIMITS.window_bytes
    processes: int = 2
    victim: str = ""
    undisturbed_seconds: float = 0.0
    settle_seconds: float = 10.0
    last_seconds: float = 2.5
    moving: Moving = field(default_factory=Moving)
    asking: Asking = field(default_factory=Asking)
    control: Weather | None = None
    slow: Hardware | None = None
    policy: Policy | None = None
    is_steady: bool = False
    base: Limits = LIMITS

    @property
    def moves(self) -> bool:
        """Whether anybody asks for hand-overs."""
        return bool(self.moving.handovers or self.asking.sessions or self.policy)

    @property
    def is_rough(self) -> bool:
        """Whether anything stands in the way of hand-overs."""
        return self.chances != Chances() or self.control is not None or bool(self.moving.aim or self.moving.lives)

    def limits(self) -> Limits:
        return msgspec.structs.replace(self.base, log_bytes=self.log_bytes, window_bytes=self.window_bytes)
