"""The audit of hand-overs compares outcomes with the attachments that applications saw."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal, JournalAttachment
from plimsoll.soak.handover_audit import DeliverySilences, SoakAudit, audit_handovers


def audited(folder: Path, one: Any, *attached: tuple[str, str, float], others: Any = (), **more: Any) -> SoakAudit:
    """The audit of one hand-over, with these attachments (subscriber, edge, time) in the journal."""
    with DeliveryJournal(folder / "publishing"):
        pass
    with DeliveryJournal(folder / "subscribing") as journal:
        for name, edge, at in attached:
            journal.attached(JournalAttachment(name, edge, at))
    return audit_handovers([folder / "publishing"], [folder / "subscribing"], [one], others, **more)


BOTH = (("a", "e2", 100.5), ("b", "e2", 100.6))


def test_members_that_moved_have_attached_to_the_target(handover: Any, tmp_path: Path) -> None:
    assert audited(tmp_path, handover(), *BOTH).is_clean
    assert audited(tmp_path, handover(), BOTH[0]).contradictions == (
        "hand-over 1.1: b is `moved`, but never attached to e2",
    )


@pytest.mark.parametrize(
    ("outcome", "attached", "text"),
    [
        ("returned", (), "b is `returned`, but never attached again"),
        ("stayed", (("b", "e2", 100.5),), "b is `stayed`, but attached to e2"),
        ("away", (("b", "e2", 100.5),), "b is `away`, but attached to e2"),
        ("gone", (("b", "e2", 100.5),), "b is `gone`, but attached to e2"),
        ("detached", (), "b is `detached` before the time for draining was over"),
    ],
)
def test_an_outcome_that_an_application_did_not_see_is_reported(
    outcome: str, attached: Any, text: str, handover: Any, tmp_path: Path
) -> None:
    one = handover(members=[("a", "moved"), ("b", outcome)])
    (found,) = audited(tmp_path, one, BOTH[0], *attached).contradictions
    assert text in found


def test_a_member_that_stayed_may_have_attached_to_the_target_if_edges_crashed(handover: Any, tmp_path: Path) -> None:
    one = handover(members=[("a", "moved"), ("b", "stayed")])
    assert audited(tmp_path, one, *BOTH, disturbed=True).is_clean
    assert not audited(tmp_path, one, *BOTH).is_clean


def test_a_member_that_resumed_may_be_killed_before_it_learns_of_its_attachment(handover: Any, tmp_path: Path) -> None:
    one = handover()
    by_replay = handover(plan=msgspec.structs.replace(one.plan, replay=True))
    assert audited(tmp_path, by_replay, disturbed=True).is_clean
    assert not audited(tmp_path, by_replay).is_clean
    assert not audited(tmp_path, one, disturbed=True).is_clean
    back = handover(members=[("a", "moved"), ("b", "returned")])
    assert audited(tmp_path, back, BOTH[0], disturbed=True).is_clean


def test_every_member_needs_an_outcome(handover: Any, tmp_path: Path) -> None:
    (found,) = audited(tmp_path, handover(members=[("a", "moved")]), *BOTH).contradictions
    assert found == "hand-over 1.1 of 2 members has outcomes for 1"


def test_a_session_that_ends_too_late_or_leaves_residue_breaks_a_law(handover: Any, tmp_path: Path) -> None:
    assert not audited(tmp_path, handover(ended_at=100.0 + 18.1), *BOTH).verdict.ok
    left = seen.ResidueObserved("fleet", "e1 has 1 slots", 1, 110.0)
    assert not audited(tmp_path, handover(), *BOTH, others=[left]).verdict.ok


def test_silence_includes_the_ends_of_the_watched_interval() -> None:
    silences = DeliverySilences({"s": (10.0, 20.0), "quiet": (10.0, 20.0), "late": (10.0, 20.0)})
    for at in (9.0, 11.0, 14.0, 15.0, 19.0, 25.0):
        silences.take("s", at)
    silences.take("late", 17.0)
    silences.take("other", 12.0)
    assert silences.longest() == {"s": 4.0, "quiet": 10.0, "late": 7.0}
