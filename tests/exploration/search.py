"""Visit every reachable state of a small world once, breadth first."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

STATES_AT_MOST = 2_000_000

State = TypeVar("State")
Step = Any


class ViolationError(AssertionError):
    """A law is broken in this state."""


@dataclass
class Result:
    """The result of a search. `outcomes`: what `visit` has counted.

    `violation`: the first one that was found, and `path`: a shortest sequence of steps to its state.
    """

    states: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    path: tuple[Step, ...] = ()


class World(Protocol):
    """A state that knows its laws and its steps. A step is a tuple; the first item of a fault is `fault`."""

    def check(self) -> None:
        """Check the laws that hold in every state."""

    def check_end(self) -> None:
        """Check the laws that hold when nothing but a fault can happen."""

    def outcomes(self) -> Iterable[str]:
        """What is counted at such an end."""

    def steps(self) -> list[tuple[Any, ...]]: ...
    def step(self, step: tuple[Any, ...]) -> Self: ...


W = TypeVar("W", bound=World)


def visit(world: W, outcomes: Counter[str]) -> Iterator[tuple[Step, W]]:
    """Visit a world: its laws, its outcomes if this is an end, its steps."""
    steps = world.steps()
    world.check()
    if all(step[0] == "fault" for step in steps):
        world.check_end()
        outcomes.update(world.outcomes())
    for step in steps:
        yield step, world.step(step)


def itself(state: Any) -> Any:
    """The key of a state that can be hashed."""
    return state


def search(
    first: State,
    visit: Callable[[State, Counter[str]], Iterable[tuple[Step, State]]],
    key: Callable[[State], Hashable] = itself,
    most: int = STATES_AT_MOST,
) -> Result:
    """Visit the states that can be reached from `first`, up to the first one that breaks a law.

    `visit`: checks the laws in a state, counts outcomes, and gives each step with the state behind it. `key`: equal for
    states that are the same.

    Raises:
        RuntimeError: there are more states than `most`.

    """
    result = Result()
    seen = {key(first)}
    parents: list[tuple[int, Step]] = [(-1, None)]
    queue = deque([(0, first)])
    while queue:
        number, state = queue.popleft()
        result.states += 1
        try:
            for step, after in visit(state, result.outcomes):
                result.steps += 1
                if (name := key(after)) not in seen:
                    if len(seen) >= most:
                        raise RuntimeError(f"more than {most:,} states")
                    seen.add(name)
                    parents.append((number, step))
                    queue.append((len(parents) - 1, after))
        except ViolationError as error:
            result.violation, result.path = str(error), _path(parents, number)
            return result
    return result


def _path(parents: list[tuple[int, Step]], number: int) -> tuple[Step, ...]:
    path: list[Step] = []
    while number > 0:
        number, step = parents[number]
        path.append(step)
    return tuple(reversed(path))
