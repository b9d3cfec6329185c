from plimsoll.soak.disturbance.disturbance_plan import (
    FREEZE_SECONDS,
    KINDS,
    QUIET_SECONDS,
    Disturbance,
    plan_disturbances,
)


def a_plan(seed: int = 1, seconds: float = 120.0) -> list[Disturbance]:
    return plan_disturbances(seed, seconds, 6.0, ["head"], ["b", "a"], 2)


def test_the_same_seed_gives_the_same_plan_and_another_gives_another() -> None:
    assert a_plan(1) == a_plan(1) != a_plan(2)


def test_disturbances_come_in_order_and_leave_the_beginning_and_the_end_alone() -> None:
    times = [each.at for each in a_plan()]
    assert times == sorted(times)
    assert min(times) >= QUIET_SECONDS
    assert max(times) <= 120.0 - QUIET_SECONDS


def test_no_kind_is_missed_and_each_has_a_target_of_its_own_sort() -> None:
    targets = {"kill-edge": "ab", "freeze-edge": "ab", "kill-head": ["head"], "freeze-head": ["head"]}
    found = a_plan()
    assert {each.kind for each in found} == set(KINDS)
    for each in found:
        assert each.target in targets.get(each.kind, "01")


def test_only_what_is_frozen_has_a_length() -> None:
    for each in a_plan():
        if each.kind.startswith("freeze"):
            assert FREEZE_SECONDS[0] <= each.seconds <= FREEZE_SECONDS[1]
        else:
            assert each.seconds == 0.0


def test_a_short_run_has_no_disturbance() -> None:
    assert plan_disturbances(1, 2 * QUIET_SECONDS, 5.0, ["head"], ["a"], 1) == []
