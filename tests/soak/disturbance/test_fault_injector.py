"""Faults during sessions: each kind in turn, every fault is undone, and no process is hit while it is down."""

import random
from typing import Any

from plimsoll.soak.disturbance.disturbance_plan import FREEZE_SECONDS
from plimsoll.soak.disturbance.fault_injector import KINDS, RESTART_SECONDS, SoakFaultInjector


class RecordingTargets:
    """Stands in for harness and clients, and records what is done to which process."""

    heads = ("h",)

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def edges(self) -> list[str]:
        return ["e1", "e2"]

    def __getattr__(self, what: str) -> Any:
        return lambda target: self.done.append((what, str(target)))


def injector(every: float = 4.0) -> tuple[RecordingTargets, Any]:
    targets: Any = RecordingTargets()
    return targets, SoakFaultInjector(targets, targets, random.Random(3), every, processes=2)


def test_kinds_take_turns_and_every_fault_is_undone() -> None:
    targets, faults = injector()
    for tenth in range(400):
        faults.step(tenth / 10)
    faults.heal()
    assert set(faults.done) == set(KINDS)
    assert max(faults.done.values()) - min(faults.done.values()) <= 1
    for what, undone in (("kill", "start"), ("freeze", "thaw")):
        hit = sorted(target for did, target in targets.done if did == what)
        assert hit == sorted(target for did, target in targets.done if did == undone)


def test_a_killed_process_is_restarted_after_a_second() -> None:
    targets, faults = injector()
    now = 0.0
    while not targets.done:
        faults.step(now)
        now += 0.1
    ((what, target),) = targets.done
    assert (what, target[0]) == ("kill", "e")
    faults.step(now - 0.1 + RESTART_SECONDS * 0.9)
    assert len(targets.done) == 1
    faults.step(now - 0.1 + RESTART_SECONDS)
    assert targets.done[1] == ("start", target)


def test_a_process_is_not_hit_again_before_its_fault_is_undone() -> None:
    targets, faults = injector(every=0.1)
    down: set[str] = set()
    seen = 0
    for hundredth in range(1000):
        faults.step(hundredth / 100)
        for what, target in targets.done[seen:]:
            assert (target in down) == (what in ("start", "thaw")), (what, target)
            down ^= {target}
        seen = len(targets.done)
    assert seen > FREEZE_SECONDS[1]
