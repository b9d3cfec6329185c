"""Maintenance windows bind triggered sessions, not those that users create."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.core.session.balanced import Balanced
from tests.core.session.joined import Joined
from tests.core.session.model import Faults, World

from plimsoll.core.session import FleetView, Session
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.cluster import MaintenanceWindow

TRIGGER = {"broker": "a", "reason": "wanted"}
"""The world begins at 13:46:40."""


def window(schedule: str, duration: str) -> tuple[MaintenanceWindow, ...]:
    return (MaintenanceWindow(name="w", schedule=schedule, duration=Duration.parse(duration)),)


FROM_13_48 = window("48 13 * * *", "10m")
UNTIL_13_47 = window("46 13 * * *", "1m")
LATER = window("0 20 * * *", "1h")


@dataclass
class Windowed(World):
    windows: dict[str, Any] = field(default_factory=dict)

    def view(self) -> FleetView:
        return replace(super().view(), windows=self.windows)


@dataclass
class BalancedInWindows(Balanced):
    windows: dict[str, Any] = field(default_factory=dict)

    def view(self) -> FleetView:
        return replace(super().view(), windows=self.windows)


@dataclass
class JoinedInWindows(Joined):
    windows: dict[str, Any] = field(default_factory=dict)

    def view(self) -> FleetView:
        return replace(super().view(), windows=self.windows)


def asked(world: World, **fields: Any) -> Session:
    """A session at its end; the fleet is known before it is asked for."""
    world.run(2.0)
    uid = world.ask("s", **{"source": "a", "target": "b", "select": {"count": 4}, **fields})
    world.until_over(uid)
    return world.session(uid)


def test_edges_are_balanced_once_a_window_is_open():
    world = BalancedInWindows(seed=1, windows={"east": FROM_13_48})
    world.fill("a", 24)
    world.run(75.0)
    assert world.counts() == (24, 0, 0)
    assert world.named_like("balance-") == [], "nothing is made that could not go on"
    world.run(60.0)
    assert max(world.counts()) - min(world.counts()) <= 5


def test_what_is_triggered_is_refused_outside_of_a_window_and_told_when_one_opens():
    world = Windowed(windows={"east": LATER})
    world.fill("a", 9)
    session = asked(world, trigger=TRIGGER)
    assert (session.phase, session.reason) == ("Rejected", "OutsideWindow")
    assert session.message == "no maintenance window of east is open; the next one opens at 1970-01-12T20:00:00Z"
    assert not session.may_retry
    assert len(world.serves["a"]) == 9


@pytest.mark.parametrize("windows", [{}, {"east": UNTIL_13_47}, {"west": LATER}])
def test_it_is_carried_out_within_a_window_and_where_there_are_none(windows):
    world = Windowed(windows=windows)
    world.fill("a", 9)
    assert asked(world, trigger=TRIGGER).reason == "Moved"


def test_people_and_drains_do_not_wait_for_a_window():
    world = Windowed(windows={"east": LATER})
    world.fill("a", 9)
    assert asked(world).reason == "Moved"
    drain = asked(world, target=None, select=None, action="Drain")
    assert (drain.phase, drain.reason) == ("Succeeded", "Drained")


def test_when_its_window_closes_a_session_begins_no_further_batch():
    world = Windowed(seed=2, faults=Faults(speed=0.1), windows={"east": UNTIL_13_47})
    world.fill("a", 400)
    session = asked(world, trigger=TRIGGER, select={"count": 400}, limits={"maxInFlight": 4}, deadline="1h")
    assert (session.phase, session.reason) == ("Failed", "OutsideWindow")
    assert session.counts()["moved"] == len(world.serves["b"]) > 0
    assert len(world.serves["a"]) + len(world.serves["b"]) == 400
    closes = 1_000_020.0
    assert all(batch.begun_at <= closes + 1.0 for batch in session.batches)


def test_loads_settle_and_are_measured_though_the_window_has_closed():
    world = Windowed(seed=2, windows={"east": UNTIL_13_47})
    world.fill("a", 9)
    world.run(15.0)
    session = asked(world, trigger=TRIGGER)
    assert session.reason == "Moved"
    assert session.ended_at is not None
    assert session.ended_at > 1_000_020.0
    assert session.spent["Stabilizing"] >= 3.0


@pytest.mark.parametrize(
    ("windows", "reason"),
    [({"west": LATER}, "OutsideWindow"), ({"east": LATER}, "OutsideWindow"), ({"east": UNTIL_13_47}, "Moved")],
)
def test_between_clusters_both_must_be_open(windows, reason):
    world = Windowed(windows=windows)
    world.fill("a", 9)
    assert asked(world, trigger=TRIGGER, scope="Global", target="w").reason == reason


def test_clusters_do_not_turn_to_one_another_outside_of_a_window():
    world = JoinedInWindows(seed=1, windows={"west": FROM_13_48})
    world.fill("a", 24)
    world.fill("b", 24)
    world.fill("c", 24)
    world.run(75.0)
    assert world.named_like("global-") == [], "nothing is made that could not go on"
    assert not world.serves["w"]
    world.run(90.0)
    assert any(session.between for session in world.mediator.sessions.values())
