"""The successor of a killed process resumes behind the last delivery in the journals before it."""

from pathlib import Path

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal
from plimsoll.soak.harness.subscriber_worker import resume_points, token_file

HEAD = ("head", 9)


def test_a_resume_point_is_behind_the_last_delivery_and_behind_gaps(tmp_path: Path) -> None:
    with DeliveryJournal(tmp_path / "0") as journal:
        journal.note(seen.SubscriptionObserved("s", 1, 1, (), 0.0))
        journal.note(seen.SubscriptionObserved("fresh", 1, 1, (), 0.0))
        journal.note(seen.DeliveryObserved("s", 1, ("p", 1, 1), (*HEAD, 4), 1.0, (*HEAD, 11)))
    with DeliveryJournal(tmp_path / "1") as journal:
        journal.note(seen.DeliveryObserved("s", 1, ("p", 1, 2), ("other", 3, 8), 2.0, (*HEAD, 12)))
        journal.note(seen.GapObserved("s", 1, "head", 9, 13, 9, 15, [(*HEAD, 7)], "log", 3.0))
    found = resume_points([str(tmp_path / "0"), str(tmp_path / "1")])
    assert found["s"].token == (*HEAD, 15)
    assert sorted(found["s"].watermarks) == [(*HEAD, 7), ("other", 3, 8)]
    assert (found["fresh"].token, found["fresh"].watermarks) == (None, [])
    assert resume_points([]) == {}


def test_a_token_saved_after_the_last_delivery_takes_precedence(tmp_path: Path) -> None:
    with DeliveryJournal(tmp_path / "0") as journal:
        for name in ("moved", "quiet", "behind"):
            journal.note(seen.SubscriptionObserved(name, 1, 1, (), 0.0))
        for name in ("moved", "behind"):
            journal.note(seen.DeliveryObserved(name, 1, ("p", 1, 1), (*HEAD, 4), 2.0, (*HEAD, 11)))
    lines = [
        b'[1.0,"behind",["head",9,3],[["head",9,1]]]', b'[3.0,"moved",["far",5,70],[["head",9,4]]]',
        b'[3.0,"quiet",["head",9,20],[]]', b'[9.0,"quiet",["head",9,9',
    ]  # fmt: skip
    token_file(tmp_path / "0").write_bytes(b"\n".join(lines))
    found = resume_points([str(tmp_path / "0")])
    assert found["moved"].token == ("far", 5, 70)
    assert found["quiet"].token == (*HEAD, 20)
    assert (found["behind"].token, found["behind"].watermarks) == ((*HEAD, 11), [(*HEAD, 4)])
