"""The tree of heads in the queueing model: paths, and which subscribers lie behind which neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence


class OverlayPaths:
    """`routed_at`: the subscribers that each edge of a head has in its cover, as masks."""

    def __init__(self, neighbors: Mapping[str, Sequence[str]], routed_at: Callable[[str], Iterable[int]]) -> None:
        self._paths, self._routed_at = _paths(neighbors), routed_at
        self._behind: dict[tuple[str, str], int] = {}

    def hops(self, head: str, other: str) -> int:
        """How many links between heads lie between two heads."""
        return len(self._paths[head][other]) - 1

    def reaches(self, head: str, other: str) -> bool:
        """Whether a head is connected with another."""
        return other in self._paths[head]

    def paths_from(self, head: str) -> Mapping[str, Sequence[str]]:
        """The path to every head that it reaches, itself included, both ends included."""
        return self._paths[head]

    def behind(self, head: str, neighbor: str) -> int:
        """The subscribers that a head reaches through a neighbour, as a mask."""
        found = self._behind.get((head, neighbor))
        if found is None:
            found = 0
            for other, path in self._paths[head].items():
                if len(path) > 1 and path[1] == neighbor:
                    for mask in self._routed_at(other):
                        found |= mask
            self._behind[head, neighbor] = found
        return found

    def changed(self) -> None:
        """The cover of some edge has changed; between heads that takes effect at once."""
        self._behind.clear()


def _paths(neighbors: Mapping[str, Sequence[str]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The path from each head to every head that it reaches, both included."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for start in neighbors:
        paths: dict[str, tuple[str, ...]] = {start: (start,)}
        ahead = [start]
        while ahead:
            here = ahead.pop()
            for other in neighbors[here]:
                if other not in paths:
                    paths[other] = (*paths[here], other)
                    ahead.append(other)
        found[start] = paths
    return found
