"""A later life of a publisher goes on from a position: the head gets each publication once, or none is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.client import Answered, ClientPublisher, PublisherPosition
from plimsoll.core.client.publisher import encoded_body
from plimsoll.core.protocol import messages as msg

SESSION = ("h", 5)
BODIES = [encoded_body({"n": number}, b"", 1000) for number in range(4)]


def later_life(stage: Any, logged: int, session: tuple[str, int] = SESSION) -> ClientPublisher:
    """Numbers up to 103 were answered, of sequence numbers up to 3; of the next four the head knows `logged`."""
    stage.head.last_seq["p", 7] = logged
    position = PublisherPosition(7, 103, 3, *session)
    publisher: ClientPublisher = stage.client.publisher("p", position=position, unanswered=BODIES)
    stage.run()
    return publisher


def answers(stage: Any) -> list[tuple[int, int, str]]:
    return [(each.first, each.last, each.answer) for each in stage.app.of(Answered)]


@pytest.mark.parametrize("logged", range(3, 8))
def test_it_sends_what_the_head_lacks_and_numbers_go_on(stage: Any, logged: int):
    publisher = later_life(stage, logged)
    assert [each.seq for each in stage.head.all(msg.Publish)] == list(range(logged + 1, 8))
    assert publisher.position == PublisherPosition(7, 103, 3, *SESSION)
    stage.head.tell(msg.Accepted(publisher.handle, 7))
    stage.run()
    assert answers(stage) == [(104, 107, "accepted")]
    assert publisher.position == PublisherPosition(7, 107, 7, *SESSION)
    assert publisher.publish({"n": 4}, sent_us=1) == 108
    stage.run()
    assert stage.head.last_of(msg.Publish).seq == 8


@pytest.mark.parametrize(
    ("logged", "session"), [(5, ("h", 4)), (5, ("g", 5)), (0, SESSION), (2, SESSION), (8, SESSION)]
)
def test_if_the_head_does_not_know_it_the_outcome_is_unknown_and_nothing_is_sent_again(
    stage: Any, logged: int, session: tuple[str, int]
):
    publisher = later_life(stage, logged, session)
    assert answers(stage) == [(104, 107, "unknown")]
    assert stage.head.all(msg.Publish) == []
    assert publisher.publish({"n": 4}, sent_us=1) == 108
    stage.run()
    assert [each.seq for each in stage.head.all(msg.Publish)] == [1]
    assert publisher.position == PublisherPosition(8, 107, 0, *SESSION)


@pytest.mark.parametrize(("away", "found"), [(1.0, []), (1e6, [(1, 4, "unknown")])])
def test_before_the_first_answer_it_depends_on_how_long_the_process_was_away(
    stage: Any, away: float, found: list[tuple[int, int, str]]
):
    position = PublisherPosition(7, 0, 0, *SESSION)
    stage.client.publisher("p", position=position, unanswered=BODIES, away_seconds=away)
    stage.run()
    assert answers(stage) == found
    assert len(stage.head.all(msg.Publish)) == (0 if found else 4)


def test_a_position_comes_with_the_first_open(stage: Any):
    stage.head.answers_open = False
    publisher: ClientPublisher = stage.client.publisher("p")
    publisher.publish({"n": 1}, sent_us=1)
    stage.run()
    assert publisher.position is None
