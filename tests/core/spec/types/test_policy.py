"""Policies in specifications: a contradiction is refused, with its place and a remedy."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from plimsoll.core.policies.model.load import NO_THRESHOLD, NO_THRESHOLDS, OverloadThreshold
from plimsoll.core.policies.registry import head_relief_of_spec
from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import POLICY_TYPES, TYPES_WITH_PARAMETERS, DetectionSpec, PolicySpec, PolicyType


def fleet(policy: dict[str, Any]) -> list[SourceDocument]:
    content = {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"},
        "spec": {"defaults": {"policy": policy}},
    }  # fmt: skip
    return [SourceDocument(content)]


@pytest.mark.parametrize(
    ("policy", "place", "remedy"),
    [
        (
            {"detection": {"overload": {"cpu": {"lower": "960m"}}}},
            "detection.overload.cpu.lower: 960m is above `higher`, which is 950m",
            "Lower it, or raise `higher`.",
        ),
        ({"estimation": {"press": {}}}, "estimation.press: parameters of another estimation", "change `type`"),
        ({"estimation": {"type": "Press", "ring": {}}}, "estimation.ring: parameters of another", "change `type`"),
        ({"random": {}}, "random: parameters of another policy than Padres", "change `type`"),
        ({"detection": {"stabilizeChange": 0.05}}, "0.05 is a floating-point number", 'Write "50m"'),
        ({"detection": {"interval": "0s"}}, "detection.interval: 0s is too small", "Write more than 0s"),
        ({"padres": {"balanceThreshold": "2"}}, "balanceThreshold: 2 is too large", "Write at most 1 (ratio)"),
        (
            {"type": "DelaySensitive"},
            "delaySensitive: DelaySensitive needs to know what a topic is",
            "Write `delaySensitive: {topicAttribute: NAME}`.",
        ),
        (
            {
                "type": "DelaySensitive",
                "delaySensitive": {"topicAttribute": "x", "topics": [{"name": "a", "latency": 0}]},
            },
            "delaySensitive.topics[0].latency",
            "",
        ),
        (
            {
                "type": "DelaySensitive",
                "delaySensitive": {"topicAttribute": "x", "thresholds": {"matching": {"lower": "960m"}}},
            },
            "delaySensitive.thresholds.matching.lower: 960m is above `higher`, which is 950m",
            "Lower it, or raise `higher`.",
        ),
        (
            {
                "type": "DelaySensitive",
                "delaySensitive": {
                    "topicAttribute": "x",
                    "thresholds": {"headUplink": {"lower": "960m", "higher": "950m"}},
                },
            },
            "delaySensitive.thresholds.headUplink.lower: 960m is above `higher`, which is 950m",
            "Lower it, or raise `higher`.",
        ),
        (
            {
                "type": "DelaySensitive",
                "delaySensitive": {
                    "topicAttribute": "x",
                    "topics": [{"name": "a", "latency": "1s"}, {"name": "a", "latency": "2s"}],
                },
            },
            "delaySensitive.topics[1].name",
            "",
        ),
        (
            {"type": "Padres", "delaySensitive": {"topicAttribute": "x"}},
            "of another policy than Padres",
            "change `type`",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(policy: dict[str, Any], place: str, remedy: str):
    with pytest.raises(InvalidResourcesError) as caught:
        parse(fleet({"type": "Padres", **policy}))
    assert place in str(caught.value)
    assert remedy in str(caught.value)


def test_a_type_is_enough():
    policy = parse(fleet({"type": "Greedy"})).fleet.spec.defaults.policy
    assert policy is not None
    assert policy.type == "Greedy"


@pytest.mark.parametrize("name", get_args(PolicyType))
def test_a_name_alone_chooses_a_policy_unless_it_has_to_be_given_parameters(name: str):
    if name in TYPES_WITH_PARAMETERS:
        with pytest.raises(InvalidResourcesError):
            parse(fleet({"type": name}))
    else:
        assert name in POLICY_TYPES.values()
        assert parse(fleet({"type": name})).fleet.spec.defaults.policy is not None


def test_a_threshold_of_heads_that_a_block_lacks_is_none():
    own = {"topicAttribute": "x", "thresholds": {"headUplink": {"lower": "800m"}}}
    spec = parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": own})
    policy = head_relief_of_spec(spec)
    assert policy is not None
    assert policy.limits.of("uplink") == OverloadThreshold(0.8, NO_THRESHOLD)
    assert policy.limits.of("downlink") == OverloadThreshold(0.9, 0.95)
    assert policy.limits.of("matching") == NO_THRESHOLDS
    stay = parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": {**own, "publishers": "Stay"}})
    assert head_relief_of_spec(stay) is None


@pytest.mark.parametrize(("interval", "seconds"), [("1s", 15.0), ("5s", 15.0), ("16s", 48.0), ("1h", 10800.0)])
def test_reports_are_valid_for_some_intervals_where_it_is_not_said(interval: str, seconds: float):
    assert parse_block(DetectionSpec, {"interval": interval}).fresh_seconds == seconds
    assert parse_block(DetectionSpec, {"interval": interval, "reportsValidFor": "2h"}).fresh_seconds == 7200.0


def test_reports_that_expire_between_checks_are_refused_and_a_default_never_is():
    def problems(**detection: str) -> list[str]:
        spec = {"defaults": {"policy": {"type": "Padres", "detection": detection}}}
        item = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"}, "spec": spec}
        try:
            parse([SourceDocument(item, "f.yaml")])
        except InvalidResourcesError as error:
            return [each.found for each in error.problems]
        return []

    (found,) = problems(interval="1h", reportsValidFor="1s")
    assert "expire between checks" in found
    assert problems(interval="16s") == problems(interval="16s", reportsValidFor="16s") == []
