"""What pods and answers say of a process: above all which of its lives are over."""

from __future__ import annotations

from typing import Any

from plimsoll.operator.pairs.pair_views import DOWN_SECONDS, WatchedProcess

NOW = 100.0


def pod(uid: str = "u1", *, state: str = "running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, **metadata},
        "status": {"containerStatuses": [{"name": "broker", "state": {state: {}}}]},
    }


def watched(*answers: int) -> WatchedProcess:
    """A process that has answered under these incarnations, one after the other."""
    found = WatchedProcess()
    found.look(pod(), NOW)
    for incarnation in answers:
        found.take({"role": "standby", "incarnation": incarnation}, NOW)
    return found


def test_an_answer_is_as_old_as_it_is():
    view = watched(5).view(NOW + 0.5)
    assert (view.incarnation, view.unheard_seconds, view.ended, view.is_fresh) == (5, 0.5, frozenset(), True)
    assert watched(5).view(NOW + 3).role == ""


def test_with_its_pod_a_process_has_ended():
    for other in (None, pod("u2")):
        found = watched(5)
        assert found.look(other, NOW + 0.1)
        assert found.view(NOW + 0.1).has_ended(5)
        assert found.view(NOW + 0.1).role == ""


def test_a_container_that_does_not_run_has_ended_once_it_is_silent():
    """A kubelet says late that a container runs again."""
    found = watched(5)
    assert not found.look(pod(state="terminated"), NOW)
    assert not found.view(NOW + 0.1).has_ended(5)
    assert found.view(NOW + DOWN_SECONDS + 0.1).has_ended(5)


def test_another_life_that_answers_ends_the_one_before():
    view = watched(5, 6).view(NOW)
    assert (view.has_ended(5), view.has_ended(6)) == (True, False)


def test_a_pod_that_is_deleted_leaves():
    found = watched(5)
    found.look(pod(deletionTimestamp="2026-01-01T00:00:00Z"), NOW)
    assert found.view(NOW).is_leaving


def test_it_is_known_since_when_it_finds_the_other_one_silent():
    found = watched()
    found.take({"role": "head", "incarnation": 5, "standby_silent": True}, NOW)
    found.take({"role": "head", "incarnation": 5, "standby_silent": True}, NOW + 2)
    assert 2 < found.view(NOW + 2).silent_seconds < 2.1
    found.take({"role": "head", "incarnation": 5, "standby_silent": False}, NOW + 3)
    assert found.view(NOW + 3).silent_seconds == 0


def test_lives_that_are_long_over_are_forgotten():
    found = watched(*range(1, 50))
    assert len(found.seen) < 12
    assert found.view(NOW).incarnation == 49
