"""What a run of the crisis world keeps: depths, when a queue is gone, and figures of a second each."""

from __future__ import annotations

from plimsoll.experiments.delay_sensitive.crisis_run import CrisisRun, sampled


def test_a_queue_is_gone_when_it_is_empty_after_it_was_deepest():
    run = CrisisRun("x")
    run.depths["b1", 8] = [(1.0, 1.0), (2.0, 0.0), (3.0, 5.0), (4.0, 3.0), (5.0, 1.0), (6.0, 1.0)]
    assert run.cleared_at("b1", 8) == 5.0
    run.depths["b1", 8] = [(1.0, 1.0), (2.0, 0.0), (3.0, 5.0), (4.0, 3.0)]
    assert run.cleared_at("b1", 8) is None
    run.depths["b1", 8] = [(1.0, 1.0), (2.0, 0.0)]
    assert run.cleared_at("b1", 8) is None, "a queue that never was is not gone"
    assert run.cleared_at("b1", 9) is None


def test_a_message_of_each_publisher_may_be_under_way():
    run = CrisisRun("x")
    for topic in (1, 8):
        run.depths["b1", topic] = [(1.0, 9.0), (2.0, 2.0), (3.0, 2.0)]
    assert run.cleared_at("b1", 8) == 2.0, "it has two publishers"
    assert run.cleared_at("b1", 1) is None, "it has one"


def test_a_point_for_each_second_is_its_last():
    assert sampled([(0.25, 1.0), (0.75, 2.0), (1.0, 3.0)]) == [(0.0, 2.0), (1.0, 3.0)]
