"""What a publication matches, as slices of the index instead of a list of ids."""

from collections.abc import Iterator
from typing import Any, Protocol

from plimsoll.core.matching.template_table import IdSlice


class StaleResultError(RuntimeError):
    """A result of `match_groups` was used after the index had changed."""


class ChangingIndex(Protocol):
    """`generation` rises with each change."""

    generation: int


class MatchGroups:
    """The matching subscriptions as slices of the index's own leaves, without enumerating them.

    Valid until the next change of the index; using it later raises `StaleResultError`.
    """

    __slots__ = ("_generation", "_index", "_slices")

    def __init__(self, index: ChangingIndex, generation: int, slices: list[IdSlice]) -> None:
        self._index = index
        self._generation = generation
        self._slices = slices

    def slices(self) -> list[IdSlice]:
        """(ids of a leaf, start, stop), none empty. The ids belong to the index: read, never write."""
        if self._generation != self._index.generation:
            raise StaleResultError("the index has changed since this match; match again")
        return self._slices

    def count(self) -> int:
        """The number of ids."""
        return sum(stop - start for _, start, stop in self.slices())

    def ids(self) -> list[Any]:
        """All ids, as a new list."""
        return [item for ids, start, stop in self.slices() for item in ids[start:stop]]

    def __len__(self) -> int:
        return len(self.slices())

    def __iter__(self) -> Iterator[IdSlice]:
        return iter(self.slices())
