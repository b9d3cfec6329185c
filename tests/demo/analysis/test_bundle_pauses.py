"""Waits of subscribers of moved bundles, from journals: the moved topics alone, and only while they moved."""

import pytest

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.verify import observations as seen
from plimsoll.demo.analysis.bundle_pauses import MovedBundles, Waits, waits_of
from plimsoll.demo.journal import DeliveryJournal

LOW, HIGH = "0x00000000_0x80000000", "0x80000000_0xffffffff"


def topic(is_low):
    return next(name for name in (f"t{number}" for number in range(99)) if (topic_hash(name) < 0x80000000) is is_low)


@pytest.fixture
def journals(tmp_path):
    """Publications 1 to 4, of the low bundle at 1, 2 and 9 s, of the high one at 2 s; each waits its number."""
    with DeliveryJournal(tmp_path / "publishing") as journal:
        for seq, at, is_low in ((1, 1.0, True), (2, 2.0, True), (3, 2.0, False), (4, 9.0, True)):
            journal.note(seen.PublicationObserved("p", 5, seq, {"topic": topic(is_low)}, at))
    with DeliveryJournal(tmp_path / "subscribing") as journal:
        for seq, at in ((1, 1.0), (2, 2.0), (3, 2.0), (4, 9.0)):
            journal.delivered(("s", 1), ("p", 5, seq), ("h", 9, seq), ("h", 9, seq), at + seq)
    return [tmp_path / "publishing"], [tmp_path / "subscribing"]


def test_only_publications_of_moving_bundles_count(journals):
    moved = {"one": MovedBundles((LOW,), 0.5, 3.0), "other": MovedBundles((HIGH,), 0.5, 3.0)}
    assert waits_of(moved, *journals) == {"one": Waits(2.0, 2), "other": Waits(3.0, 1)}


def test_a_move_without_publications_has_no_wait(journals):
    assert waits_of({"late": MovedBundles((HIGH,), 8.0, 10.0)}, *journals) == {"late": Waits(None, 0)}
