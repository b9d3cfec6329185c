"""A scenario: a script for the brokers, with a name, a title and the profiles of clients that it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.conformance.stage import Stage

PROFILES = ("full", "simple")
"""`full`: all of docs/protocol.md that concerns a client. `simple`: docs/simple-client.md, without ATTACH."""

BOTH = frozenset(PROFILES)
FULL = frozenset({"full"})
SIMPLE = frozenset({"simple"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """`section`: of docs/protocol.md. `play` raises `RuleBrokenError` where the client breaks a rule."""

    name: str
    section: str
    title: str
    play: Callable[[Stage], None]
    profiles: frozenset[str] = BOTH
