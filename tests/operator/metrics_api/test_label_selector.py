"""Label selectors of autoscalers."""

from __future__ import annotations

import pytest

from plimsoll.operator.metrics_api.label_selector import CHARACTERS_AT_MOST, SelectorError, label_selector

LABELS = {"cluster": "east", "group": "readings"}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        ("", True), ("group=readings", True), ("group==readings,cluster=east", True), ("group=other", False),
        ("cluster=east,group!=readings", False), ("group!=other", True), ("zone!=a", True),
        ("group in (other, readings),cluster=east", True), ("group in (other)", False), ("group notin (other)", True),
        ("group notin (readings,other)", False), ("group", True), ("zone", False), ("!zone", True), ("!group", False),
        ("zone=", False),
    ],
)  # fmt: skip
def test_what_is_selected(text: str, is_selected: bool):
    assert label_selector(text)(LABELS) is is_selected


@pytest.mark.parametrize("text", ["group in readings", "=a", "a,,b", "a=(b)", "a ! b", "x" * (CHARACTERS_AT_MOST + 1)])
def test_what_cannot_be_read_is_refused(text: str):
    with pytest.raises(SelectorError):
        label_selector(text)
