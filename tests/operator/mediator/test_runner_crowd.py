"""Hundreds of sessions at once at a slow API server: the view stays fresh, and the urgent ones come first."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from plimsoll.core.session import FleetObserved, MediatorEngine, SessionUpserted
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator import fleet_view
from plimsoll.mediator.evacuation import evacuation_session
from plimsoll.operator.mediator.runner import FleetMediator
from plimsoll.operator.mediator.session_store import ApiSessionStore

CROWD = 300
WRITE_SECONDS = 0.01
CREATED = "2027-01-15T08:00:00Z"


class SlowApi:
    """An API server that takes some time for each write."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.reads = 0

    async def replace_status(self, item: dict[str, Any], **_: Any) -> dict[str, Any]:
        await asyncio.sleep(WRITE_SECONDS)
        self.written.append(item["metadata"]["name"])
        return item

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.reads += 1
        raise AssertionError("the watch has shown the object")

    def pauses(self) -> list[float]:
        return [0.0]


def asked(name: str, **fields: Any) -> dict[str, Any]:
    spec = {"scope": "Local", "mode": "Execute", "source": {"name": "e0"}, "target": {"name": "e1"}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "LoadBalancingSession",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "generation": 1, "creationTimestamp": CREATED},
        "spec": {**spec, "select": {"count": 1}, **fields},
    }


def test_a_crowd_of_sessions_delays_neither_the_view_nor_those_that_are_urgent(monkeypatch: Any) -> None:
    monkeypatch.setattr(fleet_view, "VIEW_SECONDS", 0.1)
    api = SlowApi()
    mediating = FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())  # type: ignore[arg-type]  # only what is called here
    engine = MediatorEngine(1)
    mediating._mediator, mediating._store = engine, ApiSessionStore(api, "ns", 1)  # type: ignore[arg-type]  # only what is called here
    seen: list[tuple[float, object]] = []
    handle = engine.handle

    def noted(event: Any, now: float) -> Any:
        seen.append((now, event))
        return handle(event, now)

    monkeypatch.setattr(engine, "handle", noted)
    fleet = {"kind": "BrokerFleet", "metadata": {"name": "stocks", "namespace": "ns", "uid": "3"}, "spec": {}}
    mediating.update_objects([fleet])
    for number in range(CROWD):
        trigger = {"broker": "e0", "reason": "OverloadedOutput"}
        mediating.session_changed("ADDED", asked(f"crowd-{number:03}", trigger=trigger))
    mediating.session_changed("ADDED", asked("user"))
    edge = {"metadata": {"name": "e7", "uid": "0123456789"}}
    urgent = evacuation_session(edge)
    metadata = {**asked(urgent["metadata"]["name"])["metadata"], "labels": urgent["metadata"]["labels"]}
    mediating.session_changed("ADDED", {**urgent, "metadata": metadata})

    async def until_all_are_taken() -> None:
        async with asyncio.timeout(300):
            while mediating._changes.waiting:
                await mediating._process_inbox()

    asyncio.run(until_all_are_taken())
    taken = [event.request.name for _, event in seen if isinstance(event, SessionUpserted)]
    assert taken == [urgent["metadata"]["name"], "user", *(f"crowd-{number:03}" for number in range(CROWD))]
    assert api.written[0] == urgent["metadata"]["name"]
    assert api.reads == 0
    views = [at for at, event in seen if isinstance(event, FleetObserved)]
    assert max(after - before for before, after in pairwise(views)) < engine.settings.timings.view
    assert len(views) > 5
    assert not [one for one in engine.sessions.values() if one.is_over]
