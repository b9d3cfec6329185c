"""Faults beside sessions: each kind in turn, whoever is hit comes back, and nobody is hit twice at a time."""

import random
from typing import Any

from plimsoll.soak.disturbance.disturbance_plan import FREEZE_SECONDS
from plimsoll.soak.disturbance.fault_injector import KINDS, RESTART_SECONDS, SoakFaultInjector


class Party:
    """A ground and a crowd that note what is done to whom."""

    heads = ("h",)

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def edges(self) -> list[str]:
        return ["e1", "e2"]

    def __getattr__(self, what: str) -> Any:
        return lambda whom: self.done.append((what, str(whom)))


def disturbing(every: float = 4.0) -> tuple[Party, Any]:
    party: Any = Party()
    return party, SoakFaultInjector(party, party, random.Random(3), every, processes=2)


def test_each_kind_comes_in_turn_and_everything_is_undone() -> None:
    party, faults = disturbing()
    for tenth in range(400):
        faults.step(tenth / 10)
    faults.heal()
    assert set(faults.done) == set(KINDS)
    assert max(faults.done.values()) - min(faults.done.values()) <= 1
    for what, undone in (("kill", "start"), ("freeze", "thaw")):
        hit = sorted(whom for did, whom in party.done if did == what)
        assert hit == sorted(whom for did, whom in party.done if did == undone)


def test_what_is_killed_comes_back_after_a_second() -> None:
    party, faults = disturbing()
    now = 0.0
    while not party.done:
        faults.step(now)
        now += 0.1
    ((what, whom),) = party.done
    assert (what, whom[0]) == ("kill", "e")
    faults.step(now - 0.1 + RESTART_SECONDS * 0.9)
    assert len(party.done) == 1
    faults.step(now - 0.1 + RESTART_SECONDS)
    assert party.done[1] == ("start", whom)


def test_who_is_hit_is_not_hit_again_before_it_is_back() -> None:
    party, faults = disturbing(every=0.1)
    down: set[str] = set()
    seen = 0
    for hundredth in range(1000):
        faults.step(hundredth / 100)
        for what, whom in party.done[seen:]:
            assert (whom in down) == (what in ("start", "thaw")), (what, whom)
            down ^= {whom}
        seen = len(party.done)
    assert seen > FREEZE_SECONDS[1]
