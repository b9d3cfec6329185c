"""Publishers and subscribers of a survey: rates and contents as measured, lists at their edges, names kept apart."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from plimsoll.mediator.world.surveyed_traffic import rate_text, surveyed_traffic
from plimsoll.mediator.world.traffic_survey import SurveyedHead, SurveyedPublisher, TrafficSurvey

HEADS, EDGES = {"quotes-head": "quotes"}, {"small": "quotes", "large": "quotes"}


def test_publishers_go_on_with_what_they_published(surveyed):
    p, q = surveyed_traffic(surveyed, HEADS, EDGES).publishers
    assert (p["name"], p["cluster"], p["rates"], p["payload"]) == ("p", "quotes", [{"perSecond": "12.35"}], 100)
    assert [json.loads(each)["n"] for each in p["publications"]] == [0, 1, 2]
    assert q["rates"] == [{"perSecond": "0.05000"}]
    assert "payload" not in q


def test_rates_have_four_digits():
    assert [rate_text(each) for each in (0.0012345, 1.0, 123.456, 98765.4)] == ["0.001234", "1.000", "123.5", "98765"]


def test_equal_lists_at_one_edge_are_one_entry(surveyed):
    found = surveyed_traffic(surveyed, HEADS, EDGES).subscribers
    assert [(each["name"], each.get("count", 1), each["edge"]) for each in found] == [
        ("d", 1, "large"), ("small-list-1", 2, "small"), ("c", 1, "small"),
    ]  # fmt: skip
    assert len(found[2]["subscriptions"]) == 2


def test_names_of_groups_are_no_names_of_subscribers(surveyed):
    subscribers = {**surveyed.subscribers, "large": {"small-list-1-1": ("[a,=,1]",)}}
    found = surveyed_traffic(replace(surveyed, subscribers=subscribers), HEADS, EDGES).subscribers
    assert [each["name"] for each in found] == ["small-list-1-1", "small-lists-1", "c"]


def test_one_that_is_moved_during_the_survey_is_there_once(surveyed):
    subscribers = {"large": {"a": ("[a,=,1]",)}, "small": {"a": ("[a,=,1]",)}}
    found = surveyed_traffic(replace(surveyed, subscribers=subscribers), HEADS, EDGES)
    assert [(each["name"], each["edge"]) for each in found.subscribers] == [("a", "large")]
    assert any("1 subscribers that were being moved" in note for note in found.notes)


def test_publishers_of_one_name_at_two_heads_stay_two():
    one = SurveyedPublisher("p", 1.0, ({"a": 1},), 0)
    heads = {"x-head": SurveyedHead((one,), 1, 1.0), "y-head": SurveyedHead((one,), 1, 1.0)}
    found = surveyed_traffic(TrafficSurvey(heads, {}), {"x-head": "x", "y-head": "y"}, {})
    assert [(each["name"], each["cluster"]) for each in found.publishers] == [("p", "x"), ("p at y (2)", "y")]


def test_what_json_cannot_say_is_left_out():
    one = SurveyedPublisher("p", 1.0, ({"a": math.nan}, {"a": 1.5}), 0)
    two = SurveyedPublisher("q", 1.0, ({"a": math.inf},), 0)
    survey = TrafficSurvey({"quotes-head": SurveyedHead((one, two), 2, 1.0, is_sampled=True)}, {})
    found = surveyed_traffic(survey, HEADS, {})
    assert [each["publications"] for each in found.publishers] == [['{"a": 1.5}']]
    assert any("a sample of those in its log" in note for note in found.notes)
