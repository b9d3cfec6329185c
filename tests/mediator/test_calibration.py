"""The measurements of brokers with a profile."""

import dataclasses
from typing import Any

from plimsoll.mediator.calibration import MatchTimeFit, match_time_fit, profile_status
from plimsoll.mediator.resource_status import ObservedBroker

PROFILE: dict[str, Any] = {"kind": "HardwareProfile", "metadata": {"name": "small", "generation": 2}}
REPORT = {
    "match_base_seconds": 2e-6, "match_seconds_per_match": 5e-7, "input_rate": 10.0, "output_rate": 40.0,
    "match_delay_seconds": 5e-6,
}  # fmt: skip
SEEN = ObservedBroker("e", "edge", "east", "small", "", "", "", report=REPORT, report_age=1.0)


def told(*brokers: ObservedBroker) -> dict[str, Any]:
    return profile_status(PROFILE, brokers, 2.0, "10:00")


def calibrated(*brokers: ObservedBroker) -> tuple[str, str, str]:
    found = told(*brokers)
    [condition] = found["conditions"]
    assert ("calibrated" in found) == (condition["status"] == "True"), "no figures without the condition"
    return condition["status"], condition["reason"], condition["message"]


def test_the_average_of_what_its_brokers_measured_and_the_largest_error():
    other = dataclasses.replace(SEEN, report={**REPORT, "match_base_seconds": 3e-6})
    found = told(SEEN, other, dataclasses.replace(SEEN, report={}), dataclasses.replace(SEEN, profile="big"))
    assert (found["brokers"], found["observedGeneration"]) == (3, 2)
    assert found["calibrated"] == {
        "brokers": 2, "publicationNanoseconds": 2500, "matchNanoseconds": 500, "errorPercent": 20,
    }  # fmt: skip
    [condition] = found["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Calibrated", "True", "Measured")
    assert condition["message"] == "2 of 3 brokers have measured it"


def test_no_broker_has_measured_it():
    found = told()
    assert found["brokers"] == 0
    assert "calibrated" not in found
    assert [each["reason"] for each in found["conditions"]] == ["NotMeasured"]


def test_what_was_measured_on_other_hardware_is_not_of_this():
    old = dataclasses.replace(SEEN, outdated=True)
    why = "the measurement of e is of other hardware: it runs with earlier settings until it is replaced"
    assert calibrated(old) == ("False", "Rolling", why)
    assert calibrated(old, SEEN) == ("True", "Measured", "1 of 2 brokers have measured it")
    assert calibrated(dataclasses.replace(old, report={}))[1] == "NotMeasured"


def test_what_was_measured_long_ago_is_no_measurement():
    assert calibrated(dataclasses.replace(SEEN, report_age=6.0))[0] == "True"
    gone = dataclasses.replace(SEEN, report_age=6.1)
    assert calibrated(gone) == ("False", "Stale", "the measurement of e is old: it no longer reports")
    assert calibrated(gone, SEEN)[2] == "1 of 2 brokers have measured it"


def test_without_publications_there_is_no_error():
    assert match_time_fit({**REPORT, "input_rate": 0.0}) == MatchTimeFit(2e-6, 5e-7, None)
    idle = dataclasses.replace(SEEN, report={**REPORT, "match_delay_seconds": 0.0})
    assert "errorPercent" not in told(idle)["calibrated"]


def test_what_cannot_be_is_no_measurement():
    for broken in ({"match_base_seconds": -1.0}, {"match_seconds_per_match": "x"}, {"match_base_seconds": None}):
        assert match_time_fit({**REPORT, **broken}) is None
