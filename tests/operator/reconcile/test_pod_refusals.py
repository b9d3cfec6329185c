"""Why pods are refused: read from Events, seldom, and only while a pod is missing."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.operator.world import World

from plimsoll.operator.api import ApiError
from plimsoll.operator.reconcile.observed import unix_seconds
from plimsoll.operator.reconcile.pod_refusals import (
    EVENTS_AT_MOST,
    INTERVAL_SECONDS,
    MISSING_SECONDS,
    SKEW_SECONDS,
    PodRefusals,
    latest_messages,
)

START = unix_seconds("2026-01-01T00:00:00Z")


def event(name: str, note: str, at: str = "2026-01-01T00:00:00Z", uid: str = "u") -> dict[str, Any]:
    return {"regarding": {"name": name, "uid": uid}, "note": note, "deprecatedLastTimestamp": at}


class Events:
    """An API server with these Events."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events, self.reads, self.away = list(events), 0, False

    async def page(self, kind: str, _namespace: str, fields: str, at_most: int) -> list[dict[str, Any]]:
        assert (kind, fields) == ("Event", "reason=FailedCreate,regarding.kind=StatefulSet")
        assert at_most == EVENTS_AT_MOST
        self.reads += 1
        if self.away:
            raise ApiError(403, "forbidden")
        return self.events


def settled() -> World:
    world = World()
    world.settle()
    return world


def looks(world: World, events: Events, *times: float) -> dict[str, str]:
    async def run() -> dict[str, str]:
        refusals = PodRefusals(events, "n")  # type: ignore[arg-type]  # a stand-in for the part that is used
        for at in times:
            await refusals.look(world.observed(), at)
        return dict(refusals.messages)

    return asyncio.run(run())


def without_pod() -> tuple[World, Events]:
    world = settled()
    del world.objects["Pod", "edge-1-0"]
    uid = world.objects["StatefulSet", "edge-1"]["metadata"]["uid"]
    return world, Events(event("edge-1", "no PriorityClass with name high was found", uid=uid))


def test_nothing_is_read_while_all_pods_are_there():
    events = Events()
    assert looks(settled(), events, START, START + 100) == {}
    assert events.reads == 0


def test_a_pod_that_is_missing_for_a_while_is_looked_for_in_events():
    world, events = without_pod()
    told = {"edge-1": "no PriorityClass with name high was found"}
    refusals = PodRefusals(events, "n")  # type: ignore[arg-type]  # a stand-in for the part that is used

    async def run() -> None:
        await refusals.look(settled().observed(), START - 1)
        for at in (START, START + MISSING_SECONDS / 2):
            await refusals.look(world.observed(), at)
        assert events.reads == 0, "a pod is replaced in that time"
        for at in (START + MISSING_SECONDS, START + MISSING_SECONDS + INTERVAL_SECONDS / 2):
            await refusals.look(world.observed(), at)
        assert (refusals.messages, events.reads) == (told, 1), "seldom"

    asyncio.run(run())


def test_what_was_said_of_an_earlier_pod_is_not_said_again():
    world, events = without_pod()
    later = START + SKEW_SECONDS + 1
    refusals = PodRefusals(events, "n")  # type: ignore[arg-type]  # a stand-in for the part that is used

    async def run() -> None:
        await refusals.look(settled().observed(), later)
        for at in (later + 1, later + 1 + MISSING_SECONDS):
            await refusals.look(world.observed(), at)

    asyncio.run(run())
    assert (refusals.messages, events.reads) == ({}, 1)


def test_a_new_operator_reads_at_once_why_a_pod_is_missing():
    world, events = without_pod()
    assert looks(world, events, START + 600) == {"edge-1": "no PriorityClass with name high was found"}


def test_what_was_refused_is_forgotten_once_there_is_a_pod():
    world, events = without_pod()
    refusals = PodRefusals(events, "n")  # type: ignore[arg-type]  # a stand-in for the part that is used

    async def run() -> None:
        for at in (START, START + MISSING_SECONDS):
            await refusals.look(world.observed(), at)
        assert refusals.messages
        await refusals.look(settled().observed(), START + MISSING_SECONDS + 1)
        assert not refusals.messages

    asyncio.run(run())


def test_an_api_server_that_shows_no_events_stops_nothing():
    world, events = without_pod()
    events.away = True
    assert looks(world, events, START, START + MISSING_SECONDS) == {}
    assert events.reads == 1


def test_the_newest_message_about_each_statefulset_that_is_asked_for():
    events = [
        event("e", "old", "2026-01-01T00:00:00Z"), event("e", "new", "2026-01-01T00:00:09Z"),
        event("e", "of its predecessor", "2026-01-02T00:00:00Z", uid="other"), event("f", "not asked for"),
        {"regarding": {"name": "g", "uid": "u"}},
    ]  # fmt: skip
    assert latest_messages(events, {"e": "u", "g": "u"}, {"e": 0.0, "g": 0.0}) == {"e": "new"}
    assert latest_messages([event("e", "x" * 10_000)], {"e": "u"}, {"e": 0.0}) == {"e": "x" * 500}
