"""Every state that can be reached from one, each visited once, the nearest first; and a shortest course to a fault."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


class ViolationError(AssertionError):
    """A law is broken in this state."""


@dataclass
class Visited(Generic[S]):
    """`violation`: the first one; `path`: a shortest course to it; `seen`: how often each kind of step was taken."""

    states: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    violation: str = ""
    path: tuple[str, ...] = ()


def visit(
    first: S, steps: Callable[[S], Iterable[tuple[str, S]]], look: Callable[[S], None], most: int = 400_000
) -> Visited[S]:
    """Look at every state. `steps` and `look` raise `ViolationError` where a law is broken.

    Raises:
        RuntimeError: there are more states than `most`.

    """
    found = Visited[S]()
    parents: dict[S, tuple[S, str] | None] = {first: None}
    queue = deque([first])
    while queue:
        at, what = queue.popleft(), "here"
        found.states += 1
        try:
            look(at)
            for what, after in steps(at):
                found.seen[what] = found.seen.get(what, 0) + 1
                if after not in parents:
                    if len(parents) >= most:
                        raise RuntimeError(f"more than {most:,} states")
                    parents[after] = (at, what)
                    queue.append(after)
        except ViolationError as error:
            found.violation, found.path = str(error), (*_course(parents, at), f"then, at or behind: {what}")
            return found
    return found


def _course(parents: dict[S, tuple[S, str] | None], at: S) -> tuple[str, ...]:
    found: list[str] = []
    while (before := parents[at]) is not None:
        at, what = before
        found.append(what)
    return tuple(reversed(found))
