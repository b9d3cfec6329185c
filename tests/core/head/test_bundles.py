"""The bundles of a head: ranges, owners, and where a unit that joins belongs."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.placement import Placement, policy_of
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.types.policy import PolicySpec

TWO = Partition.of_count(2)
LOW, HIGH = TWO.ranges


def policy(initial: int = 2, attribute: str = "topic", seed: int = 1) -> PolicySpec:
    found = policy_of(
        {
            "type": "Pulsar",
            "pulsar": {"topicAttribute": attribute, "bundles": {"initial": initial}, "lookup": {"seed": seed}},
        }
    )
    assert found is not None
    return found


def placement(*edges: str) -> Placement:
    found = Placement(placer_of_spec(policy()))
    for name in edges:
        found.add(name, f"mem://{name}", "")
    return found


def table(partition: Partition = TWO, version: int = 0, mediator: int = 1, **changes: Any) -> msg.BundleTable:
    return msg.BundleTable(mediator, version, list(partition.boundaries), **changes)


def placed(bundles: Bundles, edges: Placement, unit: int, *exclude: str) -> str:
    found = bundles.place(unit, edges, exclude)
    return "" if found is None else found.name


def test_the_first_unit_of_a_bundle_gives_it_an_owner_and_the_others_follow():
    bundles, edges = Bundles(policy()), placement("a", "b", "c")
    assert bundles.owners == {}
    first = placed(bundles, edges, 5)
    assert bundles.owners == {LOW: first}
    assert {placed(bundles, edges, unit) for unit in range(100)} == {first}
    other = placed(bundles, edges, 0x80000000)
    assert other != first, "it counts what it has placed already"
    assert bundles.report() == {
        "bundle_owners": {LOW.name: first, HIGH.name: other}, "bundles": 2, "bundles_version": 0
    }  # fmt: skip


def test_bundles_spread_over_idle_edges():
    bundles, edges = Bundles(policy(initial=1000)), placement("a", "b", "c", "d")
    for bundle in bundles.partition.ranges:
        placed(bundles, edges, bundle.low)
    counts = [list(bundles.owners.values()).count(edge) for edge in "abcd"]
    assert all(200 <= count <= 300 for count in counts), counts


@pytest.mark.parametrize("gone", ["removed", "cordoned"])
def test_an_owner_that_takes_no_newcomers_loses_the_bundle_at_the_next_lookup(gone: str):
    bundles, edges = Bundles(policy()), placement("a", "b")
    first = placed(bundles, edges, 5)
    if gone == "removed":
        edges.remove(first)
    else:
        edges.cordoned = frozenset({first})
    other = placed(bundles, edges, 6)
    assert other == bundles.owners[LOW] != first


def test_a_client_that_cannot_reach_the_owner_goes_elsewhere_and_the_bundle_stays():
    bundles, edges = Bundles(policy()), placement("a", "b")
    first = placed(bundles, edges, 5)
    assert placed(bundles, edges, 5, first) != first
    assert bundles.owners[LOW] == first


def test_without_an_edge_there_is_no_owner():
    bundles = Bundles(policy())
    assert placed(bundles, placement(), 5) == ""
    assert bundles.owners == {}


def test_halves_have_the_owner_of_the_whole_until_one_is_assigned():
    bundles, edges = Bundles(policy()), placement("a", "b")
    first = placed(bundles, edges, 5)
    four = Partition.of_count(4)
    assert bundles.take_table(table(four, 1))
    assert bundles.owners == {four.ranges[0]: first, four.ranges[1]: first}
    other = "b" if first == "a" else "a"
    bundles.take_table(table(four, 1, assigned=[msg.AssignedBundle(four.ranges[1].low, other)]))
    assert bundles.owners == {four.ranges[0]: first, four.ranges[1]: other}


def test_what_is_older_or_no_partition_changes_nothing():
    bundles = Bundles(policy())
    assert bundles.take_table(table(Partition.of_count(4), 3, mediator=2))
    for old in (table(TWO, 2, mediator=2), table(TWO, 9, mediator=1)):
        assert not bundles.take_table(old)
    assert not bundles.take_table(msg.BundleTable(9, 9, [0, 7]))
    assert (len(bundles.partition), bundles.version) == (4, (2, 3))
    assert bundles.take_table(table(Partition.of_count(4), 3, mediator=3)), "a new mediator says the same again"


def test_a_bundle_is_released_once_for_each_number():
    bundles, edges = Bundles(policy()), placement("a", "b")
    placed(bundles, edges, 5)
    gone = table(released=[msg.ReleasedBundle(0, 7)])
    bundles.take_table(gone)
    assert bundles.owners == {}
    placed(bundles, edges, 5)
    bundles.take_table(gone)
    assert LOW in bundles.owners, "the message is repeated, and the lookup was in between"
    bundles.take_table(table(released=[msg.ReleasedBundle(0, 8)]))
    assert bundles.owners == {}


def test_a_unit_that_attaches_by_an_older_answer_gives_its_bundle_an_owner():
    bundles = Bundles(policy())
    bundles.attached("s#00000001", "a")
    bundles.attached("s#00000002", "b")
    bundles.attached("whole", "b")
    assert bundles.owners == {LOW: "a"}, "an owner that is known stays"


def test_a_bundle_whose_release_is_not_repeated_is_its_units_again():
    """The last word of a session may reach the head alone: its edges have not heard of it, and units stay."""
    bundles = Bundles(policy())
    bundles.adopt({"s#00000001": "a", "t#80000000": "b"})
    gone, quiet = table(released=[msg.ReleasedBundle(0, 7)]), table()
    bundles.take_table(gone)
    assert not bundles.is_vacant(gone), "units may be on their way"
    bundles.take_table(table(Partition.of_count(4), 1, released=[msg.ReleasedBundle(0x40000000, 8)]))
    assert bundles.is_vacant(table(Partition.of_count(4), 1)), "halves of a vacant bundle are vacant"
    bundles.adopt({"s#00000001": "a"})
    assert bundles.owners[HashRange(0, 0x40000000)] == "a"
    assert not bundles.is_vacant(quiet), "once"


def report(*released: tuple[int, int], partition: Partition = TWO) -> msg.EdgeReport:
    seen = [msg.ReleasedBundle(*each) for each in released]
    return msg.EdgeReport("", "", msg.Cover(1, [], []), [], False, 1, list(partition.boundaries), 1, 0, released=seen)


def test_a_release_that_edges_have_seen_is_not_carried_out_by_the_next_life_of_the_head():
    """Units that it has sent away are at other edges, which have seen it, and would not send them away again."""
    bundles, edges = Bundles(policy()), placement("a", "b")
    for each in (report((0, 7)), report((0, 6), (0x80000000, 7)), report()):
        bundles.take_report(each)
    placed(bundles, edges, 5)
    for number in (6, 7):
        bundles.take_table(table(released=[msg.ReleasedBundle(0, number)]))
        assert LOW in bundles.owners
    bundles.take_table(table(released=[msg.ReleasedBundle(0, 8)]))
    assert bundles.owners == {}


def test_after_a_start_a_bundle_belongs_to_who_serves_most_of_it():
    bundles = Bundles(policy())
    served = {"s#00000001": "b", "t#00000001": "a", "u#00000002": "b", "v#80000000": "c", "whole": "a", "w#zz": "a"}
    bundles.adopt(served)
    assert bundles.owners == {LOW: "b", HIGH: "c"}
    bundles.adopt({"s#00000001": "a", "t#00000001": "a"})
    assert bundles.owners[LOW] == "b", "an owner that is known stays"


def test_another_policy_ends_bundles_and_another_attribute_begins_again():
    bundles = Bundles(policy())
    bundles.take_table(table(Partition.of_count(4), 1))
    bundles.owners[HashRange(0, 0x40000000)] = "a"
    bundles.take_policy(policy())
    assert (len(bundles.partition), len(bundles.owners)) == (4, 1)
    bundles.take_policy(policy(attribute="sort"))
    assert (len(bundles.partition), bundles.owners, bundles.attribute) == (2, {}, "sort")
    bundles.take_policy(None)
    assert not bundles.is_used
    assert bundles.report() == {}
    assert not bundles.take_table(table())
