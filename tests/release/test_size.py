"""`make size`: lines by room, wherever a room lies."""

from __future__ import annotations

from scripts.size import room_of, sizes, table, totals


def test_a_room_is_a_package_wherever_it_lies():
    assert room_of("src/plimsoll/core/head/log.py") == room_of("core/src/plimsoll/core/head/log.py") == "core"
    assert room_of("tests/core/test_x.py") == "tests/core"
    assert room_of("tests/conftest.py") == "tests"
    assert room_of("bench/matching/__main__.py") == "bench"


def test_each_room_stands_beside_what_it_was():
    now = sizes("src/plimsoll/core/a.py:10\nsrc/plimsoll/core/b.py:5\ntests/core/test_a.py:7\n")
    before = sizes("v1:core/src/plimsoll/core/a.py:12\nv1:demo/src/plimsoll/demo/d.py:3\n")
    assert now == {"core": (15, 2), "tests/core": (7, 1)}
    assert totals(now) == {"all of product": (15, 2), "all of tests": (7, 1)}
    rows = [line.split() for line in table(now, before, "v1").splitlines()]
    assert ["core", "15", "2", "12", "+3"] in rows
    assert ["demo", "0", "0", "3", "-3"] in rows
    assert rows[-1] == ["all", "of", "tests", "7", "1", "0", "+7"]
