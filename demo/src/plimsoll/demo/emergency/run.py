"""One run of the scenario: the fleet, the channels, the people, the reports; and what was measured of the edges."""

from __future__ import annotations

import heapq
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from plimsoll.client import Connection, Curve, Publisher
from plimsoll.core.client import Address
from plimsoll.core.protocol.wire import Scalar
from plimsoll.demo.emergency.fleet import TABLES, Arm, Placement, emergency_resources, write_tables
from plimsoll.demo.emergency.oracle import EmergencyVerdict, judge
from plimsoll.demo.emergency.people import People
from plimsoll.demo.emergency.plan import CHANNELS, CityPlan, Person, area_of
from plimsoll.demo.fleet import DemoFleet, DemoFleetError
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

CHANNELS_SECONDS: Final = 180.0
"""How long Spark and all channels may take to begin."""
SETTLE_SECONDS: Final = 240.0
QUIET_SECONDS: Final = 3.0
STEP_SECONDS: Final = 0.02
LOOK_SECONDS: Final = 1.0


@dataclass
class EmergencyRun:
    """What a run has shown. `loads`: F of each edge by second; `delays`: from report to delivery, in seconds."""

    plan: CityPlan
    arm: Arm
    placement: Placement
    verdict: EmergencyVerdict
    channels: Mapping[str, Mapping[str, Any]]
    loads: list[tuple[float, dict[str, float]]]
    delays: list[float]
    sessions: list[dict[str, Any]]
    front_end: int
    back_end: int
    results: int
    reports: int
    problems: list[str]
    wall_seconds: float

    @property
    def migrations(self) -> int:
        """Subscribers that sessions have moved."""
        return sum(int(each.get("status", {}).get("progress", {}).get("moved", 0)) for each in self.sessions)


@dataclass
class _Watch:
    """Load reports of edges: F is what an edge takes in and sends, in bytes per second."""

    loads: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    latest: dict[str, float] = field(default_factory=dict)
    due: float = 1.0
    look_at: float = 0.0
    consumed: int = 0
    _counted: int = 0

    def count(self, statuses: Mapping[str, Mapping[str, Any]]) -> None:
        """Note how many reports all channels have consumed; `consumed` is what it was a look before."""
        self.consumed = self._counted
        self._counted = min((int(each.get("rowsIn", 0)) for each in statuses.values()), default=0)

    def take(self, report: Mapping[str, Any], now: float) -> None:
        if report.get("role") == "edge":
            measured = (report.get(name, 0.0) for name in ("input_bytes_per_second", "output_bytes_per_second"))
            self.latest[str(report["broker"])] = sum(float(each) for each in measured)
        if now >= self.due and self.latest:
            self.due = now + 1.0
            self.loads.append((now, dict(self.latest)))


def cov(loads: Mapping[str, float]) -> float:
    """Standard deviation over mean of the loads of edges (BAD 2019); 0 without load."""
    mean = statistics.fmean(loads.values()) if loads else 0.0
    return statistics.pstdev(loads.values()) / mean if mean else 0.0


def play(
    plan: CityPlan, arm: Arm, placement: Placement, folder: FleetFolder, say: Callable[[str], None]
) -> EmergencyRun:
    """Run a plan; everything that it started has ended when it returns."""
    began = time.monotonic()
    fleet = DemoFleet(folder, emergency_resources(plan, arm, placement))
    try:
        write_tables(plan, folder.path / TABLES)
        fleet.await_ready()
        say("the fleet is ready; Spark starts")
        _await_channels(folder)
        say(f"all {len(CHANNELS)} channels run")
        return _played(plan, arm, placement, folder, fleet, say, began)
    finally:
        fleet.stop()


def _played(
    plan: CityPlan, arm: Arm, placement: Placement, folder: FleetFolder, fleet: DemoFleet,
    say: Callable[[str], None], began: float,
) -> EmergencyRun:  # fmt: skip
    way, watch, published = fleet.entry(), _Watch(), dict[int, float]()
    pair = keys.key_pair(folder, keys.CLIENTS)
    with Connection([Address(way.endpoint, way.head_key)], security=Curve(secret=pair.secret_file)) as connection:
        start = time.monotonic()
        people = People(connection, start)
        publisher = Publisher(connection, name="reporter")
        for at, act in timeline(plan, people, publisher, published):
            while (now := people.now) < at:
                _look(folder, fleet, watch, people, min(STEP_SECONDS, at - now))
            act()
        publisher.flush()
        say(f"{len(published)} reports are published; the last results come")
        problems = _settle(plan, folder, fleet, watch, people)
        received = list(people.received())
        held, observed = people.held(), list(people.received(observed=True))
        verdict = judge(plan, published, held, received, observed, people.gaps)
        publisher.close()
        people.close()
    return EmergencyRun(
        plan=plan, arm=arm, placement=placement, verdict=verdict, channels=channel_statuses(folder),
        loads=watch.loads, delays=sorted(each.at - published[each.report] for each in received),
        sessions=fleet.sessions(), front_end=sum(each.withdrawn == math.inf for each in held),
        back_end=len({each.key for each in held}), results=len(observed), reports=len(published), problems=problems,
        wall_seconds=time.monotonic() - began,
    )  # fmt: skip


def timeline(
    plan: CityPlan, people: People, publisher: Publisher, published: dict[int, float]
) -> Iterator[tuple[float, Callable[[], None]]]:
    """What is done, and at which second of the run. `published` gets the second of each report."""

    def publish(number: int) -> None:
        report = plan.reports[number]
        published[number] = people.now
        found: dict[str, Scalar] = {
            "class": "REPORT", "event": report.event, "area": report.area, "report": number,
        }  # fmt: skip
        publisher.publish(found, report.text.encode())

    def move(person: Person, area: int) -> None:
        people.move(person, area, len(published))

    acts: list[tuple[float, int, Callable[[], None]]] = []
    for person in plan.people:
        acts.append((person.places[0][0], len(acts), partial(people.join, person)))
        for at, place in person.places[1:]:
            acts.append((at, len(acts), partial(move, person, area_of(place))))
    for report in plan.reports:
        acts.append((report.at_seconds, len(acts), partial(publish, report.number)))
    heapq.heapify(acts)
    while acts:
        at, _, act = heapq.heappop(acts)
        yield at, act


def _look(folder: FleetFolder, fleet: DemoFleet, watch: _Watch, people: People, seconds: float) -> None:
    for report in fleet.reports(seconds):
        watch.take(report, people.now)
    if people.now >= watch.look_at:
        watch.look_at = people.now + LOOK_SECONDS
        watch.count(channel_statuses(folder))
        people.step(watch.consumed)


def _settle(plan: CityPlan, folder: FleetFolder, fleet: DemoFleet, watch: _Watch, people: People) -> list[str]:
    """Wait until every channel has consumed every report, its results are accepted, and nothing comes any more."""
    until = people.now + SETTLE_SECONDS
    while people.now < until:
        _look(folder, fleet, watch, people, 0.5)
        statuses = channel_statuses(folder)
        is_done = all(
            each.get("rowsIn", 0) >= len(plan.reports) and each.get("results") == each.get("acceptedResults")
            for each in statuses.values()
        )
        if is_done and people.is_settled and people.now - people.last_item_at > QUIET_SECONDS:
            return []
    return [f"not all results came within {SETTLE_SECONDS:g} s after the last report"]


def channel_statuses(folder: FleetFolder) -> dict[str, dict[str, Any]]:
    """The status of each channel."""
    with ObjectStore(folder.store) as store:
        return {item["metadata"]["name"]: item.get("status", {}) for item in store.objects("Channel")[1]}


def _await_channels(folder: FleetFolder) -> None:
    until = time.monotonic() + CHANNELS_SECONDS
    while True:
        found = {name: status.get("conditions", []) for name, status in channel_statuses(folder).items()}
        waiting = {name: each for name, each in found.items() if not each or each[0]["status"] != "True"}
        if not waiting:
            return
        name, conditions = next(iter(sorted(waiting.items())))
        why = f"{conditions[0]['reason']}: {conditions[0]['message']}" if conditions else "nothing is known of it"
        ended = conditions and conditions[0]["reason"] in ("ChannelNoSpark", "QueryInvalid", "QueryUnkeyed")
        if ended or time.monotonic() > until:
            raise DemoFleetError(f"channel {name} does not run: {why}; see {Path(folder.path) / 'logs'}")
        time.sleep(0.5)
