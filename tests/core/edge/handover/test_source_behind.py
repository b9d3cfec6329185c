"""The cut of members that do not keep up: END comes behind all that is due, whatever that waits for."""

from __future__ import annotations

from tests.core.edge.handover.source_stage import BIG, cut, delivered, ends, served
from tests.core.fleet import resume

from plimsoll.core.protocol import messages as msg


def test_end_waits_behind_the_queue():
    stage = served()
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    stage.tell("a", cut(stage))
    stage.publish("a", count=3)
    assert delivered(stage) == []
    stage.ask("a", msg.Continue(1))
    assert delivered(stage) == [1, 2, 3, "end"]


def test_end_does_not_wait_for_one_that_is_paused_and_has_had_everything():
    stage = served()
    stage.publish("a", count=2)
    stage.ask("a", msg.Pause(1))
    stage.tell("a", cut(stage))
    assert delivered(stage) == [1, 2, "end"]
    assert not any(port.queued for port in stage.edge("a").attachments.by_link.values())


def test_end_is_never_dropped():
    stage = served(slow="drop-oldest", queue_bytes=3000)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=5, size=BIG)
    stage.head.publish("a", count=5, size=BIG)
    stage.tell("a", cut(stage))
    for _ in range(3):
        stage.publish("a", count=5, size=BIG)
    stage.ask("a", msg.Continue(1))
    found = delivered(stage)
    assert found[0] == "gap 1-3"
    assert found[1:] == [4, 5, 6, 7, 8, 9, 10, "end"]


def test_what_a_blocked_one_has_missed_up_to_the_cut_is_fetched_before_end():
    stage = served(slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=5, size=BIG)
    stage.publish("a", count=5)
    assert stage.state("a") == "blocked"
    stage.tell("a", cut(stage))
    assert stage.state("a") == "blocked"
    assert len(stage.edge("a").index) == 2, "it is needed until the rest is there"
    stage.publish("a", count=5)
    assert ends(stage) == []
    stage.ask("a", msg.Continue(1))
    stage.run(0.3)
    assert delivered(stage) == [*range(1, 11), "end"]
    assert stage.state("a") == "ending"
    assert len(stage.edge("a").index) == 1


def test_a_blocked_one_that_has_missed_nothing_gets_end_behind_its_queue():
    stage = served(slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=5, size=BIG)
    assert stage.state("a") == "blocked"
    stage.tell("a", cut(stage))
    assert stage.state("a") == "ending"
    stage.ask("a", msg.Continue(1))
    assert delivered(stage) == [1, 2, 3, 4, 5, "end"]
    assert [record for record in stage.head.heard["a"] if isinstance(record, msg.Fetch)] == []


def test_a_block_that_lasts_ends_with_a_gap_up_to_the_cut_at_most():
    stage = served(slow="block", queue_bytes=3000, block_seconds=1.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=4, size=BIG)
    stage.publish("a", count=4)
    stage.tell("a", cut(stage))
    stage.publish("a", count=4)
    stage.run(3.0)
    stage.ask("a", msg.Continue(1))
    stage.run(0.3)
    assert delivered(stage) == [1, 2, 3, 4, "gap 5-8", "end"]


def test_one_that_catches_up_at_the_cut_gets_what_is_before_it():
    stage = served()
    stage.publish("a", count=6)
    stage.ask("a", msg.Detach([1], False))
    stage.head.fetches = False
    stage.ask("a", resume(3, "x", n=4, token=("h", 100, 2)))
    stage.publish("a", count=2)
    assert stage.state("a") == "catchup"
    stage.tell("a", cut(stage, n=4))
    stage.publish("a", count=2)
    stage.head.fetches = True
    stage.ask("a", msg.Subs(2, 2, [], []))
    assert delivered(stage, 3) == [3, 4, 5, 6, 7, 8, "end"]
    assert stage.state("a") == "ending"
    assert len(stage.edge("a").cursor) == 0


def test_one_that_is_about_to_catch_up_with_nothing_gets_end_at_once():
    stage = served()
    stage.publish("a", count=6)
    stage.ask("a", msg.Detach([1], False))
    stage.head.answers = stage.head.fetches = False
    stage.ask("a", resume(3, "x", n=4, token=("h", 100, 6)))
    down = msg.ResumedDown("x", (1, 4), 7, 6, (100, 0), None, False)
    stage.tell("a", down)
    assert stage.state("a") == "catchup"
    stage.record("a").position = 7
    stage.tell("a", cut(stage, n=4))
    assert delivered(stage, 3) == ["end"]
    assert len(stage.edge("a").cursor) == 0


def test_a_gap_of_the_log_that_reaches_behind_the_cut_says_nothing_of_the_rest():
    """The target still has what the gap would cover by origin: the subscriber must not count it as known."""
    stage = served(slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=4, size=BIG)
    stage.publish("a", count=4)
    stage.tell("a", cut(stage))
    stage.publish("a", count=8)
    stage.head.first = 13
    stage.ask("a", msg.Continue(1))
    stage.run(0.3)
    assert delivered(stage) == [1, 2, 3, 4, "gap 5-8", "end"]
    (gap,) = stage.client.gaps("a", 1)
    assert gap.last == []


def test_a_gap_of_the_log_before_the_cut_is_told_whole():
    stage = served(slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=4, size=BIG)
    stage.publish("a", count=4)
    stage.tell("a", cut(stage))
    stage.head.first = 7
    stage.ask("a", msg.Continue(1))
    stage.run(0.3)
    assert delivered(stage) == [1, 2, 3, 4, "gap 5-6", 7, 8, "end"]
    assert stage.client.gaps("a", 1)[0].last == [("h", 100, 6)]


def test_a_change_while_the_rest_is_fetched_is_not_taken():
    stage = served(slow="block", queue_bytes=3000, block_seconds=60.0)
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=4, size=BIG)
    stage.publish("a", count=4)
    stage.tell("a", cut(stage))
    stage.ask("a", msg.Subs(1, 2, [], [1]), msg.Continue(1))
    stage.run(0.3)
    assert delivered(stage) == [*range(1, 9), "end"]
