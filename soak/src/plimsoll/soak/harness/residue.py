"""Residue that a settled fleet must not have: its status and owners are asked for repeatedly until it is clean.

Every subscriber is served by the edge that its application was told of, and the head of that edge knows it. There are
no slots, no attachments that are not live, no open sessions, no guests, no owner entry of a subscriber that is
elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plimsoll.core.protocol.messages import Outcome, SubscriberPage
from plimsoll.mediator.control_plane import HeadMessageReceived
from plimsoll.soak.harness.fleet_harness import FleetHarness
from plimsoll.soak.harness.handover_driver import SoakListings

POLL_SECONDS = 0.2
Homes = Mapping[str, str]
"""The edge of each subscriber, as its application has been told; empty if none serves it."""


def await_no_residue(
    ground: FleetHarness, listings: SoakListings, homes: Callable[[], Homes], seconds: float,
    heard: Callable[[str, Outcome], None] = lambda head, told: None,
) -> list[str]:  # fmt: skip
    """Wait until nothing is left over, or until the time is up; returns the residue."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        ground.statuses.clear()
        listings.request_all([(ground.head_of(edge), edge) for edge in ground.edges()], began)
        ground.ask()
        while time.monotonic() < began + 1.0 and not (
            len(ground.statuses) == len(ground.brokers) and len(listings.complete) == len(ground.edges())
        ):
            poll_control_plane(ground, listings, 0.02, heard)
        left = list(find_residue(ground, listings, homes()))
        if not left or time.monotonic() > deadline:
            return left
        until = time.monotonic() + POLL_SECONDS
        while (rest := until - time.monotonic()) > 0:
            poll_control_plane(ground, listings, rest, heard)


def poll_control_plane(
    ground: FleetHarness, listings: SoakListings, seconds: float, heard: Callable[[str, Outcome], None]
) -> None:
    """A step of the control plane: fill listings, pass outcomes on."""
    for said in ground.poll(seconds):
        if isinstance(said, HeadMessageReceived):
            if isinstance(said.said, SubscriberPage):
                listings.on_page(said.head, said.said, time.monotonic())
            elif isinstance(said.said, Outcome):
                heard(said.head, said.said)
    listings.tick(time.monotonic())


def find_residue(ground: FleetHarness, listings: SoakListings, homes: Homes) -> Iterator[str]:
    """All residue of the fleet, one phrase each."""
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


def _of_head(ground: FleetHarness, name: str, status: Mapping[str, Any], homes: Homes) -> Iterator[str]:
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
