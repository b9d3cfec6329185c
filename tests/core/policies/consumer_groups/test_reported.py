"""Groups in a load report, there and back, and what cannot be read."""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.consumer_groups.reported import report_field, reported_groups
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def test_a_report_with_groups_passes_the_wire() -> None:
    groups = {"g": {"slices": 4, "consumers": {"a": {"slices": 4, "backlog": 0}}}}
    report: dict[str, Any] = {"broker": "h", **report_field(groups)}
    read = msg.decode(msg.control, wire.encode(msg.LoadUpdate(report)))
    assert isinstance(read, msg.LoadUpdate)
    assert reported_groups(read.report) == groups
    assert report_field({}) == {}


def test_what_cannot_be_read_is_left_out() -> None:
    assert reported_groups({}) == {}
    assert reported_groups({"consumer_groups": [1]}) == {}
    assert reported_groups({"consumer_groups": {"a": "{", "b": 1, "c": "[]", "d": "{}"}}) == {"d": {}}
    beyond = {"a": '{"cpu": NaN}', "b": '{"cpu": Infinity}', "c": '{"cpu": 1e400}', "d": "{}"}
    assert reported_groups({"consumer_groups": beyond}) == {"d": {}}
