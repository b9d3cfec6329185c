"""What a world is made of: how many brokers and applications, what goes wrong, and what is claimed nevertheless."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from plimsoll.core.config import BrokerHardware, BrokerLimits
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.mediators.session_mediator import PlannedSessionMix, SimulatedPolicy
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.workload import WorkloadSize

SMALL_LIMITS = BrokerLimits(
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
class SimulationScenario:
    """One kind of run. The claim `undisturbed_seconds` is about all but what `victims` names, 0 claims nothing.

    At most `settle_seconds` pass after everything has healed, and `last_seconds` after the last publications.
    `control`: the weather of control sockets. `slow`: the hardware of half of the brokers. `is_steady`: no bound is
    met, so nobody is told of a gap.

    `policy`: clusters have one, and the first edge of each is slower than the others, so that there is something to do.

    `victim`: what is singled out before faults are drawn: a slow `edge`, a frozen `subscriber`, a flooding `publisher`.
    """

    name: str
    about: str
    shape: FleetShape = field(default_factory=FleetShape)
    load: WorkloadSize = field(default_factory=WorkloadSize)
    connection: ConnectionQuality = field(default_factory=ConnectionQuality)
    fault_rates: FaultRates = field(default_factory=FaultRates)
    log_bytes: int = SMALL_LIMITS.log_bytes
    window_bytes: int = SMALL_LIMITS.window_bytes
    processes: int = 2
    victim: str = ""
    undisturbed_seconds: float = 0.0
    settle_seconds: float = 10.0
    last_seconds: float = 2.5
    handovers: HandoverMix = field(default_factory=HandoverMix)
    sessions: PlannedSessionMix = field(default_factory=PlannedSessionMix)
    control: ConnectionQuality | None = None
    slow: BrokerHardware | None = None
    policy: SimulatedPolicy | None = None
    is_steady: bool = False
    base: BrokerLimits = SMALL_LIMITS

    @property
    def moves(self) -> bool:
        """Whether anybody asks for hand-overs."""
        return bool(self.handovers.handovers or self.sessions.sessions or self.policy)

    @property
    def is_rough(self) -> bool:
        """Whether anything stands in the way of hand-overs."""
        return (
            self.fault_rates != FaultRates()
            or self.control is not None
            or bool(self.handovers.aim or self.handovers.lives)
        )

    def limits(self) -> BrokerLimits:
        return msgspec.structs.replace(self.base, log_bytes=self.log_bytes, window_bytes=self.window_bytes)
