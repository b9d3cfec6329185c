"""The judgement over hand-overs: outcomes are compared with what applications were told."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal, JournalAttachment
from plimsoll.soak.handover_audit import DeliverySilences, SoakAudit, audit_handovers


def judged(folder: Path, one: Any, *attached: tuple[str, str, float], others: Any = (), **more: Any) -> SoakAudit:
    """Two subscribers that were told of these edges."""
    with DeliveryJournal(folder / "publishing"):
        pass
    with DeliveryJournal(folder / "subscribing") as journal:
        for name, edge, at in attached:
            journal.attached(JournalAttachment(name, edge, at))
    return audit_handovers([folder / "publishing"], [folder / "subscribing"], [one], others, **more)


BOTH = (("a", "e2", 100.5), ("b", "e2", 100.6))


def test_members_that_moved_were_told_of_the_target(handover: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, handover(), *BOTH).is_clean
    assert judged(tmp_path, handover(), BOTH[0]).contradictions == (
        "hand-over 1.1 tells that b moved, which never heard of e2",
    )


@pytest.mark.parametrize(
    ("outcome", "attached", "told"),
    [
        ("returned", (), "b returned, which was never served anew"),
        ("stayed", (("b", "e2", 100.5),), "b stayed, which went to e2"),
        ("detached", (), "b was detached before its time"),
    ],
)
def test_an_outcome_that_an_application_did_not_see_is_named(
    outcome: str, attached: Any, told: str, handover: Any, tmp_path: Path
) -> None:
    one = handover(members=[("a", "moved"), ("b", outcome)])
    (found,) = judged(tmp_path, one, BOTH[0], *attached).contradictions
    assert told in found


def test_who_stayed_may_be_at_the_target_if_edges_crash_meanwhile(handover: Any, tmp_path: Path) -> None:
    one = handover(members=[("a", "moved"), ("b", "stayed")])
    assert judged(tmp_path, one, *BOTH, disturbed=True).is_clean
    assert not judged(tmp_path, one, *BOTH).is_clean


def test_who_resumed_may_die_before_it_hears_of_that(handover: Any, tmp_path: Path) -> None:
    one = handover()
    by_replay = handover(plan=msgspec.structs.replace(one.plan, replay=True))
    assert judged(tmp_path, by_replay, disturbed=True).is_clean
    assert not judged(tmp_path, by_replay).is_clean
    assert not judged(tmp_path, one, disturbed=True).is_clean
    back = handover(members=[("a", "moved"), ("b", "returned")])
    assert judged(tmp_path, back, BOTH[0], disturbed=True).is_clean


def test_every_member_is_told_of(handover: Any, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, handover(members=[("a", "moved")]), *BOTH).contradictions
    assert found == "hand-over 1.1 was for 2 members and tells of 1"


def test_a_session_that_ends_too_late_or_leaves_something_breaks_a_law(handover: Any, tmp_path: Path) -> None:
    assert not judged(tmp_path, handover(ended_at=100.0 + 18.1), *BOTH).verdict.ok
    left = seen.ResidueObserved("fleet", "e1 has 1 slots", 1, 110.0)
    assert not judged(tmp_path, handover(), *BOTH, others=[left]).verdict.ok


def test_silence_is_between_deliveries_and_to_the_ends_of_the_time_watched() -> None:
    silences = DeliverySilences({"s": (10.0, 20.0), "quiet": (10.0, 20.0), "late": (10.0, 20.0)})
    for at in (9.0, 11.0, 14.0, 15.0, 19.0, 25.0):
        silences.take("s", at)
    silences.take("late", 17.0)
    silences.take("other", 12.0)
    assert silences.longest() == {"s": 4.0, "quiet": 10.0, "late": 7.0}
