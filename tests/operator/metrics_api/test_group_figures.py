"""What autoscalers are told of consumer groups."""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.consumer_groups.reported import report_field
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.metrics_api.group_figures import STALE_SECONDS, group_figures


def reading(age: float | None, **groups: Any) -> BrokerReading:
    return BrokerReading(report=report_field(groups), report_age=age)


def test_lag_and_work_of_each_group_as_quantities():
    readings = {"east-head": reading(2.0, b={"lag": 7, "busy_consumers": 1.2344}, a={"lag": 0, "busy_consumers": 2.0})}
    found = [(x.metric, x.labels, x.value, x.age_seconds) for x in group_figures(readings, {"east-head": "east"})]
    a, b = {"cluster": "east", "group": "a"}, {"cluster": "east", "group": "b"}
    assert found == [
        ("plimsoll_group_lag_items", a, "0", 2.0), ("plimsoll_group_busy_consumers", a, "2", 2.0),
        ("plimsoll_group_lag_items", b, "7", 2.0), ("plimsoll_group_busy_consumers", b, "1234m", 2.0),
    ]  # fmt: skip


def test_a_head_that_is_silent_or_not_known_has_no_figure():
    figures = {"g": {"lag": 7, "busy_consumers": 1.0}}
    readings = {
        "old-head": reading(STALE_SECONDS + 1, **figures), "new-head": reading(None, **figures),
        "strange-head": reading(1.0, **figures),
    }  # fmt: skip
    assert list(group_figures(readings, {"old-head": "old", "new-head": "new"})) == []


def test_what_a_head_of_another_version_says_is_left_out():
    for lag, busy in ((True, "x"), (float("nan"), float("inf"))):
        readings = {"h": reading(1.0, g={"members": 2, "lag": lag, "busy_consumers": busy})}
        assert list(group_figures(readings, {"h": "c"})) == []
