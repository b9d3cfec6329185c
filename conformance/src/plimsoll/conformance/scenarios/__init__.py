"""All scenarios, in the order of docs/protocol.md. A scenario is a script for the brokers, and waits for no clock."""

from plimsoll.conformance.scenario import PROFILES, Scenario
from plimsoll.conformance.scenarios import (
    groups,
    links,
    move_lists,
    move_races,
    moves,
    publisher_moves,
    publishing,
    stream,
    subscribing,
)

SCENARIOS: tuple[Scenario, ...] = (
    *links.SCENARIOS,
    *publishing.SCENARIOS,
    *publisher_moves.SCENARIOS,
    *subscribing.SCENARIOS,
    *stream.SCENARIOS,
    stream.MOVE_TO_IGNORED,
    *moves.SCENARIOS,
    *move_lists.SCENARIOS,
    *move_races.SCENARIOS,
    *groups.SCENARIOS,
)

__all__ = ["PROFILES", "SCENARIOS", "Scenario"]
