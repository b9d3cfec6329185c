"""What a broker of the model takes in memory: the process, those that it serves, and what waits.

The figures are of a real edge, measured by `python -m bench.broker.edge_memory`. What a real one takes for a compiled
matching loop, from some thousand subscriptions without an equality on, is left out, and so is a head's log.
"""

from __future__ import annotations

from typing import Final

PROCESS_BYTES: Final = 44_040_192
SUBSCRIBER_BYTES: Final = 2_073
SUBSCRIPTION_BYTES: Final = 3_344


def memory_ratio(limit_bytes: int, subscribers: int, subscriptions: int, waiting_bytes: float) -> float:
    """Memory over the limit of the profile. `waiting_bytes`: of publications and deliveries in the queues."""
    taken = PROCESS_BYTES + SUBSCRIBER_BYTES * subscribers + SUBSCRIPTION_BYTES * subscriptions + waiting_bytes
    return taken / limit_bytes
