"""What a session has come to over all its attempts."""

from __future__ import annotations

from plimsoll.core.session import Session
from plimsoll.core.session.attempts import moved_since
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.state import PastAttempt


def batch(number: int, ended_at: float | None, **members: str) -> Batch:
    return Batch(
        id=f"7.{number}", head="h", head_epoch=1, source="a", target="b", target_head="h", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=5.0, since=6.0, members=members, ended_at=ended_at,
    )  # fmt: skip


def kept(number: int, ended_at: float, *moved: str) -> PastAttempt:
    return PastAttempt(
        number=number, phase="Failed", reason="r", message="m", started_at=0.0, ended_at=ended_at, planned=2,
        moved=list(moved),
    )  # fmt: skip


def test_who_moved_since_a_time_in_all_attempts():
    session = Session(
        uid="u", name="n", requested_at=1.0, queued_at=2.0, phase_at=3.0, deadline_at=4.0,
        batches=[batch(1, 20.0, x="moved", y="stayed"), batch(2, None, z="moved")],
        history=[kept(1, 5.0, "u"), kept(2, 8.0, "v", "w")],
    )  # fmt: skip
    for at, names in ((4.9, "xuvw"), (5.0, "xvw"), (8.0, "x"), (19.9, "x"), (20.0, "")):
        assert list(moved_since(session, at)) == list(names), at
