"""How many of the names that a broker remembers each identity has, so that a few cannot take all of its places."""

from __future__ import annotations

from collections import Counter
from typing import Protocol, TypeVar


class Owned(Protocol):
    @property
    def identity(self) -> str: ...


Named = TypeVar("Named", bound=Owned)


class NamesByIdentity(dict[str, Named]):
    """Things by name, with how many each identity has. An identity is fixed while its thing is here.

    Only `names[name] = thing` and `del names[name]` change it: other methods of a dictionary would not be counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._of_identity: Counter[str] = Counter()

    def count(self, identity: str) -> int:
        return self._of_identity[identity]

    def __setitem__(self, name: str, named: Named) -> None:
        if (before := self.get(name)) is not None:
            self._uncount(before)
        super().__setitem__(name, named)
        self._of_identity[named.identity] += 1

    def __delitem__(self, name: str) -> None:
        self._uncount(self[name])
        super().__delitem__(name)

    def _uncount(self, named: Named) -> None:
        self._of_identity[named.identity] -= 1
        if not self._of_identity[named.identity]:
            del self._of_identity[named.identity]


def has_share(taken: int, free: int, *, leaves: bool) -> bool:
    """Whether an identity that has `taken` places may have one more of those that are free.

    It never has more than it leaves: one takes half of all, two take two thirds, so a few identities cannot take every
    place. Not `leaves`: any free one. Without keys a client chooses the name that counts as its identity: the rule
    would protect nobody there, and would halve what one program can have.
    """
    return free > 0 and (taken < free or not leaves)
