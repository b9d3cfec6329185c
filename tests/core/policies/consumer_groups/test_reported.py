"""Groups in a load report, there and back, and what cannot be read."""

from __future__ import annotations

import msgspec

from plimsoll.core.policies.consumer_groups.reported import report_field, reported_groups
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def test_a_report_with_groups_passes_the_wire() -> None:
    groups = {"g": {"slices": 4, "consumers": {"a": {"slices": 4, "backlog": 0}}}}
    field = report_field(groups)
    sent = wire.encode(msg.LoadUpdate({"broker": "h", **field}))
    assert reported_groups(msgspec.msgpack.Decoder(msg.ControlRecord).decode(sent).report) == groups
    assert report_field({}) == {}


def test_what_cannot_be_read_is_left_out() -> None:
    assert reported_groups({}) == {}
    assert reported_groups({"consumer_groups": [1]}) == {}
    assert reported_groups({"consumer_groups": {"a": "{", "b": 1, "c": "[]", "d": "{}"}}) == {"d": {}}
