"""The objects of a fleet on one machine as they were while 40 subscribers were served: a head and two edges."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.core.predicates import Attributes
from plimsoll.mediator.world.traffic_survey import SurveyedHead, SurveyedPublisher, TrafficSurvey

HIGH, LOW = "[class,=,'STOCK'],[high,>,20]", "[class,=,'STOCK'],[low,<,5]"


@pytest.fixture
def recorded() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text())
    return found


@pytest.fixture
def surveyed() -> TrafficSurvey:
    """Two publishers at the head, three subscribers at `small`, one at `large`."""
    contents: tuple[Attributes, ...] = tuple({"class": "STOCK", "high": 24.5, "n": number} for number in range(3))
    publishers = (SurveyedPublisher("p", 12.3456, contents, 100), SurveyedPublisher("q", 0.05, contents[:1], 0))
    return TrafficSurvey(
        {"quotes-head": SurveyedHead(publishers, 4, 10.0)},
        {"small": {"a": (HIGH,), "b": (HIGH,), "c": (HIGH, LOW)}, "large": {"d": (HIGH,)}},
    )
