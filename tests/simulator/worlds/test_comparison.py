"""Policies side by side: the same world, a row for each, and balancing lessens what is worst."""

import pytest
from tests.simulator.worlds.test_world_traffic import with_topics

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.types.policy import POLICY_TYPES
from plimsoll.simulator.worlds.comparison import compare, policy_faults, with_policy
from plimsoll.simulator.worlds.world_spec import parse_world


def parse_all(documents):
    return parse([SourceDocument(each, "<test>") for each in documents])


def test_balancing_lowers_the_highest_load(world, documents):
    none, own = compare(documents, parse_world(world), ["none", "own"], 1)
    assert (none["type"], own["type"]) == ("none", "Padres")
    assert none["moves"] == 0
    assert own["moves"] > 0
    assert own["max_load"] < 0.7 * none["max_load"]
    assert own["cov"] < none["cov"]
    assert own["delivered"] == pytest.approx(none["delivered"], rel=0.01)


def test_the_same_seed_gives_the_same_row(world, documents):
    spec = parse_world(world)
    one, other = (compare(documents, spec, ["own"], 3)[0] for _ in range(2))
    assert {**one, "processor_seconds": 0} == {**other, "processor_seconds": 0}


@pytest.mark.parametrize("name", sorted(POLICY_TYPES))
def test_another_policy_keeps_detection(documents, name):
    (fleet,) = [each for each in with_policy(documents, name) if each["kind"] == "BrokerFleet"]
    policy = fleet["spec"]["defaults"]["policy"]
    assert policy["type"] == POLICY_TYPES[name]
    assert policy["detection"] == {"interval": "2s", "stabilizeFor": "5s"}


def test_none_takes_the_policy_away(documents):
    (fleet,) = [each for each in with_policy(documents, "none") if each["kind"] == "BrokerFleet"]
    assert "policy" not in fleet["spec"]["defaults"]


def test_files_without_a_fleet_get_one(documents):
    rest = [each for each in documents if each["kind"] != "BrokerFleet"]
    assert with_policy(rest, "greedy")[-1]["spec"]["defaults"]["policy"] == {"type": "Greedy"}


def test_heads_of_frames_to_clients_are_output(world, documents):
    without = compare(documents, parse_world(world), ["none"], 1)[0]["first_minute"]
    world["links"] = {"clients": 3}
    found = compare(documents, parse_world(world), ["none"], 1)[0]["first_minute"]
    assert found["e1"]["output_utilization"] > 1.01 * without["e1"]["output_utilization"]
    assert found["e1"]["output_rate"] == without["e1"]["output_rate"]


def test_pulsar_takes_the_attribute_of_the_world(world, documents):
    assert policy_faults(["own", "pulsar"], parse_world(world), parse_all(documents)) == [
        "--policy pulsar needs the attribute whose values are topics: give the World its topicAttribute"
    ]
    assert policy_faults(["own"], parse_world(world), parse_all(documents)) == []
    del with_topics(world)["subscribers"][0]["edge"]  # bundles of subscribers at an edge would begin there
    spec = parse_world(world)
    assert policy_faults(["pulsar"], spec, parse_all(documents)) == []
    (row,) = compare(documents, spec, ["pulsar"], 1)
    assert row["type"] == "Pulsar"
    assert row["delivered"] > 0
    assert sum(load > 0.01 for edge in row["loads"].values() for _, load in edge[-5:]) >= 6, "both edges serve bundles"


def test_a_pulsar_policy_of_the_files_is_kept(world, documents):
    own = {"type": "Pulsar", "pulsar": {"topicAttribute": "other", "bundles": {"initial": 8}}}
    documents[0]["spec"]["defaults"]["policy"] = own
    assert policy_faults(["pulsar"], parse_world(world), parse_all(documents)) == []
    (fleet,) = [
        each for each in with_policy(documents, "pulsar", {"topicAttribute": "x"}) if each["kind"] == "BrokerFleet"
    ]
    assert fleet["spec"]["defaults"]["policy"] == own


def test_output_may_be_shared_fairly(world, documents):
    """Subscribers of a rare publication wait behind all others, unless the output is shared fairly."""
    world["publishers"].append(
        {"name": "rare", "cluster": "c1", "rates": [{"perSecond": 1}], "publications": ['{"y": 1}']}
    )
    world["subscribers"].append({"name": "r", "cluster": "c1", "edge": "e1", "subscriptions": ["[y,=,1]"]})
    documents[2]["spec"] |= {
        "bandwidth": {"inputBytesPerSecond": "1M", "outputBytesPerSecond": "15k"}, "emulation": {"base": "10us"},
    }  # fmt: skip
    rows = {}
    for output in ("Fifo", "Fair"):
        world["output"] = output
        (rows[output],) = compare(documents, parse_world(world), ["none"], 1)
    assert rows["Fifo"]["max_load"] == pytest.approx(rows["Fair"]["max_load"], rel=0.02)
    assert rows["Fair"]["delay_mean_seconds"] != rows["Fifo"]["delay_mean_seconds"]
    world["output"] = "Best"
    with pytest.raises(InvalidResourcesError, match="output"):
        parse_world(world)


def test_deadlines_of_a_world_are_defended_and_counted_under_every_policy(world, documents):
    spec = with_topics(world)
    spec |= {"defaultLatency": "1us", "latencies": [{"name": "none", "latency": "10s"}]}
    parsed = parse_world(spec)
    assert policy_faults(["delay-sensitive"], parsed, parse_all(documents)) == []
    own, none = compare(documents, parsed, ["delay-sensitive", "none"], 1)
    assert own["type"] == "DelaySensitive"
    for row in (own, none):
        assert row["late"] == row["with_deadline"] == sum(row["late_by_topic"].values()) > 0
    spec["defaultLatency"] = "1h"
    (row,) = compare(documents, parse_world(spec), ["delay-sensitive"], 1)
    assert (row["late"], row["late_by_topic"]) == (0, {})
    assert row["with_deadline"] > 0


def test_without_an_attribute_there_are_no_deadlines(world, documents):
    assert policy_faults(["delay-sensitive"], parse_world(world), parse_all(documents)) == [
        "--policy delay-sensitive needs the attribute whose values are topics: give the World its topicAttribute"
    ]
    (row,) = compare(documents, parse_world({**world, "defaultLatency": "1s"}), ["none"], 1)
    assert row["with_deadline"] == row["late"] == 0
