"""Loads: read from reports, predicted by the definitions, averaged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.core.policies.model.load import BrokerLoad, LoadChange, combined_load, mean_load
from plimsoll.core.policies.model.match_delay import FittedMatchDelay

REPORT = {
    "broker": "b1", "cluster": "c", "role": "edge", "epoch": 3, "seq": 7, "time_us": 1_500_000, "state": "OK",
    "input_utilization": 0.5, "output_utilization": 0.25, "match_delay_seconds": 0.05, "input_rate": 10.0,
    "output_rate": 20.0, "output_bytes_per_second": 2500.0, "cpu_ratio": 0.1, "memory_ratio": 0.2,
    "balanced_set": ["b2"], "subscribers": 5, "subscriptions": 5, "capacity": 2.0, "counters": {},
}  # fmt: skip


def test_a_report_becomes_a_load():
    load = BrokerLoad.from_report(REPORT)
    assert (load.name, load.cluster, load.epoch, load.seq, load.time) == ("b1", "c", 3, 7, 1.5)
    assert load.balanced_set == {"b2"}
    assert load.bandwidth == pytest.approx(10_000.0)  # 2500 B/s are a quarter of it
    assert BrokerLoad.from_report({**REPORT, "bandwidth_bytes_per_second": 9000.0}).bandwidth == 9000.0
    assert BrokerLoad.from_report(REPORT, bandwidth=8000.0).bandwidth == 8000.0


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("broker", None, "names its broker"),
        ("state", "TIRED", "none of OK, BUSY, N/A, STABILIZING"),
        ("cpu_ratio", float("nan"), "b1 reports cpu_ratio nan"),
        ("input_rate", -1.0, "b1 reports input_rate -1.0"),
        ("subscribers", True, "b1 reports subscribers True"),
    ],
)
def test_what_cannot_be_is_refused(field: str, value: object, what: str):
    with pytest.raises(ValueError, match=what):
        BrokerLoad.from_report({**REPORT, field: value})


def test_a_change_is_predicted_by_the_definitions():
    """4.2: d' = (5 + 5) / 5 x 0.05 = 0.1 s; I = 12/s x 0.1 = 1.2; O = 4500 / 10000."""
    after = BrokerLoad.from_report(REPORT).after(LoadChange(5, 5, 2.0, 16.0, 2000.0))
    assert after.match_delay_seconds == pytest.approx(0.1)
    assert after.input_utilization == pytest.approx(1.2)
    assert after.output_utilization == pytest.approx(0.45)
    assert (after.subscribers, after.subscriptions) == (10, 10)


def test_a_fitted_delay_goes_with_matches():
    """0.01 + 0.02 x matches: of 2 per publication there are 3, 36 deliveries of 12. That is 0.02 s more."""
    load = BrokerLoad.from_report(REPORT, delay=FittedMatchDelay(0.01, 0.02, 2.0))
    assert load.after(LoadChange(5, 5, 2.0, 16.0, 0.0)).match_delay_seconds == pytest.approx(0.07)
    assert load.after(LoadChange()).match_delay_seconds == pytest.approx(0.05)


def test_nothing_falls_below_nothing():
    after = BrokerLoad.from_report(REPORT).after(LoadChange(-9, -9, -99.0, -99.0, -9999.0))
    assert tuple(after.measures) == pytest.approx((0.0, 0.0, 0.0, 0.1, 0.2, 0.0, 0.0, 0.0))
    assert after.subscribers == 0


def test_processor_and_memory_follow_input_and_subscribers():
    load = replace(BrokerLoad.from_report(REPORT), cpu_per_input=0.5, memory_per_subscriber=0.01)
    after = load.after(LoadChange(10, 0, 6.0))  # I: 0.5 -> 0.8
    assert after.cpu_ratio == pytest.approx(0.25)
    assert after.memory_ratio == pytest.approx(0.3)


def test_reports_are_averaged_within_one_life_of_a_broker():
    reports = [replace(BrokerLoad.from_report(REPORT), input_utilization=value, epoch=epoch, seq=seq)
               for seq, (epoch, value) in enumerate([(2, 9.0), (3, 0.2), (3, 0.4)])]  # fmt: skip
    averaged = mean_load(reports)
    assert averaged.input_utilization == pytest.approx(0.3)
    assert averaged.seq == 2


def test_an_interval_without_publications_says_nothing_of_the_delay():
    """A broker that has just started: nothing, then 20/s, then 60/s, each of which took 4.8 ms."""
    rates = [(0.0, 0.0), (20.0, 0.0048), (60.0, 0.0048)]
    reports = [
        replace(BrokerLoad.from_report(REPORT), input_rate=rate, match_delay_seconds=delay) for rate, delay in rates
    ]
    assert mean_load(reports).match_delay_seconds == pytest.approx(0.0048)
    assert mean_load(reports).input_rate == pytest.approx(80 / 3)
    idle = replace(reports[0], match_delay_seconds=0.002)
    assert mean_load([idle, idle]).match_delay_seconds == pytest.approx(0.002)


def test_a_cluster_is_the_average_of_its_edges():
    one, other = (
        BrokerLoad.from_report(REPORT),
        replace(BrokerLoad.from_report(REPORT), name="b2", input_utilization=0.1, state="BUSY"),
    )
    whole = combined_load("c", [one, other])
    assert (whole.name, whole.state, whole.subscribers) == ("c", "BUSY", 10)
    assert whole.input_utilization == pytest.approx(0.3)
    with pytest.raises(ValueError, match="cluster c has no edges"):
        combined_load("c", [])
