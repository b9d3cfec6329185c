"""The search visits every state once, and finds a shortest way to the first that breaks a law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.exploration.search import ViolationError, search

WIDTH = 4


class Grid:
    """A walk over a grid, one field to the right or down at a time, with a forbidden field."""

    def __init__(self, forbidden: tuple[int, int] = (-1, -1)) -> None:
        self.forbidden = forbidden
        self.visited: list[tuple[int, int]] = []

    def visit(self, at: tuple[int, int], outcomes: Counter[str]) -> Iterator[tuple[str, tuple[int, int]]]:
        self.visited.append(at)
        if at == self.forbidden:
            raise ViolationError(f"forbidden: {at}")
        x, y = at
        if at == (WIDTH - 1, WIDTH - 1):
            outcomes["corner"] += 1
        if x < WIDTH - 1:
            yield "right", (x + 1, y)
        if y < WIDTH - 1:
            yield "down", (x, y + 1)


def test_every_state_is_visited_once_and_near_ones_first():
    grid = Grid()
    result = search((0, 0), grid.visit)
    assert sorted(grid.visited) == [(x, y) for x in range(WIDTH) for y in range(WIDTH)]
    assert [x + y for x, y in grid.visited] == sorted(x + y for x, y in grid.visited)
    assert (result.states, result.steps, result.outcomes) == (WIDTH**2, 2 * WIDTH * (WIDTH - 1), {"corner": 1})
    assert (result.violation, result.path) == ("", ())


def test_the_search_ends_at_a_violation_with_a_shortest_path():
    result = search((0, 0), Grid((2, 1)).visit)
    assert result.violation == "forbidden: (2, 1)"
    assert sorted(result.path) == ["down", "right", "right"]


def test_a_law_that_the_first_state_breaks_has_no_path():
    result = search((0, 0), Grid((0, 0)).visit)
    assert (result.states, result.path) == (1, ())


def test_states_with_one_key_are_one_state():
    result = search((0, 0), Grid().visit, key=sum)
    assert result.states == 2 * WIDTH - 1


def test_too_many_states_are_an_error():
    with pytest.raises(RuntimeError, match="more than 3 states"):
        search((0, 0), Grid().visit, most=3)
