"""A cluster in memory whose brokers have a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.core.fleet import Fleet

from plimsoll.core.config import BrokerHardware, HardwareEmulation

Make = Callable[..., Fleet]


@pytest.fixture
def balanced() -> Make:
    """Makes a head `h` with edges `e1`, `e2`..., up and ready; durations are a tenth of the defaults."""

    def make(edges: int = 2, policy: dict[str, Any] | None = None, seconds_each: float = 0.001, **limits: Any) -> Fleet:
        limits = {"report_seconds": 1.0, **limits}
        fleet = Fleet(1, limits)
        slow = BrokerHardware(
            emulation=HardwareEmulation(per_subscription_seconds=seconds_each), output_bytes_per_second=1e6
        )
        names = [f"e{i}" for i in range(1, edges + 1)]
        fleet.cluster("h", names, hardware=dict.fromkeys(names, slow))
        for name, config in fleet.configs.items():
            fleet.configs[name] = msgspec.structs.replace(config, policy=policy or {"type": "Padres"}, time_factor=0.1)
        fleet.start()
        fleet.run(1.0)
        return fleet

    return make
