"""Searches seeds that find a mutant, and remembers them."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import msgspec
import pytest
from tests.simulator.mutants import worlds
from tests.simulator.mutants.rewriting import Change, Detour, Mutant, Setting, plant

from plimsoll.simulator.run import RunOutcome

FOUND = Path(__file__).with_name("found.json")
RUN_SECONDS = 15.0
"""A broken machine may loop for ever: a run of this length is stopped and does not count."""


class Find(NamedTuple):
    """A run that finds a mutant, and the number of runs until then. An empty world: no run has found it."""

    world: str
    seed: int
    laws: list[str]
    runs: int


def remembered() -> dict[str, Find]:
    return msgspec.json.decode(FOUND.read_bytes(), type=dict[str, Find]) if FOUND.exists() else {}


def remember(finds: dict[str, Find]) -> None:
    lines = [f"{msgspec.json.encode(name).decode()}: {msgspec.json.encode(finds[name]).decode()}" for name in finds]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def judge(mutant: Mutant, world: str, seed: int) -> tuple[set[str], RunOutcome]:
    """The laws that the mutant breaks in this run, without those that its partners break on their own."""
    laws, outcome = _broken((*mutant.changes, *mutant.partners), world, seed)
    if laws and mutant.partners:
        laws -= _broken(mutant.partners, world, seed)[0]
    return laws, outcome


def _broken(changes: Iterable[Change | Setting | Detour], world: str, seed: int) -> tuple[set[str], RunOutcome]:
    """The laws that these changes break. A machine that raises does not count: the patch may be wrong."""
    with pytest.MonkeyPatch.context() as patch, _at_most(RUN_SECONDS):
        plant(patch, changes)
        outcome = worlds.run(world, seed)
    return (set() if outcome.error else worlds.broken(world, outcome)), outcome


def is_sound(world: str, seed: int) -> bool:
    """Whether the unchanged product keeps the laws in this run."""
    return not worlds.broken(world, worlds.run(world, seed))


def holds(mutant: Mutant, one: Find) -> bool:
    """Whether a remembered run still finds the mutant."""
    try:
        return bool(judge(mutant, one.world, one.seed)[0]) and is_sound(one.world, one.seed)
    except LookupError:
        return False


def find(mutant: Mutant, seeds: int, first: int = 0, lot: int = 25) -> Find:
    """Try worlds in turn, `lot` seeds of each at a time."""
    runs = 0
    for start in range(first, first + seeds, lot):
        for world in mutant.worlds:
            for seed in range(start, min(start + lot, first + seeds)):
                runs += 1
                laws, _ = judge(mutant, world, seed)
                if laws and is_sound(world, seed):
                    return Find(world, seed, sorted(laws), runs)
    return Find("", 0, [], runs)


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"a run has not ended after {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
