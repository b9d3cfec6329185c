"""Sessions that moved bundles: by which way, when, and how long their subscribers waited."""

from tests.demo.analysis.test_session_outcomes import stored

from plimsoll.demo.analysis.bundle_pauses import MovedBundles, Waits
from plimsoll.demo.analysis.bundle_sessions import BundleSession, bundle_sessions, longest_wait, moves_before

BUNDLE = "0x00000000_0x80000000"


def session(name, end, by="Transfer", moved=3):
    return BundleSession(name, 5.0, end, by, False, {BUNDLE: "e-1"}, ["hot"], moved, "Succeeded", "")


def test_objects_become_sessions_and_those_without_a_plan_are_left_out():
    found = bundle_sessions([stored(), stored("queued", plan=None), {"metadata": {"name": "x"}}], 100.0)
    assert [(each.by, each.is_shedding) for each in found] == [("Transfer", False)]
    assert found[0].plain()["name"] == found[0].name


def test_moves_count_that_had_ended_before_the_kill():
    sessions = [session("a", 8.0), session("late", 12.0), session("open", None), session("none", 8.0, moved=0)]
    assert moves_before(sessions, 10.0, 1000.0) == {"a": MovedBundles((BUNDLE,), 1005.0, 1008.0)}


def test_the_longest_wait_is_that_of_one_way():
    sessions = [session("a", 8.0), session("b", 8.0), session("c", 8.0, "Lookup")]
    waits = {"a": Waits(0.1, 9), "b": Waits(0.3, 9), "c": Waits(0.9, 9)}
    assert longest_wait(sessions, waits, "Transfer") == 0.3
    assert longest_wait(sessions, waits, "Lookup") == 0.9
    assert longest_wait(sessions[:2], waits, "Lookup") is None
