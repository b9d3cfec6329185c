"""Where the archive of Spark's classes is, and when it is used."""

from __future__ import annotations

from pathlib import Path

from plimsoll.sparkjobs.class_archive import ARCHIVE_VARIABLE, archive_path, make_options, use_options


def test_the_archive_is_in_the_cache_of_the_user_or_where_a_variable_says(tmp_path: Path):
    found = archive_path({"HOME": str(tmp_path)})
    assert found is not None
    assert found.parent == tmp_path / ".cache" / "plimsoll"
    assert found.name.startswith("spark-4.")
    assert archive_path({"HOME": "/h", ARCHIVE_VARIABLE: "/x/a.jsa"}) == Path("/x/a.jsa")
    assert archive_path({"HOME": "/h", ARCHIVE_VARIABLE: ""}) is None
    assert archive_path({}) is None


def test_it_is_used_only_if_it_is_there(tmp_path: Path):
    path = tmp_path / "a.jsa"
    assert use_options({ARCHIVE_VARIABLE: str(path)}) == ""
    assert use_options({}) == ""
    path.touch()
    assert use_options({ARCHIVE_VARIABLE: str(path)}).startswith(f"-XX:SharedArchiveFile={path} ")
    assert make_options(path).startswith(f"-XX:ArchiveClassesAtExit={path} ")
