"""The metrics of a broker: complete, documented, and with labels that cannot grow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.broker.monitoring.metrics import PREFIX, render_metrics
from plimsoll.broker.monitoring.snapshot import BrokerSnapshot
from plimsoll.broker.monitoring.usage_meter import BOUNDS_SECONDS, RoundDurations
from plimsoll.core.policies.consumer_groups.reported import report_field
from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.policies.model.load import OverloadThreshold, ResourceThresholds
from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report

PAGE = Path(__file__).resolve().parents[3] / "docs" / "broker.md"


GROUP = {
    "slices": 2, "without_consumer": 0, "in_session": 0, "members": 1, "lag": 5, "backlog": 3, "busy_consumers": 0.5,
    "items_per_second": 9.0,
    "unassigned_publications": 4, "counts": {"joined": 1, "left": 0, "gone": 0, "moved": 5},
    "caches": {"merged": 2, "slow": 0, "uncached": 1, "lost": 0}, "slice_backlogs": {"0": 3},
    "slice_lags": {"0": 5},
}  # fmt: skip


DISK_METRICS = ("log_disk_full", "log_syncs", "log_damages", "log_unchecked_bytes")
LOG_DISK = {
    "log_sync": "Always", "log_disk_bytes": 5, "log_disk_limit_bytes": 9, "log_fault": "no room", "log_syncs": 3,
    "log_sync_seconds": 0.5, "log_rounds_held": 2, "log_damages": 1, "log_read_faults": 2,
    "log_unchecked_bytes": 7,
}  # fmt: skip


STANDBY = {"term": 3, "standby_in_sync": 9, "standby_behind_bytes": 70, "standby_rounds_held": 2}


def snapshot(**given: object) -> BrokerSnapshot:
    rounds = RoundDurations()
    for seconds in (0.0002, 0.003, 0.003):
        rounds.observe(seconds)
    values: dict[str, Any] = {
        "at": 5.0,
        "labels": {"broker": "e", "cluster": "c", "fleet": "f", "role": "edge", "version": "1"},
        "epoch": 2**60 + 2**20,
        "unready": "",
        "report": {
            "state": "BUSY",
            "cpu_ratio": 0.5,
            "subscriptions": 7,
            "subscribers": 3,
            "input_queue_messages": 2,
            "output_queue_bytes": 99,
            "round_trip_seconds": {"client": 0.2, "head": 0.004},
            "round_trip_median_seconds": {"client": 0.1, "head": 0.004},
            **topic_report(
                [
                    TopicLoad(1, "fast", depth=9, delivery_rate=90.0, required_seconds=0.5, transmission_seconds=0.2),
                    TopicLoad(2, "someone's", depth=4, delivery_rate=8.0, required_seconds=0.9, broker_seconds=0.1),
                    TopicLoad(3, "another's", depth=1, delivery_rate=8.0, required_seconds=2.0),
                    TopicLoad(4, "free", depth=77),
                ]
            ),
            **report_fields([BundleLoad(HashRange(0, 2**31), 2, 5, 9, 1.5, 3.0, 150.0, 300.0)]),
            **report_field({"g": GROUP}),
        },
        "counters": {
            "deliveries_dropped": 4,
            "gaps_in": 1,
            "publications_repeated": 2,
            "relays_repeated": 3,
            "frames_refused_version": 5,
            "records_refused_order": 6,
            "said_Deliver": 1000,
        },
        "totals": {"arrivals": 10, "deliveries": 20, "bytes_out": 3000},
        "served": 10,
        "service_seconds": 0.25,
        "links": 8,
        "sessions": 1,
        "arriving": 2,
        "outcomes": {"moved": 11},
        "process": {"memory_bytes": 1024, "data_connections_accepted": 12, "keys_fault": "", **LOG_DISK, **STANDBY},
        "quota_holds": 9,
        "link_holds": 13,
        "refusals": {"curve": 13, "role": 1},
        "rounds": rounds,
        "thresholds": ResourceThresholds(input=OverloadThreshold(0.7, 0.8)),
        "named_topics": {1: "fast"},
        "late": {0: 3, 1: 7},
        **given,
    }
    return BrokerSnapshot(**values)


def families(of: BrokerSnapshot) -> dict[str, Metric]:
    return {
        family.name.removeprefix(PREFIX): family
        for family in text_string_to_metric_families(render_metrics(of).decode())
    }


def test_a_log_on_a_disk_has_figures_of_its_own():
    assert "log_disk_full" not in families(snapshot(process={"memory_bytes": 1024}))
    found = families(snapshot())
    values = {name: found[name].samples[0].value for name in DISK_METRICS}
    assert values == {"log_disk_full": 1, "log_syncs": 3, "log_damages": 3, "log_unchecked_bytes": 7}


def test_a_head_with_a_standby_says_whether_it_may_be_lost():
    assert "standby_in_sync" not in families(snapshot(process={"memory_bytes": 1024}))
    found = families(snapshot())
    names = ("standby_term", "standby_in_sync", "standby_behind_bytes", "standby_rounds_held")
    assert [found[name].samples[0].value for name in names] == [3, 1, 70, 2]


def test_round_trips_are_by_role_of_the_peer_and_nothing_else():
    found = {(s.labels["peer"], s.labels["statistic"]): s.value
             for s in families(snapshot())["link_round_trip_seconds"].samples}  # fmt: skip
    assert found == {
        ("client", "max"): 0.2, ("edge", "max"): 0, ("head", "max"): 0.004,
        ("client", "median"): 0.1, ("edge", "median"): 0, ("head", "median"): 0.004,
    }  # fmt: skip


def value(of: BrokerSnapshot, name: str, **labels: str) -> float:
    found = [
        sample.value
        for family in families(of).values()
        for sample in family.samples
        if sample.name == PREFIX + name and sample.labels == labels
    ]
    assert len(found) == 1, (name, labels, found)
    return float(found[0])


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("messages_received_total", {}, 10),
        ("messages_delivered_total", {}, 20),
        ("output_bytes_total", {}, 3000),
        ("messages_dropped_total", {"reason": "slow-subscriber"}, 4),
        ("messages_dropped_total", {"reason": "publication-refused"}, 0),
        ("duplicates_suppressed_total", {}, 5),
        ("gaps_detected_total", {}, 1),
        ("match_duration_seconds_sum", {}, 0.25),
        ("match_duration_seconds_count", {}, 10),
        ("round_duration_seconds_bucket", {"le": "0.00025"}, 1),
        ("round_duration_seconds_bucket", {"le": "0.005"}, 3),
        ("round_duration_seconds_bucket", {"le": "+Inf"}, 3),
        ("round_duration_seconds_count", {}, 3),
        ("queue_messages", {"queue": "input"}, 2),
        ("queue_bytes", {"queue": "output"}, 99),
        ("subscriptions", {}, 7),
        ("subscribers", {}, 3),
        ("links", {}, 8),
        ("sessions", {}, 1),
        ("arriving_subscribers", {}, 2),
        ("bundle_topics", {"bundle": "0x00000000_0x80000000"}, 2),
        ("bundle_subscribers", {"bundle": "0x00000000_0x80000000"}, 5),
        ("bundle_messages_per_second", {"bundle": "0x00000000_0x80000000", "direction": "in"}, 1.5),
        ("bundle_messages_per_second", {"bundle": "0x00000000_0x80000000", "direction": "out"}, 3.0),
        ("bundle_bytes_per_second", {"bundle": "0x00000000_0x80000000", "direction": "in"}, 150.0),
        ("bundle_bytes_per_second", {"bundle": "0x00000000_0x80000000", "direction": "out"}, 300.0),
        ("topic_depth", {"topic": "fast"}, 9),
        ("topic_depth", {"topic": "*"}, 4),
        ("topic_latency_seconds", {"topic": "fast"}, 0.30000000000000004),
        ("topic_time_left_seconds", {"topic": "*"}, 0.9 - 0.6),
        ("topic_required_latency_seconds", {"topic": "fast"}, 0.5),
        ("topic_late_deliveries_total", {"topic": "fast"}, 7),
        ("topic_late_deliveries_total", {"topic": "*"}, 3),
        ("session_members_total", {"outcome": "moved"}, 11),
        ("session_members_total", {"outcome": "returned"}, 0),
        ("auth_failures_total", {"mechanism": "curve"}, 13),
        ("auth_failures_total", {"mechanism": "revoked"}, 0),
        ("refused_total", {"kind": "frame", "reason": "version"}, 5),
        ("refused_total", {"kind": "record", "reason": "order"}, 6),
        ("quota_holds_total", {}, 9),
        ("link_holds_total", {}, 13),
        ("epoch", {}, 2**60 + 2**20),
        ("ready", {}, 1),
        ("state", {"state": "BUSY"}, 1),
        ("state", {"state": "OK"}, 0),
        ("cpu_ratio", {}, 0.5),
        ("resident_memory_bytes", {}, 1024),
        ("connections_total", {"lane": "data", "event": "accepted"}, 12),
        ("connections_total", {"lane": "control", "event": "accept_failed"}, 0),
        ("info", {"broker": "e", "cluster": "c", "fleet": "f", "role": "edge", "version": "1"}, 1),
    ],
)
def test_a_figure_of_the_snapshot_has_its_series(name: str, labels: dict[str, str], expected: float):
    assert value(snapshot(), name, **labels) == expected


def test_a_broker_that_is_not_ready_says_so():
    assert value(snapshot(unready="leaving"), "ready") == 0


def test_a_file_of_keys_that_cannot_be_read_is_seen():
    assert value(snapshot(process={"keys_fault": "gone"}), "keys_fault") == 1


def test_a_broker_that_has_not_reported_yet_has_all_series_already():
    fresh = snapshot(report={}, counters={}, totals={}, outcomes={}, process={}, refusals={}, rounds=RoundDurations())
    shapes = [
        {(s.name, *s.labels.values()) for f in families(of).values() for s in f.samples} for of in (fresh, snapshot())
    ]
    kinds = ("refused_total", "bundle_", "topic_", "group_", "log_", "standby_")
    later = tuple(PREFIX + each for each in kinds)
    assert {shape for shape in shapes[1] - shapes[0] if not shape[0].startswith(later)} == set()


def test_no_label_names_what_there_may_be_any_number_of():
    labels = {label for family in families(snapshot()).values() for sample in family.samples for label in sample.labels}
    assert labels == {
        "broker", "cluster", "fleet", "role", "version",  # of info, which has one series
        "state", "reason", "le", "queue", "outcome", "mechanism", "kind", "lane", "event", "resource", "bound",
        "peer", "statistic",
        "group", "slice",  # as many as are declared, or made by those who may
        "bundle", "direction",  # as many as the policy allows, whatever is published
        "topic",  # those that the policy names
    }  # fmt: skip
    series = sum(len(family.samples) for family in families(snapshot()).values())
    assert series < 160


def test_every_metric_is_explained_and_named_by_the_rules():
    for name, family in families(snapshot()).items():
        assert len(family.documentation.split()) >= 3, name
        assert family.documentation.endswith("."), name
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", name)
        assert (family.type == "counter") == any(sample.name.endswith("_total") for sample in family.samples), name


def test_the_page_has_every_metric_and_no_other():
    listed = set(re.findall(r"`plimsoll_broker_([a-z_]+)", PAGE.read_text()))
    ours = {f"{name}_total" if family.type == "counter" else name for name, family in families(snapshot()).items()}
    assert listed == ours


def test_buckets_are_as_many_as_bounds():
    buckets = [s for s in families(snapshot())["round_duration_seconds"].samples if s.name.endswith("_bucket")]
    assert len(buckets) == len(BOUNDS_SECONDS) + 1


def test_the_load_line_is_that_of_the_policy():
    assert value(snapshot(), "load_threshold_ratio", resource="input", bound="lower") == 0.7
    assert value(snapshot(), "load_threshold_ratio", resource="memory", bound="higher") == 0.95
    assert "load_threshold_ratio" not in families(snapshot(thresholds=None)), "without a policy there is no line"
