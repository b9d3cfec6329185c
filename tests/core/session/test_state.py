"""What a session knows of itself: its batches, its counts, and its brokers."""

from __future__ import annotations

from msgspec.structs import replace

from plimsoll.core.session import Session, Timings
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan
from plimsoll.core.session.state import ChildSession


def batch(number: int, ended_at: float | None, **members: str) -> Batch:
    return Batch(
        id=f"7.{number}", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=5.0, since=6.0, members=members, ended_at=ended_at,
    )  # fmt: skip


def test_the_last_batch_of_a_member_counts():
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=["x", "y", "z"])
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0,
        plan=SessionPlan(hash="", pairs=[pair], made_at=0.0),
        batches=[batch(1, 7.0, x="again", y="moved"), batch(2, 9.0, x="moved"), batch(3, None, z="cut")],
    )  # fmt: skip
    assert session.outcomes() == {"x": "moved", "y": "moved"}
    assert session.counts()["moved"] == 2
    assert session.batch is session.batches[2]
    assert session.batch.epoch == 7


def test_timings_scale_together():
    scaled = Timings().scaled(2.0)
    assert (scaled.repeat, scaled.drain, scaled.view) == (1.0, 60.0, 30.0)


def test_of_an_earlier_round_only_the_moved_count():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0, round=1,
        children=[
            ChildSession(name="c", source="a", target="b", members=5, counts={"moved": 3, "stayed": 2}),
            ChildSession(name="d", source="a", target="b", members=2, round=1, counts={"moved": 1, "returned": 1}),
            ChildSession(name="e", source="a", target="b", members=4),
        ],
    )  # fmt: skip
    assert {state: number for state, number in session.counts().items() if number} == {"moved": 4, "returned": 1}
    assert session.planned == 5


def test_the_brokers_that_a_session_keeps_busy():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0, sources=["a"],
        targets=["b", "c"],
    )  # fmt: skip
    assert session.brokers == {"a", "b", "c"}
    assert replace(session, kind="drain").brokers == {"a"}
    assert session.batch is None
    assert session.planned == 0


def test_a_pair_of_two_clusters_goes_across():
    pair = PlannedPair(source="a", target="b", source_head="h", target_head="h", members=[])
    assert pair.is_across is False
    assert replace(pair, target_head="k").is_across is True
