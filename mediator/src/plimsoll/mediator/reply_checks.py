"""Checks of brokers' replies and reports: pure functions from a mapping to the first invalid field.

A broker may be of another version, or faulty. A message is taken whole or not at all, so that no code behind the
control socket has to doubt a number; unknown fields may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from plimsoll.core.protocol.messages import BrokerState

IMPLAUSIBLE_FROM: Final = 1e15
"""An upper bound for all rates, sizes, ratios and times in seconds."""
Fault = tuple[str, str]
"""The name of a field, and what is wrong with it."""

_Check = tuple[Callable[[Any], bool], str]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < IMPLAUSIBLE_FROM


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_WHOLE: Final[_Check] = (_is_whole, "a whole number from 0")
_AMOUNT: Final[_Check] = (lambda value: value is None or _is_amount(value), "a number from 0")
_NAMES: Final[_Check] = (_is_names, "a list of names")
_BOOLEAN: Final[_Check] = (lambda value: isinstance(value, bool), "true or false")
_NAME: Final[_Check] = (lambda value: isinstance(value, str) and bool(value), "a name")
_STATE: Final[_Check] = (lambda value: value in get_args(BrokerState), f"one of {', '.join(get_args(BrokerState))}")
_AMOUNTS: Final[_Check] = (
    lambda value: isinstance(value, dict) and all(each is None or _is_amount(each) for each in value.values()),
    "numbers from 0 by name",
)

STATUS_CHECKS: Final[Mapping[str, _Check]] = {
    "epoch": _WHOLE,
    "ready": _BOOLEAN,
    "edges": _NAMES,
    "waiting_for": _NAMES,
}
REPORT_CHECKS: Final[Mapping[str, _Check]] = {
    "broker": _NAME,
    "state": _STATE,
    "balanced_set": _NAMES,
    "neighbors_down": _NAMES,
    "cluster_state": _STATE,
    "cluster_load": _AMOUNTS,
    **dict.fromkeys(("epoch", "seq", "subscribers", "subscriptions", "time_us"), _WHOLE),
    **dict.fromkeys(
        (
            "interval_seconds", "input_utilization", "output_utilization", "match_delay_seconds", "input_rate",
            "output_rate", "output_bytes_per_second", "input_queue_delay_seconds", "output_queue_delay_seconds",
            "input_queue_messages", "output_queue_messages", "output_queue_bytes", "cpu_ratio", "memory_ratio",
            "capacity", "bandwidth_bytes_per_second", "input_bytes_per_second", "log_limit_bytes",
            "log_bytes_per_second",
        ),
        _AMOUNT,
    ),
}  # fmt: skip


def status_fault(status: Mapping[str, Any]) -> Fault | None:
    """The first invalid field of a status answer; None if it is valid."""
    return _first_fault(status, STATUS_CHECKS)


def report_fault(report: Mapping[str, Any], *, named: bool = True) -> Fault | None:
    """The first invalid field of a load report, which has a broker's name if `named`; None if it is valid."""
    if named and "broker" not in report:
        return "broker", "is missing"
    return _first_fault(report, REPORT_CHECKS)


def _first_fault(said: Mapping[str, Any], wanted: Mapping[str, _Check]) -> Fault | None:
    for field, (is_right, words) in wanted.items():
        if field in said and not is_right(said[field]):
            return field, f"is {_shown(said[field])}, not {words}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
