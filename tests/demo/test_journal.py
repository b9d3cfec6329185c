"""Observations are read back as they were written and in order; a damaged file is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal, DeliveryJournalError, JournalAttachment, read_journal

names = st.text(min_size=1, max_size=8)
numbers = st.integers(0, 2**63 - 1)
triples = st.tuples(names, numbers, numbers)
moments = st.floats(0, 1e9)
deliveries = st.builds(seen.DeliveryObserved, names, numbers, triples, triples, moments, triples)
others = st.one_of(
    st.builds(
        seen.PublicationObserved, names, numbers, numbers, st.dictionaries(names, st.integers(-5, 5) | names), moments
    ),
    st.builds(seen.AcknowledgementObserved, names, numbers, st.lists(numbers, max_size=3), names, st.just([]), moments),
    st.builds(JournalAttachment, names, names, moments),
)


def write(path: Path, entries: list) -> None:
    with DeliveryJournal(path) as journal:
        for one in entries:
            if isinstance(one, seen.DeliveryObserved):
                assert one.place is not None
                journal.delivered((one.subscriber, one.incarnation), one.publication, one.origin, one.place, one.at)
            elif isinstance(one, JournalAttachment):
                journal.attached(one)
            else:
                journal.note(one)


@given(entries=st.lists(deliveries | others, max_size=20))
def test_what_was_noted_comes_back(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("journal") / "one"
    write(path, entries)
    assert list(read_journal(path)) == entries


def test_a_delivery_takes_little(tmp_path):
    place = ("quotes-head", 1, 17)
    one = seen.DeliveryObserved("subscriber-0001", 1, ("publisher-01", 1732186999123456, 4), place, 3.5, place)
    write(tmp_path / "one", [one])
    write(tmp_path / "many", [one] * 1001)
    assert (tmp_path / "many").stat().st_size - (tmp_path / "one").stat().st_size == 1000 * 49


def test_every_damaged_end_is_noticed(tmp_path):
    """A journal is written to its end by a process that ends in order; less is a fault of the run."""
    entries = [
        JournalAttachment("s", "b1", 1.0),
        seen.DeliveryObserved("s", 1, ("p", 1, 1), ("h", 1, 1), 2.0, ("h", 1, 1)),
    ]
    write(tmp_path / "whole", entries)
    data = (tmp_path / "whole").read_bytes()
    write(tmp_path / "empty", [])
    bare = len((tmp_path / "empty").read_bytes())
    boundaries = []
    for length in range(bare, len(data)):
        (tmp_path / "cut").write_bytes(data[:length])
        try:
            found = list(read_journal(tmp_path / "cut"))
        except DeliveryJournalError:  # the cut is noticed
            continue
        assert found == entries[: len(found)]
        boundaries.append(length)
    # Only between two records (a name each for s, p and h, the attachment), where a cut cannot be noticed.
    assert len(boundaries) == 5


def test_another_file_is_no_journal(tmp_path):
    (tmp_path / "other").write_bytes(b'["published", 1]\n')
    with pytest.raises(DeliveryJournalError, match="not a journal"):
        list(read_journal(tmp_path / "other"))
    (tmp_path / "rubbish").write_bytes(b"plimsoll-journal-1\nZ\x00\x00\x00\x00")
    with pytest.raises(DeliveryJournalError, match="no known kind"):
        list(read_journal(tmp_path / "rubbish"))
