"""Channels as resources: what is read, and where a wrong one is located."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.spec.channels import CHANNEL, channels

from plimsoll.core.spec import InvalidResourcesError
from plimsoll.core.spec.kinds import kind_named


def test_a_channel_in_a_few_lines() -> None:
    resources = channels({})
    spec = resources.channels["c0"].spec
    assert [(each.name, each.type) for each in spec.parameters] == [("kind", "String")]
    assert [(each.name, each.feed, each.rows, each.within) for each in spec.feeds] == [("r", "reports", "New", None)]
    assert (spec.tables, spec.mode, spec.every, spec.unkeyed_joins) == ((), "Continuous", None, "Refuse")
    assert (kind := kind_named("ch")) is not None
    assert kind.name == "Channel"
    assert resources.channels["c0"].mapping()["spec"] == CHANNEL


@pytest.mark.parametrize(
    ("spec", "path", "found"),
    [
        ({"parameters": [{"name": "a b", "type": "String"}]}, "spec.parameters[0].name", "is not of the right form"),
        ({"parameters": [{"name": "a", "type": "Text"}]}, "spec.parameters[0].type", '"Text" is not a choice here'),
        ({"query": 5}, "spec.query", "5 is not text"),
        ({"mode": "Sometimes"}, "spec.mode", '"Sometimes" is not a choice here'),
        ({"mode": "Repetitive", "every": "100ms"}, "spec.every", "100ms"),
        ({"tables": [{"name": "t", "path": "x", "format": "Orc"}]}, "spec.tables[0].format", "not a choice here"),
    ],
)
def test_wrong_ones_are_located(spec: dict[str, Any], path: str, found: str) -> None:
    with pytest.raises(InvalidResourcesError) as caught:
        channels(spec)
    text = str(caught.value)
    assert f"Channel/c0 {path}: " in text
    assert found in text
