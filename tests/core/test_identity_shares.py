"""How many names each identity has, and that none has more than it leaves."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from plimsoll.core.identity_shares import NamesByIdentity, has_share


class Place(NamedTuple):
    identity: str


def counts(names: NamesByIdentity[Place]) -> tuple[int, int]:
    return names.count("ann"), names.count("bob")


def test_names_are_counted_by_identity():
    names: NamesByIdentity[Place] = NamesByIdentity()
    names["a"] = names["b"] = Place("ann")
    assert (counts(names), len(names)) == ((2, 0), 2)
    names["b"] = Place("bob")
    assert counts(names) == (1, 1), "another has the name now"
    names["b"] = Place("bob")
    assert counts(names) == (1, 1)
    del names["a"], names["b"]
    assert (counts(names), names) == ((0, 0), {})


@pytest.mark.parametrize(
    ("leaves", "taken", "free", "has"),
    [
        (True, 0, 1, True), (True, 0, 0, False), (True, 1, 2, True), (True, 2, 2, False),
        (False, 7, 1, True), (False, 7, 0, False), (False, 7, -1, False),
    ],
)  # fmt: skip
def test_an_identity_has_no_more_than_it_leaves(*, leaves: bool, taken: int, free: int, has: bool):
    assert has_share(taken, free, leaves=leaves) is has
