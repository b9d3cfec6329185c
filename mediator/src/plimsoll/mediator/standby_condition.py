"""The condition `StandbyFollows` of a cluster whose head has a standby, and what its status says of that one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec.status.conditions import Condition

CONDITION = "StandbyFollows"


def standby_conditions(status: Mapping[str, Any], *, wants: bool) -> list[Condition]:
    """By the stored leadership: whether the head may be lost at any moment. None of a head without a standby."""
    if not wants:
        return []
    stored = stored_leadership(status)
    if not stored.term:
        return [Condition(CONDITION, "False", "NoLeader", "neither process of the head has been told to lead yet")]
    if not stored.standby:
        text = f"process {stored.leader} leads alone, in term {stored.term}, until its standby has caught up"
        return [Condition(CONDITION, "False", "LeadsAlone", text)]
    text = f"process {stored.leader} leads in term {stored.term}; process {1 - stored.leader} has all of its log"
    return [Condition(CONDITION, "True", "Following", text)]


def standby_summary(
    status: Mapping[str, Any], leader: Mapping[str, object] = MappingProxyType({}), pod: str = "", node: str = ""
) -> dict[str, Any]:
    """What a status says of the standby. `leader`: what the head says of it. `pod`, `node`: where it runs, if known."""
    stored = stored_leadership(status)
    behind = leader.get("standby_behind_bytes")
    told: dict[str, Any] = {"process": 1 - stored.leader, "inSync": stored.standby > 0}
    if leader.get("standby_linked") and isinstance(behind, int):
        told["behindBytes"] = behind
    return {"standby": {**told, **({"pod": pod} if pod else {}), **({"node": node} if node else {})}}
