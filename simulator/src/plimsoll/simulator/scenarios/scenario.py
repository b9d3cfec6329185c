"""The definition of a scenario: the fleet, the workload, the faults, and the claims that hold in spite of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from plimsoll.core.config import BrokerHardware, BrokerLimits
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.mediators.session_mediator import PlannedSessionMix, SimulatedPolicy
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.consumers import GroupLoad
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.standby_heads import StandbyHeads
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
"""Small buffers and short time-outs, so that a short run reaches every bound."""


@dataclass(frozen=True, slots=True)
class SimulationScenario:
    """One kind of run.

    `control`: the quality of control sockets, if it differs. `slow`: the hardware of a random half of the brokers.
    `policy`: the balancing policy of all clusters; the first edge of each is slower, so that it has work to do.
    `settle_seconds`: the longest time from the healing of all faults to the last publications; `last_seconds`: from
    these to the checks.

    `victim`: one party that misbehaves: a slow `edge`, a frozen `subscriber` or a flooding `publisher`. All others
    receive each delivery within `undisturbed_seconds`; 0 makes no such claim.
    `group`: a consumer group at the first head, with consumers that come and go.
    `durable`: heads keep their logs on disks, or have standbys.
    `is_always_answered`: no publication is `unknown`: heads end only once their publishers have left.
    `lease_seconds`: for how long applications ask that their places be kept; then none may lapse. 0: they do not ask.
    `is_gap_free`: no bound is reached in this scenario, so a single gap breaks law I1.
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
    is_gap_free: bool = False
    durable: DurableHeads | StandbyHeads | None = None
    is_always_answered: bool = False
    lease_seconds: float = 0.0
    group: GroupLoad | None = None
    base: BrokerLimits = SMALL_LIMITS

    @property
    def has_handovers(self) -> bool:
        """Whether the run needs a mediator."""
        return bool(self.handovers.handovers or self.sessions.sessions or self.policy)

    @property
    def is_disturbed(self) -> bool:
        """Whether faults can delay hand-overs; if not, these have to meet their deadlines from the start."""
        return (
            self.fault_rates != FaultRates()
            or self.control is not None
            or bool(self.handovers.aim or self.handovers.lives)
        )

    def limits(self) -> BrokerLimits:
        return msgspec.structs.replace(self.base, log_bytes=self.log_bytes, window_bytes=self.window_bytes)
