"""Residue: state in brokers that a fleet at rest must not have. Statuses and owners are requested until it is clean.

In a clean fleet every subscriber is served by the edge that its application knows, and the head of that edge owns it
there. There are no slots, no attachments that are not live, no open sessions, no remote members, and no owner entry of
a subscriber that is served elsewhere.
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
"""The edge of each subscriber as its application knows it; empty if it is not served."""


def await_no_residue(
    harness: FleetHarness, listings: SoakListings, homes: Callable[[], Homes], seconds: float,
    on_outcome: Callable[[str, Outcome], None] = lambda head, outcome: None,
) -> list[str]:  # fmt: skip
    """Wait until the fleet is clean, or the time is over; returns what is left."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        harness.statuses.clear()
        listings.request_all([(harness.head_of(edge), edge) for edge in harness.edges()], began)
        harness.ask()
        while time.monotonic() < began + 1.0 and not (
            len(harness.statuses) == len(harness.brokers) and len(listings.complete) == len(harness.edges())
        ):
            poll_control_plane(harness, listings, 0.02, on_outcome)
        left = list(find_residue(harness, listings, homes()))
        if not left or time.monotonic() > deadline:
            return left
        until = time.monotonic() + POLL_SECONDS
        while (rest := until - time.monotonic()) > 0:
            poll_control_plane(harness, listings, rest, on_outcome)


def poll_control_plane(
    harness: FleetHarness, listings: SoakListings, seconds: float, on_outcome: Callable[[str, Outcome], None]
) -> None:
    """Read the control plane for some seconds: pages go to the listings, outcomes to `on_outcome`."""
    for event in harness.poll(seconds):
        if isinstance(event, HeadMessageReceived):
            if isinstance(event.said, SubscriberPage):
                listings.on_page(event.head, event.said, time.monotonic())
            elif isinstance(event.said, Outcome):
                on_outcome(event.head, event.said)
    listings.tick(time.monotonic())


def find_residue(harness: FleetHarness, listings: SoakListings, homes: Homes) -> Iterator[str]:
    """All residue of the fleet as text."""
    for name, edge in sorted(homes.items()):
        if not edge:
            yield f"{name} is not served"
    for name in harness.brokers:
        status = harness.statuses.get(name)
        if status is None:
            yield f"{name} does not answer"
        elif harness.brokers[name].role == "head":
            yield from _of_head(harness, name, status, homes)
        else:
            yield from _of_edge(name, status)
    for edge in harness.edges():
        if edge not in listings.complete:
            yield f"{harness.head_of(edge)} has not listed the subscribers of {edge}"
            continue
        listed, served = set(listings.complete[edge]), {name for name, at in homes.items() if at == edge}
        yield from (
            f"{edge} owns {name}, whose application is at {homes.get(name, '?')}" for name in sorted(listed - served)
        )
        yield from (f"{edge} does not own {name}, whose application is there" for name in sorted(served - listed))


def _of_head(harness: FleetHarness, name: str, status: Mapping[str, Any], homes: Homes) -> Iterator[str]:
    for field, what in (("sessions", "open sessions"), ("guests", "remote members")):
        if status.get(field):
            yield f"{name} has {status[field]} {what}"
    if status.get("waiting_for"):
        yield f"{name} waits for {status['waiting_for']}"
    own = set(harness.edges(name))
    served = sum(edge in own for edge in homes.values())
    if status["subscribers"] != served:
        yield f"{name} has {status['subscribers']} owner entries for {served} subscribers served there"


def _of_edge(name: str, status: Mapping[str, Any]) -> Iterator[str]:
    if status["slots"]:
        yield f"{name} has {status['slots']} slots"
    for state, count in status["subscribers"].items():
        if count and state != "live":
            yield f"{name} has {count} attachments that are {state}"
