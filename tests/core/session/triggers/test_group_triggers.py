"""Triggers of consumer groups: one session at a time for each, in open windows, and longer apart while none moves."""

from __future__ import annotations

from typing import Any

from tests.core.session.model import spec_of

from plimsoll.core import session as s
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.cluster import MaintenanceWindow

TRIGGER = msg.GroupTrigger("readings", "slow works 0.80 s a second")
NOW = 1_700_000_000.0


def engine(**view: Any) -> s.MediatorEngine:
    made = s.MediatorEngine(1)
    heads, edges = {"east-head": s.HeadView("east-head", "east", 7)}, {"e": s.EdgeView("e", "east", "east-head")}
    made.handle(s.FleetObserved(s.FleetView(heads=heads, edges=edges, **view)), NOW)
    return made


def created(made: s.MediatorEngine, at: float, trigger: msg.GroupTrigger = TRIGGER) -> list[s.CreateSession]:
    effects = made.handle(s.HeadMessage("east-head", trigger), NOW + at)
    return [each for each in effects if isinstance(each, s.CreateSession)]


def test_a_trigger_becomes_a_session_of_its_group():
    [made] = created(engine(), 1.0)
    assert made.name.startswith("slices-readings-")
    spec = spec_of(**made.spec)
    assert spec.slices is not None
    assert (spec.action, spec.slices.group, spec.mode) == ("MoveSlices", "readings", "Execute")
    assert spec.trigger is not None
    assert (spec.trigger.broker, spec.trigger.reason) == ("east-head", TRIGGER.reason)


def test_one_session_at_a_time_for_each_group():
    one = engine()
    [made] = created(one, 1.0)
    assert not created(one, 2.0)
    assert created(one, 2.0, msg.GroupTrigger("orders", "busy"))
    one.handle(s.SessionUpserted(s.SessionRequest(made.name, "u", 1, spec_of(**made.spec))), NOW + 2.0)
    assert not created(one, 200.0)


def test_an_object_that_never_comes_is_not_awaited_for_ever():
    one = engine()
    assert created(one, 1.0)
    assert created(one, 60.0)


def test_outside_of_a_window_and_of_a_head_that_is_not_known_a_trigger_is_dropped():
    closed = MaintenanceWindow(name="rare", schedule="0 3 29 2 *", duration=Duration.parse("1h"))
    assert not created(engine(windows={"east": (closed,)}), 1.0)
    assert not engine().handle(s.HeadMessage("west-head", TRIGGER), NOW + 1.0)
