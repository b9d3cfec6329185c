"""What an edge of a cluster with a policy does for balancing, behind one door; an edge of another has none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.balancing import profiling, sensing, settings
from plimsoll.core.config import BrokerConfig
from plimsoll.core.holdings import Holdings
from plimsoll.core.load import Meter
from plimsoll.core.policies.match_delay import Fit
from plimsoll.core.policies.press import Press
from plimsoll.core.policies.registry import parameters
from plimsoll.core.policies.ring import Ring
from plimsoll.core.predicates import Attributes
from plimsoll.core.spec.policy import PolicySpec

Note = Callable[[str, Attributes, int, float], None]


class Host(sensing.Host, profiling.Host, Protocol):
    """What the watch needs of its edge."""

    holdings: Holdings


class Watch:
    """`fit` learns what a publication takes. `begin` is called when the edge knows the time."""

    def __init__(self, host: Host, config: BrokerConfig, policy: PolicySpec) -> None:
        self.host, self.policy = host, policy
        self.time_factor = config.time_factor
        self.bandwidth = config.hardware.output_bytes_per_second
        self.sensing = sensing.Sensing(host, parameters(policy, config.time_factor))
        self.ring: Ring | None = None
        self.profiling: profiling.Profiling | None = None
        self.fit = Fit()
        self._widened = 0

    def begin(self) -> Note:
        """It is time to look at publications; returns what the hot path calls for each."""
        if self.policy.estimation.type == "Press":
            self.profiling = profiling.Profiling(self.host, self._press)
            return self.profiling.note
        self.ring = ring = settings.ring(self.policy.estimation, self.time_factor, self.host.now)
        self.profiling = profiling.Profiling(self.host, lambda: ring)
        return ring.note

    def _press(self) -> Press:
        return settings.press(self.policy.estimation, self.time_factor, self.host.now)

    def on_control(self, record: Any) -> None:
        """Something from the head."""
        if isinstance(record, r.Pie):
            self.sensing.on_loads(record)
        elif isinstance(record, r.State):
            self.sensing.on_state(record)
        elif isinstance(record, r.ProfileQuery) and self.profiling is not None:
            self.profiling.on_query(record)

    @property
    def state(self) -> r.BrokerState:
        return self.sensing.state

    def measured(self, meter: Meter) -> dict[str, Any]:
        """What a load report has beside what all have, at the end of its interval."""
        self.fit.note(meter.deliveries, meter.service_seconds, meter.served)
        line = self.fit.model()
        found: dict[str, Any] = {
            "balanced_set": self.sensing.balanced,
            "match_base_seconds": line.base_seconds,
            "match_seconds_per_match": line.seconds_per_match,
        }
        return found if self.bandwidth is None else {**found, "bandwidth_bytes_per_second": self.bandwidth}

    def tick(self) -> None:
        """Time has passed, and the stream has been served."""
        if self.ring is not None and self.host.holdings.widenings != self._widened:
            self._widened = self.host.holdings.widenings
            self.ring.widened(self.host.now)
        self.sensing.tick()
        if self.profiling is not None:
            self.profiling.advance()

    def wake_at(self) -> float:
        """When it is to go on."""
        wanted_at = self.profiling.wake_at() if self.profiling is not None else float("inf")
        return min(wanted_at, self.sensing.wake_at())
