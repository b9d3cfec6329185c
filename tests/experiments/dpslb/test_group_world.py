"""A group in virtual time: what the model counts, and that it notices what it is to notice."""

from __future__ import annotations

import pytest

from plimsoll.experiments.dpslb.group_world import GROUP, GroupWorld, SliceStream, spec_of


def test_ranges_are_checked_against_the_last():
    stream = SliceStream(10.0, 0.0)
    for begin, end in ((0, 4), (3, 6), (8, 9)):
        stream.worked(begin, end)
    assert (stream.expected, stream.lost, stream.repeated) == (9, 2, 1)


def test_a_user_moves_a_slice_and_its_items_go_on_at_the_taker():
    world = GroupWorld([10.0, 10.0], "None", 1)
    world.join("a", 0.01)
    world.join("b", 0.01)
    world.run(10.0)
    assert world.held() == {"a": 1, "b": 1}
    world.ask("both", giver="a", taker="b")
    world.run(10.0)
    assert world.held() == {"a": 0, "b": 2}
    [session] = world.sessions()
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    assert world.items() == {"worked_on": 400, "lost": 0, "repeated": 0, "waiting": 0}
    assert world.group.name == GROUP


def test_a_consumer_that_is_too_slow_has_a_backlog_and_reports_a_whole_processor():
    world = GroupWorld([10.0], "None", 1)
    world.join("a", 0.2)
    world.run(10.0)
    assert world.items()["waiting"] == pytest.approx(50, abs=2)
    assert world.group.members["a"].load.cpu == pytest.approx(1.0)


def test_a_wrong_specification_is_an_error():
    with pytest.raises(ValueError, match="not a specification"):
        spec_of({"scope": "Nowhere"})
