from plimsoll.soak.disturbance.disturbance_plan import (
    FREEZE_SECONDS,
    KINDS,
    QUIET_SECONDS,
    Disturbance,
    plan_disturbances,
)


def a_plan(seed: int = 1, seconds: float = 120.0) -> list[Disturbance]:
    return plan_disturbances(seed, seconds, 6.0, ["head"], ["b", "a"], 2)


def test_a_plan_depends_on_its_seed_alone() -> None:
    assert a_plan(1) == a_plan(1) != a_plan(2)


def test_disturbances_are_in_order_and_not_near_the_start_or_the_end() -> None:
    times = [each.at for each in a_plan()]
    assert times == sorted(times)
    assert min(times) >= QUIET_SECONDS
    assert max(times) <= 120.0 - QUIET_SECONDS


def test_every_kind_occurs_with_targets_of_its_role() -> None:
    targets = {"kill-edge": "ab", "freeze-edge": "ab", "kill-head": ["head"], "freeze-head": ["head"]}
    found = a_plan()
    assert {each.kind for each in found} == set(KINDS)
    for each in found:
        assert each.target in targets.get(each.kind, "01")


def test_only_a_freeze_has_a_length() -> None:
    for each in a_plan():
        if each.kind.startswith("freeze"):
            assert FREEZE_SECONDS[0] <= each.seconds <= FREEZE_SECONDS[1]
        else:
            assert each.seconds == 0.0


def test_a_short_run_has_no_disturbance() -> None:
    assert plan_disturbances(1, 2 * QUIET_SECONDS, 5.0, ["head"], ["a"], 1) == []
