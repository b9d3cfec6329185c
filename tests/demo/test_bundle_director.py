"""What is done in the run with bundles: which bundle is unloaded, and which edge is killed."""

from tests.demo.analysis.test_bundle_history import FIRST, HIGH, SECOND, look

from plimsoll.core.spec import parse
from plimsoll.core.spec.problems import SourceDocument
from plimsoll.demo.bundle_director import busiest_bundle, fullest_edge, times_of, with_lookup, without_one_end
from plimsoll.demo.options import resource_folder
from plimsoll.local import manifests

SEEN = look(1.0, {FIRST: "e-0", SECOND: "e-0", HIGH: "e-1"}, rates={FIRST: 10.0, SECOND: 20.0, HIGH: 90.0})


def test_the_bundle_with_most_messages_goes_of_an_edge_that_keeps_another():
    assert busiest_bundle(SEEN) == SECOND
    assert busiest_bundle(look(1.0, {FIRST: "e-0", HIGH: "e-1"}, rates={HIGH: 9.0})) == HIGH
    assert busiest_bundle(look(1.0, {FIRST: ""})) is None


def test_the_edge_with_most_bundles_is_killed():
    assert fullest_edge(SEEN) == "e-0"
    assert fullest_edge(look(1.0, {})) is None


def test_one_end_of_the_killed_edge_is_expected_and_no_other():
    deaths = ["e-1: was killed", "e-0: was killed", "e-0: ended with code 1"]
    assert without_one_end(deaths, "e-0") == ["e-1: was killed", "e-0: ended with code 1"]
    assert without_one_end(deaths[:1], "e-0") == deaths[:1]


def test_the_steps_come_in_their_order():
    times = times_of(100.0)
    assert 0 < times.transfer < times.lookup_policy < times.lookup < times.kill < 100.0


def test_the_policy_is_changed_in_nothing_but_its_way_to_unload():
    resources = parse(manifests.load([str(resource_folder("bundles"))]))
    before = resources.fleet.mapping()
    others = [SourceDocument(one.mapping()) for one in resources if one.kind != "BrokerFleet"]
    changed = parse([SourceDocument(with_lookup(before)), *others]).fleet.mapping()
    assert changed["spec"]["defaults"]["policy"]["pulsar"].pop("unload") == "Lookup"
    assert changed == before
