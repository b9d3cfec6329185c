"""Bundles over time, from load reports: splits, changes of owners, and the bundles of a killed edge."""

from plimsoll.demo.analysis.bundle_history import (
    BundleLook,
    BundleOwnerChange,
    look_of,
    owned_again_seconds,
    owner_changes,
    splits_seen,
    wrongly_owned,
)

LOW, HIGH = "0x00000000_0x80000000", "0x80000000_0xffffffff"
FIRST, SECOND = "0x00000000_0x40000000", "0x40000000_0x80000000"


def look(at, owners, serving=None, rates=None, epochs=None):
    return BundleLook(at, owners, serving or {}, rates or {}, epochs or {"e-0": 1, "e-1": 1})


def test_a_look_adds_up_what_edges_report_of_a_bundle():
    head = {"broker": "h", "bundle_owners": {LOW: "e-0"}}
    found = look_of(1.0, head, [{"broker": "e-0", "epoch": 3, "bundles": []}])
    assert (found.owners, found.epochs, found.serving) == ({LOW: "e-0"}, {"e-0": 3}, {})


def test_a_split_is_seen_with_the_highest_rate_of_the_whole():
    looks = [
        look(1.0, {LOW: "e-0", HIGH: "e-1"}, rates={LOW: 900.0}),
        look(2.0, {LOW: "e-0", HIGH: "e-1"}, rates={LOW: 700.0}),
        look(3.0, {FIRST: "e-0", SECOND: "e-0", HIGH: "e-1"}),
    ]
    (split,) = splits_seen(looks)
    assert (split.at, split.bundle, split.halves, split.rate) == (3.0, LOW, (FIRST, SECOND), 900.0)
    assert splits_seen(looks[:2]) == []


def test_half_a_split_is_none():
    assert splits_seen([look(1.0, {LOW: "e-0"}), look(2.0, {FIRST: "e-0"})]) == []


def test_owners_change_by_moves_and_not_by_splits():
    looks = [
        look(1.0, {LOW: "e-0"}),
        look(2.0, {FIRST: "e-0", SECOND: "e-0"}),
        look(3.0, {FIRST: "e-0", SECOND: "e-1"}),
        look(4.0, {FIRST: "e-0"}),
    ]
    assert owner_changes(looks) == [
        BundleOwnerChange(1.0, LOW, "e-0"), BundleOwnerChange(3.0, SECOND, "e-1"), BundleOwnerChange(4.0, SECOND, "")
    ]  # fmt: skip


def test_bundles_of_a_killed_edge_are_owned_again_once_all_have_another_owner():
    looks = [
        look(1.0, {LOW: "e-0", HIGH: "e-0"}),
        look(2.0, {LOW: "e-0", HIGH: "e-0"}),  # the head has not noticed
        look(3.0, {LOW: "e-1"}),
        look(4.5, {LOW: "e-1", HIGH: "e-1"}),
    ]
    assert owned_again_seconds(looks, "e-0", 2.0) == 2.5
    assert owned_again_seconds(looks[:3], "e-0", 2.0) is None


def test_the_next_life_of_a_killed_edge_is_an_owner_and_its_last_life_is_not():
    looks = [look(1.0, {LOW: "e-0"}), look(2.0, {LOW: "e-0"}), look(5.0, {LOW: "e-0"}, epochs={"e-0": 2})]
    assert owned_again_seconds(looks, "e-0", 2.0) == 3.0
    assert owned_again_seconds(looks[:2], "e-0", 2.0) is None


def test_a_bundle_that_was_split_meanwhile_is_owned_again_with_both_halves():
    looks = [
        look(1.0, {LOW: "e-0"}),
        look(3.0, {FIRST: "e-1", SECOND: "e-0"}),
        look(4.0, {FIRST: "e-1", SECOND: "e-1"}),
    ]
    assert owned_again_seconds(looks, "e-0", 2.0) == 2.0


def test_a_bundle_has_one_owner_if_only_its_owner_serves_it():
    assert wrongly_owned(look(1.0, {LOW: "e-0", HIGH: "e-1"}, {LOW: ("e-0",)})) == []
    assert len(wrongly_owned(look(1.0, {LOW: "e-0"}, {LOW: ("e-0", "e-1")}))) == 1
    assert wrongly_owned(look(1.0, {}, {LOW: ("e-0",)})) == [f"{LOW} is owned by no edge and served by e-0"]
