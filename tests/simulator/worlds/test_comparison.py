"""Policies side by side: the same world, a row for each, and balancing lessens what is worst."""

import pytest

from plimsoll.core.spec.types.policy import POLICY_TYPES
from plimsoll.simulator.worlds.comparison import compare, with_policy
from plimsoll.simulator.worlds.world_spec import parse_world


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
