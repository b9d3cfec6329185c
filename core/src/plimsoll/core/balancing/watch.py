"""What an edge of a cluster with a policy does for balancing, behind one door; an edge of another has none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.balancing import profiling, sensing
from plimsoll.core.config import BrokerConfig
from plimsoll.core.holdings import Holdings
from plimsoll.core.load import Meter
from plimsoll.core.policies.match_delay import Fit
from plimsoll.core.policies.parameters import Parameters
from plimsoll.core.policies.ring import WINDOW_SECONDS, Ring
from plimsoll.core.predicates import Attributes

RING_WIDTH = 64

Note = Callable[[str, Attributes, int, float], None]


class Host(sensing.Host, profiling.Host, Protocol):
    """What the watch needs of its edge."""

    holdings: Holdings


class Watch:
    """`parameters` are on this fleet's clock. `fit` learns what a publication takes."""

    def __init__(self, host: Host, config: BrokerConfig, parameters: Parameters) -> None:
        self.host = host
        self.bandwidth = config.hardware.output_bytes_per_second
        self.window_seconds = WINDOW_SECONDS * config.time_factor
        self.sensing = sensing.Sensing(host, parameters)
        self.ring: Ring | None = None
        self.profiling: profiling.Profiling | None = None
        self.fit = Fit()
        self._widened = 0

    def begin(self) -> Note:
        """It is time to keep publications; returns what the hot path calls for each."""
        self.ring = Ring(RING_WIDTH, self.window_seconds, self.host.now)
        self.profiling = profiling.Profiling(self.host, self.ring)
        return self.ring.note

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
        is_busy = self.profiling is not None and self.profiling.is_busy
        return self.host.now if is_busy else self.sensing.wake_at()
