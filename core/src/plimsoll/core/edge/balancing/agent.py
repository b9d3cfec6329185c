"""Balancing at an edge whose cluster has a policy: load monitor, traffic samples and profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, assert_never

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.balancing import estimation, load_monitor, profiler
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.policies.model.delay_choice import BY_SUBSCRIPTIONS, MatchDelayFits
from plimsoll.core.policies.registry import parameters_of_spec
from plimsoll.core.predicates import Attributes
from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.ring import RingEstimator
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.types.policy import PolicySpec

TrafficRecorder = Callable[[str, Attributes, int, float], None]


class BalancingContext(load_monitor.LoadMonitorContext, profiler.ProfilerContext, Protocol):
    """What the balancing agent needs of its edge."""


class BalancingAgent:
    """`fits` learns the cost of matching a publication. `begin` is called once the edge knows the time."""

    def __init__(self, host: BalancingContext, config: BrokerConfig, policy: PolicySpec) -> None:
        self.host, self.policy = host, policy
        self.time_factor = config.time_factor
        self.bandwidth = config.hardware.output_bytes_per_second
        self.load_monitor = load_monitor.LoadMonitor(host, parameters_of_spec(policy, config.time_factor))
        self.ring: RingEstimator | None = None
        self.profiler: profiler.Profiler | None = None
        self.fits = MatchDelayFits("" if config.hardware.emulation is None else BY_SUBSCRIPTIONS)
        self._last_subscriptions = 0
        self._widened = 0

    def begin(self) -> TrafficRecorder:
        """Begin to sample publications; returns the function that the hot path calls for each."""
        if self.policy.estimation.type == "Press":
            self.profiler = profiler.Profiler(self.host, self._press)
            return self.profiler.note
        self.ring = ring = estimation.ring(self.policy.estimation, self.time_factor, self.host.now)
        self.profiler = profiler.Profiler(self.host, lambda: ring)
        return ring.note

    def _press(self) -> PressEstimator:
        return estimation.press(self.policy.estimation, self.time_factor, self.host.now)

    def on_control(self, message: msg.PeerLoads | msg.Reservation | msg.ProfileQuery) -> None:
        """Deal with one message of the head."""
        match message:
            case msg.PeerLoads():
                self.load_monitor.on_loads(message)
            case msg.Reservation():
                self.load_monitor.on_reservation(message)
            case msg.ProfileQuery():
                if self.profiler is not None:
                    self.profiler.on_query(message)
            case _:
                assert_never(message)

    @property
    def state(self) -> msg.BrokerState:
        return self.load_monitor.state

    def measured(self, meter: LoadMeter) -> dict[str, Any]:
        """Fields that balancing adds to a load report, at the end of its interval."""
        count = len(self.host.subscription_table.index)
        served_at, self._last_subscriptions = (count + self._last_subscriptions) / 2.0, count
        self.fits.note(served_at, meter.deliveries, meter.service_seconds, meter.served)
        found: dict[str, Any] = {"balanced_set": self.load_monitor.balanced, **self.fits.report(count)}
        return found if self.bandwidth is None else {**found, "bandwidth_bytes_per_second": self.bandwidth}

    def tick(self) -> None:
        """Advance in time, after the stream has been served."""
        if self.ring is not None and self.host.subscription_table.widenings != self._widened:
            self._widened = self.host.subscription_table.widenings
            self.ring.widened(self.host.now)
        self.load_monitor.tick()
        if self.profiler is not None:
            self.profiler.advance()

    def wake_at(self) -> float:
        """When `tick` is wanted next."""
        wanted_at = self.profiler.wake_at() if self.profiler is not None else float("inf")
        return min(wanted_at, self.load_monitor.wake_at())
