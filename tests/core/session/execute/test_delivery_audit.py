"""What members have counted: sums that only rise, taken until all are known or the time for it is over."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session import made
from tests.core.session.alone import batch_of, context_at
from tests.core.session.model import Faults, World

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EmitEvent, HeadMessage, Session, Tick
from plimsoll.core.session.batch import AuditTotals, Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.events import SendMessage
from plimsoll.core.session.execute import delivery_audit
from plimsoll.core.session.state import ChildSession

MOVED = {"x": "moved", "y": "moved", "z": "stayed"}


def told(*sums: int, batch: str = "4.1", epoch: int = 10) -> msg.Outcome:
    audit = msg.AuditItem(*sums) if sums else None
    return msg.Outcome(batch, 4, epoch, "done", [("x", "moved"), ("y", "moved")], "", audit)


def ended(**fields: Any) -> Batch:
    return batch_of(**{"members": MOVED, "ended_at": 102.0, "cut_at": 101.0, "state": "done", **fields})


def session(*batches: Batch, **fields: Any) -> Session:
    return made.session("s", batches=list(batches), **fields)


def context_of(*sessions: Session, now: float = 104.0) -> EngineContext:
    context = context_at(now)
    for each in sessions:
        context.table.put(each)
    return context


def audit(context: EngineContext, uid: str = "s") -> AuditTotals:
    return context.table.sessions[uid].audit()


# -- received


def test_sums_of_a_batch_are_those_of_its_session():
    context = context_of(session(ended(), ended(id="4.2")))
    delivery_audit.receive_audit(context, "h", told(2, 1, 0, 3, 4))
    delivery_audit.receive_audit(context, "h", told(1, 0, 1, 0, 0, batch="4.2"))
    assert audit(context) == AuditTotals(subscribers=3, lost=1, duplicated=1, reordered=3, suppressed=4)


def test_what_is_late_or_comes_twice_changes_nothing():
    context = context_of(session(ended()))
    delivery_audit.receive_audit(context, "h", told(2, 1, 0, 0, 0))
    before = context.table.sessions["s"]
    for again in (told(2, 1, 0, 0, 0), told(1, 0, 0, 0, 0), told()):
        delivery_audit.receive_audit(context, "h", again)
    assert context.table.sessions["s"] is before


@pytest.mark.parametrize(
    ("head", "outcome"),
    [("k", told(1, 0, 0, 0, 0)), ("h", told(1, 0, 0, 0, 0, batch="4.9")), ("h", told(1, 0, 0, 0, 0, epoch=11))],
    ids=["head", "batch", "epoch"],
)
def test_sums_of_something_else_are_not_taken(head: str, outcome: msg.Outcome):
    context = context_of(session(ended()))
    delivery_audit.receive_audit(context, head, outcome)
    assert audit(context) == AuditTotals()


def test_a_session_that_is_over_is_told_too_and_so_is_its_parent():
    child = session(ended(), parent="p", phase="Succeeded", ended_at=103.0)
    of = ChildSession(name="s", source="a", target="b", members=3, uid="s", phase="Succeeded", counts={"moved": 2})
    other = replace(of, name="t", uid="t", audit=AuditTotals(subscribers=1, lost=2))
    parent = made.session("p", children=[of, other], phase="Succeeded", ended_at=103.5)
    context = context_of(child, parent)
    delivery_audit.receive_audit(context, "h", told(2, 1, 0, 0, 0))
    assert audit(context) == AuditTotals(subscribers=2, lost=1)
    assert audit(context, "p") == AuditTotals(subscribers=3, lost=3)
    assert {each.uid for each, _, _ in context.table.unsaved()} == {"s", "p"}
    found = context.table.sessions
    assert (found["s"].reason, found["p"].reason, found["p"].children[0].reason) == ("DeliveryFaults",) * 3
    told_of = [(one.name, one.reason, one.type) for one in context.outbox.effects if isinstance(one, EmitEvent)]
    assert told_of == [("s", "DeliveryFaults", "Warning"), ("p", "DeliveryFaults", "Warning")]


def test_of_moved_publishers_as_many_count_as_one_move_audits():
    members = {f"p{number}": "moved" for number in range(300)}
    context = context_of(session(ended(members={**members, "q": "stayed"}), kind="publishers"))
    item = msg.AuditItem(2, 0, 1, 0, 0, 3, 10, 20)
    told = msg.PublisherOutcome("4.1", 4, 10, "done", [], "", item)
    delivery_audit.receive_audit(context, "h", told)
    assert audit(context) == AuditTotals(
        subscribers=2, duplicated=1, publishers=msg.AUDITED_PUBLISHERS_AT_MOST, asked=3, before=10, after=20
    )


# -- asked


def asked(context: EngineContext) -> list[str]:
    context.outbox.effects = []
    delivery_audit.send_audit_queries(context)
    return [
        effect.message.session
        for effect in context.outbox.effects
        if isinstance(effect, SendMessage) and isinstance(effect.message, msg.Command) and effect.message.step == "ask"
    ]


def test_a_head_is_asked_now_and_then_as_long_as_a_member_is_missing():
    context = context_of(session(ended()), now=102.5)
    said = []
    for tenth in range(150):
        context.outbox.now = 102.5 + tenth / 10
        said += [context.now] if asked(context) else []
    assert said[0] == 102.0 + delivery_audit.AUDIT_QUERY_SECONDS
    assert all(later - earlier >= delivery_audit.AUDIT_QUERY_SECONDS for earlier, later in pairwise(said))
    assert 8 <= len(said) <= 10
    assert said[-1] < 102.0 + delivery_audit.AUDIT_WAIT_SECONDS
    assert context.table.unaudited() == []


def test_no_head_is_asked_once_all_is_known():
    context = context_of(session(ended()))
    assert asked(context) == ["4.1"]
    context.outbox.now += 2.0
    delivery_audit.receive_audit(context, "h", told(2, 0, 0, 0, 0))
    assert asked(context) == []
    assert context.table.unaudited() == []


def test_no_head_is_asked_about_a_batch_that_moved_no_member():
    context = context_of(session(ended(members={"x": "stayed"})))
    assert asked(context) == []


def test_while_a_batch_is_under_way_its_session_is_kept_in_mind():
    context = context_of(session(ended(audit=AuditTotals(subscribers=2)), batch_of(id="4.2")))
    assert asked(context) == []
    assert [each.uid for each in context.table.unaudited()] == ["s"]


# -- in the mediator


def counts_for(world: World, uid: str) -> list[msg.Outcome]:
    """The heads' audits of all batches of a session in which every member has counted one suppressed delivery."""
    found = []
    for batch in world.session(uid).batches:
        moved = sum(state == "moved" for state in batch.members.values())
        outcome = world.heads[batch.head].outcome(batch.id)
        found.append(replace(outcome, audit=msg.AuditItem(moved, 0, 0, 0, moved)) if moved else outcome)
    return found


def test_it_is_stored_with_the_session_even_after_its_end_and_breaks_no_law():
    world = World(seed=4, faults=Faults(speed=0.5))
    world.fill("a", 12)
    uid = world.ask("s", source="a", target="b", select={"count": 9}, limits={"maxInFlight": 4}, deadline="20s")
    world.until_over(uid)
    assert world.session(uid).audit() == AuditTotals()
    for outcome in counts_for(world, uid):
        world.handle(HeadMessage("east-head", outcome))
    for _ in range(20):
        world.step()
    over = world.session(uid)
    assert over.audit() == AuditTotals(subscribers=9, suppressed=9)
    assert (over.phase, over.counts()["moved"]) == ("Succeeded", 9)


def test_a_restarted_mediator_asks_for_missing_counts():
    world = World(seed=4)
    world.fill("a", 3)
    uid = world.ask("s", source="a", target="b", select={"count": 3})
    while not world.session(uid).batches or world.session(uid).batch is not None:
        world.step()
    [batch] = world.session(uid).batches
    world.start()
    world.sent.clear()
    for _ in range(15):
        world.step()
    asks = [one.message for one in world.sent if isinstance(one.message, msg.Command)]
    assert {(one.session, one.step) for one in asks} == {(batch.id, "ask")}
    for outcome in counts_for(world, uid):
        world.handle(HeadMessage("east-head", outcome))
    world.handle(Tick())
    world.until_over(uid)
    assert world.session(uid).audit().subscribers == 3


def test_sums_go_into_the_history_with_their_attempt():
    world = World(seed=2)
    world.fill("a", 6)
    uid = world.ask("s", source="a", target="b", select={"count": 6}, retries=1, limits={"maxInFlight": 2})
    while len(world.session(uid).batches) < 2:
        world.step()
    for outcome in counts_for(world, uid):
        world.handle(HeadMessage("east-head", outcome))
    world.down.add("b")
    while not world.session(uid).history:
        world.step()
    [attempt] = world.session(uid).history
    assert attempt.audit is not None
    assert attempt.audit.subscribers == attempt.audit.suppressed >= 2
    assert world.session(uid).audit() == AuditTotals()
