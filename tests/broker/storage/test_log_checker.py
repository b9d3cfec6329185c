"""Sealed segments that are read in the background: what is good, what is damaged, and what goes meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.core.head.durability.conftest import EMPTY, own

from plimsoll.broker.storage.log_checker import LogChecker
from plimsoll.broker.storage.log_folder import LogFolder
from plimsoll.core.head.durability.segments import Segment
from plimsoll.core.head.durability.store import LogStore

FAST = 1e12
SECONDS = 300.0


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[LogFolder, list[Segment]]:
    """The folder of a log, and its three sealed segments as a recovery finds them."""
    folder = LogFolder(tmp_path)
    store = LogStore(folder, "h", 1 << 20, 4096)
    while len(store.segments) < 4:
        if store.is_full:
            store.settle()
            store.begin(EMPTY)
        store.write([own(store.position + 1, store.position + 1)])
    again = LogStore(folder, "h", 1 << 20, 4096)
    again.recover()
    return folder, again.unchecked()


def found_by(folder: LogFolder, segments: list[Segment]) -> dict[str, str]:
    checker = LogChecker(folder, segments, FAST)
    assert checker.remaining_bytes == sum(segment.end for segment in segments)
    checker.start()
    checker._thread.join(SECONDS)
    assert (checker.remaining_bytes, checker._thread.is_alive()) == (0, False)
    found = dict(checker.take())
    assert checker.take() == []
    return found


def test_good_segments_are_found_good_and_the_newest_first(sealed: tuple[LogFolder, list[Segment]]):
    folder, segments = sealed
    assert len(segments) == 3
    assert list(found_by(folder, segments).items()) == [(segment.name, "") for segment in reversed(segments)]


def test_a_changed_byte_or_a_short_file_is_a_fault(sealed: tuple[LogFolder, list[Segment]]):
    folder, (first, second, third) = sealed
    file = folder.path / first.name
    data = bytearray(file.read_bytes())
    data[first.end // 3] ^= 1
    file.write_bytes(data)
    (folder.path / second.name).write_bytes((folder.path / second.name).read_bytes()[:-1])
    found = found_by(folder, [first, second, third])
    assert "checksum" in found[first.name]
    assert "seal is damaged" in found[second.name]
    assert found[third.name] == ""


def test_a_segment_that_is_removed_meanwhile_is_no_fault(sealed: tuple[LogFolder, list[Segment]]):
    folder, segments = sealed
    folder.remove(segments[0].name)
    assert set(found_by(folder, segments).values()) == {""}


def test_it_stops_in_the_middle(sealed: tuple[LogFolder, list[Segment]], monkeypatch: pytest.MonkeyPatch):
    folder, segments = sealed
    reads = threading.Event()
    read = folder.read

    def watched(name: str, start: int, size: int) -> bytes:
        reads.set()
        return read(name, start, size)

    monkeypatch.setattr(folder, "read", watched)
    checker = LogChecker(folder, segments, bytes_per_second=1.0)
    checker.start()
    assert reads.wait(SECONDS)
    checker.close()
    assert not checker._thread.is_alive()
    assert checker.take() == []
