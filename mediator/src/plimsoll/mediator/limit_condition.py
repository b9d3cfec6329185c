"""The condition `WithinLimits` of a cluster with brokers at a limit of their machine: who, and which limit.

A cluster that has never been at one has no such condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.resource_status import ObservedBroker

CONDITION: Final = "WithinLimits"
NAMED_AT_MOST: Final = 3


def limit_conditions(status: Mapping[str, Any], brokers: Iterable[ObservedBroker]) -> list[Condition]:
    """The condition, by the last reports. `status`: of the cluster, as it was."""
    limits = {each.name: _limit(each) for each in brokers}
    reached = [f"{name} ({limit} open files)" for name, limit in sorted(limits.items()) if limit]
    if reached:
        more = f" and {len(reached) - NAMED_AT_MOST} more" if len(reached) > NAMED_AT_MOST else ""
        names = ", ".join(reached[:NAMED_AT_MOST])
        text = f"connections cannot be accepted, as the limit of open files is reached: {names}{more}"
        return [Condition(CONDITION, "False", "OpenFilesReached", text)]
    if any(each.get("type") == CONDITION for each in status.get("conditions", ())):
        return [Condition(CONDITION, "True", "LimitsKept", "all brokers accept connections again")]
    return []


def _limit(broker: ObservedBroker) -> int:
    found = (broker.report or {}).get("open_files_limit", 0)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
