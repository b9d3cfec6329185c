"""A survey over the control sockets of a fleet's brokers, with the key of a mediator. It commands nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from plimsoll.core.config import PeerBroker, Role
from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.control_plane import ControlPlane, ListingReceived, MediatorKeyPair
from plimsoll.mediator.fleet_resources import Object
from plimsoll.mediator.world.traffic_survey import END, SurveyError, SurveyReader, TrafficSurvey

SURVEY_SECONDS = 20.0
POLL_SECONDS = 0.1
TIMED_HEADS, TIMED_QUESTIONS, TIMED_FROM, LOST_SECONDS = 4, 25, 2**40, 1.0
"""Questions whose answers are timed, their numbers, and when one counts as lost."""


def is_plain(objects: Iterable[Object]) -> bool:
    """Whether the fleet of these objects has no keys. It is not parsed: a fault elsewhere does not matter here."""
    fleets = (item["spec"] for item in objects if item["kind"] == "BrokerFleet")
    return any(bool((spec.get("security") or {}).get("plain")) for spec in fleets)


def run_survey(
    name: str, curve: MediatorKeyPair | None, objects: Iterable[Object], cluster: str, over_seconds: float
) -> TrafficSurvey:
    """Ask all heads what they have logged, and the edges of a cluster, or all, what their subscribers ask for.

    `name`, `curve`: the mediator's, as the brokers know it.

    Raises:
        SurveyError: a broker does not answer.

    """
    brokers = list(_brokers(objects, cluster))
    heads = [peer.name for peer, role in brokers if role == "head"]
    edges = [peer.name for peer, role in brokers if role == "edge"]
    reader = SurveyReader(heads, edges, over_seconds)
    control = ControlPlane(name, curve, 0)
    try:
        for peer, role in brokers:
            control.dial(peer, role)
        until = time.monotonic() + SURVEY_SECONDS
        while waiting := reader.waiting:
            now = time.monotonic()
            if now > until:
                raise SurveyError(
                    f"{waiting[0]} does not answer: `plimsoll logs {waiting[0]}` may say why; with --from-status no "
                    "broker is asked"
                )
            for broker, request in reader.requests(now):
                control.ask_for_page(broker, request)
            for said in control.poll(POLL_SECONDS):
                if isinstance(said, ListingReceived):
                    reader.take(said.broker, said.page)
        trips = [trip for head in heads[:TIMED_HEADS] for trip in _round_trips(control, head)]
    finally:
        control.close()
    return replace(reader.survey(), round_trip_seconds=median(trips) if trips else None)


def _round_trips(control: ControlPlane, head: str) -> Iterator[float]:
    """Times from a question with a small answer to that answer; none after one that is lost."""
    for number in range(TIMED_QUESTIONS):
        request = msg.ListPublications(TIMED_FROM + number, END)
        asked = now = time.monotonic()
        control.ask_for_page(head, request)
        is_answered = False
        while not is_answered and now < asked + LOST_SECONDS:
            for said in control.poll(POLL_SECONDS):
                is_answered = is_answered or (isinstance(said, ListingReceived) and said.page.id == request.id)
            now = time.monotonic()
        if not is_answered:
            return
        yield now - asked


def _brokers(objects: Iterable[Object], cluster: str) -> Iterator[tuple[PeerBroker, Role]]:
    for item in objects:
        status = item.get("status", {})
        if item["kind"] == "BrokerCluster" and "head" in status:
            yield _peer(status["head"]["name"], status["head"]), "head"
        elif item["kind"] == "EdgeBroker" and cluster in ("", item["spec"]["clusterRef"]["name"]):
            yield _peer(item["metadata"]["name"], status), "edge"


def _peer(name: str, status: Mapping[str, Any]) -> PeerBroker:
    ends = status.get("endpoints")
    if not ends:
        raise SurveyError(f"{name} has no address in its status yet: wait until `plimsoll get` shows it ready")
    return PeerBroker(name=name, data=ends["data"], control=ends["control"], public_key=ends["publicKey"])
