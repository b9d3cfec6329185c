"""The demo with bundles: its fleet, its lines, and its verdict. `make demo-bundles` runs it."""

from plimsoll.core.spec import parse
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.bundle_demo import BUNDLE_SCENARIO, head_of
from plimsoll.demo.options import resource_folder
from plimsoll.local import manifests


def test_its_fleet_is_one_head_with_four_edges_under_pulsar():
    found = parse(manifests.load([str(resource_folder("bundles"))]))
    (cluster,) = found.clusters.values()
    assert sum(group.replicas for group in cluster.spec.edges) == 4
    policy = found.fleet.spec.defaults.policy
    assert policy is not None
    assert policy.type == "Pulsar"
    assert policy.pulsar is not None
    assert (policy.pulsar.shedding.strategy, policy.pulsar.unload) == ("ThresholdShedder", "Transfer")
    assert policy.pulsar.topic_attribute == "topic"


def test_it_is_of_two_hundred_topics_and_leaves_a_minute_for_start_and_audit():
    assert BUNDLE_SCENARIO.topics == 200
    assert BUNDLE_SCENARIO.seconds <= 140


def test_the_head_is_the_broker_that_reports_owners():
    series = LoadSeries()
    series.take({"broker": "e-0", "epoch": 1, "seq": 1, "bundles": []}, 0.0)
    assert head_of(series) == ""
    series.take({"broker": "h", "epoch": 1, "seq": 1, "bundle_owners": {}}, 0.0)
    assert head_of(series) == "h"
