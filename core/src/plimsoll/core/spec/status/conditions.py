"""Conditions of an object's status, by Kubernetes' conventions.

A condition is an observation, never a state: it names the generation of the specification for which it holds, and its
reason in one CamelCase word. Its transition time changes only with its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.core.printable import printable_lines

ConditionState = Literal["True", "False", "Unknown"]


@dataclass(frozen=True)
class Condition:
    """One observation: `type` is what is asked, `reason` one word, `message` a sentence for a person."""

    type: str
    status: ConditionState
    reason: str
    message: str = ""


def merge_conditions(
    old: Sequence[Mapping[str, Any]], new: Iterable[Condition], generation: int, time: str
) -> list[dict[str, Any]]:
    """Conditions as they are stored, sorted by type; `time` is now, as RFC 3339 text."""
    result = {str(item["type"]): dict(item) for item in old}
    for condition in new:
        before = result.get(condition.type)
        changed = before is None or before["status"] != condition.status
        result[condition.type] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": printable_lines(condition.message),
            "observedGeneration": generation,
            "lastTransitionTime": time if before is None or changed else before["lastTransitionTime"],
        }
    return [result[name] for name in sorted(result)]
