"""A process that follows a killed one goes on behind the last delivery that stands in the files before it."""

from pathlib import Path

from plimsoll.core.verify import observations as seen
from plimsoll.local.demo.journal import Journal
from plimsoll.local.soak.subscribing import places

HEAD = ("head", 9)


def test_a_place_is_behind_the_last_delivery_and_behind_gaps(tmp_path: Path) -> None:
    with Journal(tmp_path / "0") as journal:
        journal.note(seen.Subscribed("s", 1, 1, (), 0.0))
        journal.note(seen.Subscribed("fresh", 1, 1, (), 0.0))
        journal.note(seen.Delivered("s", 1, ("p", 1, 1), (*HEAD, 4), 1.0, (*HEAD, 11)))
    with Journal(tmp_path / "1") as journal:
        journal.note(seen.Delivered("s", 1, ("p", 1, 2), ("other", 3, 8), 2.0, (*HEAD, 12)))
        journal.note(seen.GapTold("s", 1, "head", 9, 13, 9, 15, [(*HEAD, 7)], "log", 3.0))
    found = places([str(tmp_path / "0"), str(tmp_path / "1")])
    assert found["s"].token == (*HEAD, 15)
    assert sorted(found["s"].watermarks) == [(*HEAD, 7), ("other", 3, 8)]
    assert (found["fresh"].token, found["fresh"].watermarks) == (None, [])
    assert places([]) == {}
