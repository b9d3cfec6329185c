"""A method of one object is watched; those of others are not."""

from __future__ import annotations

from plimsoll.simulator.engine.calls import call_after, call_before


def test_each_call_is_told_before_and_with_its_result():
    heard: list[tuple[int, str]] = []

    class Part:
        def count(self, name: str) -> int:
            return len(name)

    part, beside = Part(), Part()
    call_after(part, "count", lambda result, name: heard.append((result, name)))
    call_before(part, "count", lambda name: heard.append((0, name)))
    assert (part.count("abc"), beside.count("ab")) == (3, 2)
    assert heard == [(0, "abc"), (3, "abc")]
