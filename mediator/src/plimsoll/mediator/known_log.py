"""How far the log of a head is known to have been safe on its disk, as the status of its cluster keeps it.

A head that starts is given this with its configuration: what its folder alone cannot tell is told by what lies outside
of it. It is a lower bound, since a status is written a while after the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

MOST_NUMBER: Final = 2**62 - 2**40
"""No epoch and no position of a head comes near it; what someone else writes into a status is rarely just below it.

A head that believed such a number would begin its next epochs behind it, and those have to be numbers here too:
otherwise nothing would be known of its log any more.
"""


class KnownLog(NamedTuple):
    """Up to this position in this epoch; zeros if nothing is known."""

    epoch: int = 0
    position: int = 0


def known_log(cluster: Mapping[str, Any]) -> KnownLog:
    """As the status of a cluster says, of which anyone with rights on it may have written any value."""
    head: object = cluster.get("status", {}).get("head")
    if not isinstance(head, Mapping):
        return KnownLog()
    return _bounded(head.get("logEpoch"), head.get("logPosition"))


def log_status(cluster: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, int]:
    """The fields of the status of a head, by its last report; they never go back, and stay when it ends."""
    reported = _bounded(report.get("epoch"), report.get("log_safe_last"))
    known = max(known_log(cluster), reported)
    return {"logEpoch": known.epoch, "logPosition": known.position} if known.position else {}


def _bounded(epoch: object, position: object) -> KnownLog:
    return KnownLog(epoch, position) if _is_number(epoch) and _is_number(position) and position else KnownLog()


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
