"""What a settled fleet must not have: it is asked for its status and its owners, again and again, until it is clean.

Everybody is served by the edge that the application was told of, and the head of that edge knows it. There are no
slots, no records that are not live, no open sessions, no guests, no owner entry of somebody who is elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plimsoll.core.records import Outcome, Served
from plimsoll.local.soak.driver import Listings
from plimsoll.local.soak.ground import Ground
from plimsoll.mediator.control import Told

LOOK_SECONDS = 0.2
Homes = Mapping[str, str]
"""By subscriber the edge that it is served by, as its application has been told; empty if it is served by none."""


def settle(
    ground: Ground, listings: Listings, homes: Callable[[], Homes], seconds: float,
    heard: Callable[[str, Outcome], None] = lambda head, told: None,
) -> list[str]:  # fmt: skip
    """Wait until nothing is left over, or for so many seconds; returns what is."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        ground.statuses.clear()
        listings.ask_all([(ground.head_of(edge), edge) for edge in ground.edges()], began)
        ground.ask()
        while time.monotonic() < began + 1.0 and not (
            len(ground.statuses) == len(ground.brokers) and len(listings.complete) == len(ground.edges())
        ):
            hear(ground, listings, 0.02, heard)
        left = list(left_over(ground, listings, homes()))
        if not left or time.monotonic() > deadline:
            return left
        until = time.monotonic() + LOOK_SECONDS
        while (rest := until - time.monotonic()) > 0:
            hear(ground, listings, rest, heard)


def hear(ground: Ground, listings: Listings, seconds: float, heard: Callable[[str, Outcome], None]) -> None:
    """A moment of the control plane: listings are filled, outcomes handed on."""
    for said in ground.poll(seconds):
        if isinstance(said, Told):
            if isinstance(said.said, Served):
                listings.heard(said.head, said.said, time.monotonic())
            elif isinstance(said.said, Outcome):
                heard(said.head, said.said)
    listings.tick(time.monotonic())


def left_over(ground: Ground, listings: Listings, homes: Homes) -> Iterator[str]:
    """Everything that a settled fleet does not have, in words, one for each thing."""
    for name, edge in sorted(homes.items()):
        if not edge:
            yield f"{name} is not served"
    for name in ground.brokers:
        status = ground.statuses.get(name)
        if status is None:
            yield f"{name} does not answer"
        elif ground.brokers[name].role == "head":
            yield from _of_head(ground, name, status, homes)
        else:
            yield from _of_edge(name, status)
    for edge in ground.edges():
        if edge not in listings.complete:
            yield f"{ground.head_of(edge)} does not say whom {edge} serves"
            continue
        told, had = set(listings.complete[edge]), {name for name, at in homes.items() if at == edge}
        yield from (
            f"{edge} owns {name}, whose application is at {homes.get(name, '?')}" for name in sorted(told - had)
        )
        yield from (f"{edge} does not own {name}, whose application is there" for name in sorted(had - told))


def _of_head(ground: Ground, name: str, status: Mapping[str, Any], homes: Homes) -> Iterator[str]:
    for what in ("sessions", "guests"):
        if status.get(what):
            yield f"{name} has {status[what]} {what}"
    if status.get("waiting_for"):
        yield f"{name} waits for {status['waiting_for']}"
    own = set(ground.edges(name))
    served = sum(edge in own for edge in homes.values())
    if status["subscribers"] != served:
        yield f"{name} has {status['subscribers']} owner entries, and {served} subscribers are served there"


def _of_edge(name: str, status: Mapping[str, Any]) -> Iterator[str]:
    if status["slots"]:
        yield f"{name} has {status['slots']} slots"
    for state, count in status["subscribers"].items():
        if count and state != "live":
            yield f"{name} has {count} records that are {state}"
