"""How long the present container of each broker has been seen: an answer that is older is of the container before.

Times are those of one clock. The start that a node writes down is in whole seconds of a clock of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import uid
from plimsoll.operator.reconcile.observed import ObservedObjects, broker_container


class ContainerAges:
    """The containers of one fleet."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self, observed: ObservedObjects, now: float) -> Mapping[str, float]:
        """By broker, seconds since its container was first seen; unlimited for the first one of a broker."""
        seen: dict[str, tuple[str, float]] = {}
        for broker in observed.brokers():
            before, pod = self._seen.get(broker), observed.pod(broker)
            if pod is None or "running" not in broker_container(pod).get("state", {}):
                if before is not None:
                    seen[broker] = before
                continue
            container = _container_of(pod)
            if before is None:
                seen[broker] = (container, float("-inf"))
            else:
                seen[broker] = before if before[0] == container else (container, now)
        self._seen = seen
        return {broker: now - since for broker, (_, since) in seen.items()}


def _container_of(pod: Object) -> str:
    return f"{uid(pod)}/{broker_container(pod).get('restartCount', 0)}"
