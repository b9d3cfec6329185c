"""Files that cannot be read are found by their fault, moved with a reason, listed, and removed when they are old."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.telemetry.rows import row, write_rows

from plimsoll.telemetry.schema import INCOMING, LOADS, SET_ASIDE
from plimsoll.telemetry.storage import set_aside as module
from plimsoll.telemetry.storage.parquet import arrow_schema
from plimsoll.telemetry.storage.set_aside import (
    file_fault,
    files_set_aside,
    remove_set_aside,
    set_aside_unreadable,
)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    (tmp_path / INCOMING).mkdir(parents=True)
    path = tmp_path / INCOMING / "c-1-2-3.parquet"
    write_rows(path, LOADS, [row(seq=seq) for seq in range(1, 200)])
    return path


def beside(path: Path, name: str, data: bytes) -> Path:
    other = path.with_name(name)
    other.write_bytes(data)
    return other


def changed(path: Path, name: str, column: str, values: pa.Array) -> Path:
    table = pq.read_table(path)
    index = table.schema.get_field_index(column)
    other = path.with_name(name)
    pq.write_table(table.set_column(index, column, values), other)
    return other


def test_faults_of_files_are_found(sound: Path):
    data = sound.read_bytes()
    assert file_fault(sound, LOADS) == ""
    assert file_fault(sound.with_name("gone.parquet"), LOADS) == ""
    for name, bad in (("half", data[: len(data) // 2]), ("empty", b""), ("text", b"not Parquet at all")):
        assert file_fault(beside(sound, name, bad), LOADS).startswith("not Parquet, or damaged: "), name
    # The footer is whole, and the pages before it are not.
    damaged = beside(sound, "pages", data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])
    assert file_fault(damaged, LOADS).startswith("not Parquet, or damaged: ")
    texts = changed(sound, "texts", "seq", pa.array(["x"] * 199))
    assert file_fault(texts, LOADS) == "other columns than those of the table loads: seq is string, expected int64"
    narrow = changed(sound, "narrow", "seq", pa.array(range(199), pa.int32()))
    assert file_fault(narrow, LOADS) == ""
    few = sound.with_name("few")
    pq.write_table(pq.read_table(sound, columns=["broker"]), few)
    assert file_fault(few, LOADS) == ""
    assert module._wrong_columns(arrow_schema(LOADS), LOADS) == []


def test_a_fault_of_the_volume_is_no_fault_of_the_file(sound: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", fails)
    with pytest.raises(OSError, match="Input/output"):
        set_aside_unreadable(sound.parents[3], [sound], LOADS, "live", 5)
    assert sound.exists()


def test_a_bad_file_is_moved_with_its_reason_and_a_sound_one_stays(tmp_path: Path, sound: Path):
    bad = beside(sound, "bad.parquet", sound.read_bytes()[:900])
    (found,) = set_aside_unreadable(tmp_path, [sound, bad, sound.with_name("gone.parquet")], LOADS, "live", 7)
    assert sound.exists()
    assert not bad.exists()
    folder = tmp_path / SET_ASIDE
    assert (folder / "bad.parquet").stat().st_size == 900
    about = json.loads((folder / "bad.parquet.json").read_text())
    assert about == msgspec.to_builtins(found)
    assert (about["file"], about["folder"], about["size_bytes"], about["at_us"], about["by"]) == (
        "bad.parquet", INCOMING, 900, 7, "live",
    )  # fmt: skip
    assert about["reason"].startswith("not Parquet, or damaged")
    assert files_set_aside(tmp_path) == [found]


def test_they_are_listed_by_time_and_removed_when_old(tmp_path: Path, sound: Path):
    assert files_set_aside(tmp_path) == []
    for at_us, name in ((9, "a"), (3, "b")):
        set_aside_unreadable(tmp_path, [beside(sound, f"{name}.parquet", b"")], LOADS, "compact", at_us)
    by_hand = tmp_path / SET_ASIDE / "c.parquet"
    by_hand.touch()
    assert [each.file for each in files_set_aside(tmp_path)] == ["c.parquet", "b.parquet", "a.parquet"]
    assert remove_set_aside(tmp_path, 4) == 1
    assert sorted(path.name for path in by_hand.parent.iterdir()) == ["a.parquet", "a.parquet.json", "c.parquet"]
