"""Balancing at an edge whose cluster has a policy: load monitor, traffic samples and profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, assert_never

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.balancing import estimation, load_monitor, profiler
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.policies.model.delay_choice import BY_SUBSCRIPTIONS, MatchDelayFits
from plimsoll.core.policies.model.load import mean_load
from plimsoll.core.policies.registry import detection_parameters
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
        self.load_monitor = load_monitor.LoadMonitor(host, detection_parameters(policy, config.time_factor))
        self.ring: RingEstimator | None = None
        self.profiler: profiler.Profiler | None = None
        self.fits = MatchDelayFits("" if config.hardware.emulation is None else BY_SUBSCRIPTIONS)
        self._widened = 0

    def begin(self) -> TrafficRecorder:
        """Begin to sample publications; returns the function that the hot path calls for each."""
        if self.policy.estimation.type == "Press":
            self.profiler = profiler.Profiler(self.host, self._press)
            return self.profiler.note
        if self.ring is None:
            self.ring = estimation.ring(self.policy.estimation, self.time_factor, self.host.now)
        ring = self.ring
        self.profiler = profiler.Profiler(self.host, lambda: ring)
        return ring.note

    def keep_samples(self, old: BalancingAgent) -> None:
        """Go on with what another agent of this edge has sampled and measured."""
        self.ring, self.fits, self._widened = old.ring, old.fits, old._widened

    def _press(self) -> PressEstimator:
        reports, seconds = self.load_monitor.own, self.load_monitor.parameters.detection_seconds
        counted = (mean_load(list(reports)).input_rate * seconds, seconds) if reports else (0.0, 0.0)
        return estimation.press(self.policy.estimation, self.time_factor, self.host.now, counted)

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
        count, steady = len(self.host.subscription_table.index), meter.steady
        if steady.publications:
            each = steady.subscriptions / steady.publications
            self.fits.note(each, steady.deliveries, steady.seconds, steady.publications)
        return {"balanced_set": self.load_monitor.balanced, **self.fits.report(count)}

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
