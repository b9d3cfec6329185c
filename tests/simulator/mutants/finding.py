"""The search for seeds that find a mutant, and the file in which the finds are recorded."""

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
"""A broken machine may loop for ever: a run that takes longer is stopped, and counts as no find."""


class Find(NamedTuple):
    """A run that finds a mutant, and how many runs the search took. An empty `world`: none of them found it."""

    world: str
    seed: int
    laws: list[str]
    runs: int


def recorded() -> dict[str, Find]:
    return msgspec.json.decode(FOUND.read_bytes(), type=dict[str, Find]) if FOUND.exists() else {}


def record(finds: dict[str, Find]) -> None:
    lines = [f"{msgspec.json.encode(name).decode()}: {msgspec.json.encode(finds[name]).decode()}" for name in finds]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def broken_laws(mutant: Mutant, world: str, seed: int) -> tuple[set[str], RunOutcome]:
    """The laws that the mutant breaks in this run, without those that its partners break alone."""
    laws, outcome = _broken((*mutant.changes, *mutant.partners), world, seed)
    if laws and mutant.partners:
        laws -= _broken(mutant.partners, world, seed)[0]
    return laws, outcome


def _broken(changes: Iterable[Change | Setting | Detour], world: str, seed: int) -> tuple[set[str], RunOutcome]:
    """The laws that these changes break. An exception does not count, since the patch may be at fault."""
    with pytest.MonkeyPatch.context() as patch, _at_most(RUN_SECONDS):
        plant(patch, changes)
        outcome = worlds.run(world, seed)
    return (set() if outcome.error else worlds.broken(world, outcome)), outcome


def is_sound(world: str, seed: int) -> bool:
    """Whether the unbroken product keeps the laws in this run."""
    return not worlds.broken(world, worlds.run(world, seed))


def holds(mutant: Mutant, one: Find) -> bool:
    """Whether a recorded run still finds the mutant."""
    try:
        return bool(broken_laws(mutant, one.world, one.seed)[0]) and is_sound(one.world, one.seed)
    except LookupError:
        return False


def find(mutant: Mutant, seeds: int, first: int = 0, chunk: int = 25) -> Find:
    """Try the worlds of a mutant in turn, `chunk` seeds of each at a time."""
    runs = 0
    for start in range(first, first + seeds, chunk):
        for world in mutant.worlds:
            for seed in range(start, min(start + chunk, first + seeds)):
                runs += 1
                laws, _ = broken_laws(mutant, world, seed)
                if laws and is_sound(world, seed):
                    return Find(world, seed, sorted(laws), runs)
    return Find("", 0, [], runs)


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"a run has taken more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
