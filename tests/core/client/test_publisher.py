"""A publisher against a scripted head: numbers, credit, answers, and the loss of the head's memory."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.client import (
    Answered,
    BufferFullError,
    ClientPublisher,
    ClosedError,
    Failed,
    PublicationError,
    PublisherReady,
    Renumbered,
    StalledError,
)
from plimsoll.core.client.publisher import FIRST_REFUSALS_AT_MOST, encoded_body
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import FLAG_CONFIRM_EDGES

FIRST = 1_007


def publish(publisher: ClientPublisher, count: int, payload: bytes = b"") -> list[int]:
    return [publisher.publish({"n": n}, payload, sent_us=n) for n in range(count)]


def opened(stage: Any, **options: Any) -> ClientPublisher:
    publisher: ClientPublisher = stage.client.publisher("p", **options)
    stage.run()
    return publisher


def restart_head(stage: Any, kit: Any, incarnation: int = 6, last_seq: int | None = None) -> None:
    """Another life of the head, which may remember the publisher."""
    stage.wire.remove(stage.head)
    stage.head = stage.wire.add(kit.script("h", "head", incarnation, ("e", kit.edge)), kit.head)
    if last_seq is not None:
        stage.head.last_seq["p", FIRST] = last_seq
    stage.run(20.0)


def test_numbers_are_consecutive_from_one(stage: Any):
    publisher = opened(stage)
    assert publish(publisher, 3) == [1, 2, 3]
    stage.run()
    said = stage.head.all(msg.Publish)
    assert [each.seq for each in said] == [1, 2, 3]
    assert msg.decode(msg.body, said[2].body).attributes == {"n": 2}
    assert said[2].sent_us == 2


def test_acceptance_is_cumulative_and_told_as_a_range(stage: Any):
    publisher = opened(stage)
    publish(publisher, 5)
    stage.run()
    stage.head.tell(msg.Accepted(publisher.handle, 3))
    stage.run()
    assert stage.app.of(Answered) == [Answered(1, 3, "accepted", FIRST, 1)]
    stage.head.tell(msg.Accepted(publisher.handle, 5))
    stage.run()
    assert stage.app.of(Answered)[1:] == [Answered(4, 5, "accepted", FIRST, 4)]
    assert len(publisher.buffer) == 0
    assert publisher.buffer.size_bytes == 0


def test_a_refused_one_leaves_a_hole_in_the_range(stage: Any):
    publisher = opened(stage)
    publish(publisher, 4)
    stage.run()
    stage.head.tell(msg.Refused(publisher.handle, 2, "quota", "too much"), msg.Accepted(publisher.handle, 4))
    stage.run()
    assert [(each.first, each.last, each.answer) for each in stage.app.of(Answered)] == [
        (2, 2, "refused"),
        (1, 1, "accepted"),
        (3, 4, "accepted"),
    ]
    assert stage.app.of(Answered)[0].text == "too much"


def test_edges_that_do_not_confirm_are_named(stage: Any):
    publisher = opened(stage, confirm="edges")
    publish(publisher, 2)
    stage.run()
    assert {each.flags for each in stage.head.all(msg.Publish)} == {FLAG_CONFIRM_EDGES}
    stage.head.tell(msg.Unconfirmed(publisher.handle, 1, ["e9"]), msg.Accepted(publisher.handle, 2))
    stage.run()
    assert [(each.answer, each.edges) for each in stage.app.of(Answered)] == [
        ("unconfirmed", ("e9",)),
        ("accepted", ()),
    ]


def test_nothing_goes_beyond_the_credit(stage: Any):
    publisher = opened(stage)
    publish(publisher, 130)
    stage.run()
    assert [each.seq for each in stage.head.all(msg.Publish)] == list(range(1, 101))
    stage.head.tell(msg.Credit(publisher.handle, 110))
    stage.run()
    assert [each.seq for each in stage.head.all(msg.Publish)] == list(range(1, 111))


def test_the_buffer_of_unanswered_ones_is_bounded_in_bytes(kit: Any):
    client = kit.client(publisher_buffer_bytes=1000)
    publisher = client.publisher("p")
    publish(publisher, 4, payload=b"x" * 200)
    with pytest.raises(BufferFullError, match=r"4 publications unanswered, .* takes 1000 bytes"):
        publish(publisher, 1, payload=b"x" * 200)
    assert publisher.buffer.number == 4


def test_a_single_publication_may_be_larger_than_the_buffer(kit: Any):
    publisher = kit.client(publisher_buffer_bytes=100).publisher("p")
    assert publish(publisher, 1, payload=b"x" * 500) == [1]


def test_after_a_lost_link_only_what_the_head_lacks_is_sent_again(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 6)
    stage.run()
    restart_head(stage, kit, incarnation=5, last_seq=4)
    assert [each.seq for each in stage.head.all(msg.Publish)] == [5, 6]
    assert stage.app.of(Answered) == []
    stage.head.tell(msg.Accepted(publisher.handle, 6))
    stage.run()
    assert stage.app.of(Answered) == [Answered(1, 6, "accepted", FIRST, 1)]
    assert publisher.statistics()["resent"] == 2


def test_a_lost_connection_repeats_nothing(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 3)
    stage.run()
    stage.wire.drop(kit.head)
    publish(publisher, 3)
    stage.run(15.0)
    assert [each.seq for each in stage.head.all(msg.Publish)] == [1, 2, 3, 4, 5, 6]
    assert len(stage.head.all(msg.Open)) == 1


def test_a_head_that_lost_its_memory_leaves_unknown_outcomes_and_a_new_incarnation(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 103)
    stage.run()
    stage.head.tell(msg.Accepted(publisher.handle, 2))
    stage.run()
    restart_head(stage, kit)
    answers = [(each.first, each.last, each.answer, each.first_seq) for each in stage.app.of(Answered)]
    assert answers == [(1, 2, "accepted", 1), (3, 100, "unknown", 3)]
    assert stage.app.of(Renumbered) == [Renumbered(101, FIRST + 1)]
    assert [(each.seq, msg.decode(msg.body, each.body).attributes["n"]) for each in stage.head.all(msg.Publish)] == [
        (1, 100),
        (2, 101),
        (3, 102),
    ]
    assert [each.incarnation for each in stage.head.all(msg.Open)] == [FIRST, FIRST + 1]
    assert (publisher.incarnation, 101 - publisher.buffer.base) == (FIRST + 1, 1)


def test_a_head_that_is_new_but_was_told_nothing_changes_nothing(stage: Any, kit: Any):
    publisher = opened(stage)
    restart_head(stage, kit)
    publish(publisher, 1)
    stage.run()
    assert stage.app.of(Renumbered) == []
    assert stage.app.of(PublisherReady) == [PublisherReady("h", 5), PublisherReady("h", 6)]
    assert [each.incarnation for each in stage.head.all(msg.Open)] == [FIRST]


def test_a_head_that_has_forgotten_what_it_accepted_is_not_told_again(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 3)
    stage.run()
    stage.head.tell(msg.Accepted(publisher.handle, 2))
    stage.run()
    restart_head(stage, kit, incarnation=5, last_seq=0)
    assert [each.answer for each in stage.app.of(Answered)] == ["accepted", "unknown"]
    assert stage.head.all(msg.Publish) == []


def test_who_was_away_for_long_does_not_repeat_what_may_have_been_forgotten(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 3)
    stage.run()
    stage.wire.remove(stage.head)
    stage.run(150.0)
    stage.head = stage.wire.add(kit.script("h", "head", 5), kit.head)
    stage.run(5.0)
    assert [each.answer for each in stage.app.of(Answered)] == ["unknown"]
    assert publisher.incarnation == FIRST + 1


def test_answers_to_an_older_handle_are_of_no_concern(stage: Any, kit: Any):
    publisher = opened(stage)
    publish(publisher, 2)
    stage.run()
    old = publisher.handle
    restart_head(stage, kit, incarnation=5, last_seq=0)
    stage.head.tell(msg.Accepted(old, 2))
    stage.run()
    assert stage.app.of(Answered) == []


def test_a_head_that_does_not_know_the_handle_is_asked_again(stage: Any):
    publisher = opened(stage)
    publish(publisher, 2)
    stage.run()
    stage.head.tell(msg.Refused(publisher.handle, 1, "not-open", ""), msg.Refused(publisher.handle, 2, "not-open", ""))
    stage.run()
    assert len(stage.head.all(msg.Open)) == 2
    assert [each.seq for each in stage.head.all(msg.Publish)] == [1, 2, 1, 2]
    assert stage.app.of(Answered) == []


def test_numbers_that_came_out_of_order_are_sent_again_from_the_expected_one(stage: Any):
    publisher = opened(stage)
    publish(publisher, 4)
    stage.run()
    stage.head.last_seq["p", FIRST] = 1
    stage.head.tell(*(msg.Refused(publisher.handle, seq, "out-of-order", "2 is expected") for seq in (3, 4)))
    stage.run()
    assert len(stage.head.all(msg.Open)) == 2
    assert [each.seq for each in stage.head.all(msg.Publish)] == [1, 2, 3, 4, 2, 3, 4]
    assert stage.app.of(Answered) == []


@pytest.mark.parametrize(("answered", "last_seq"), [((1,), 0), ((2,), 0), ((2, 3), 1), ((1, 2, 3), 2), ((), 9)])
def test_numbering_starts_over_where_the_head_expects_a_number_that_is_no_longer_kept(
    stage: Any, kit: Any, answered: tuple[int, ...], last_seq: int
):
    """Numbers that were answered are not kept: without them a hole would be sent, or taken for a repeat."""
    publisher = opened(stage)
    publish(publisher, 3)
    stage.run()
    stage.head.tell(*(msg.Refused(publisher.handle, seq, "malformed", "") for seq in answered))
    stage.run()
    restart_head(stage, kit, incarnation=5, last_seq=last_seq)
    assert publisher.incarnation == FIRST + 1
    publish(publisher, 2)
    stage.run()
    assert [each.seq for each in stage.head.all(msg.Publish)] == [1, 2]


def test_a_name_that_a_newer_process_uses_is_the_end(stage: Any):
    publisher = opened(stage)
    stage.head.tell(msg.Refused(publisher.handle, 0, "incarnation", "in use", 1 << 50))
    stage.run()
    assert stage.app.of(Failed) == [Failed("incarnation", "in use")], "it has been open: the other one is newer"


def test_a_name_that_stays_in_use_is_given_up_after_some_attempts(stage: Any):
    """The process that has it may have been killed: its head needs a while to notice."""
    stage.head.answers_open = False
    publisher = opened(stage)
    publish(publisher, 2)
    for _ in range(FIRST_REFUSALS_AT_MOST + 1):
        assert stage.app.of(Failed) == []
        stage.head.tell(msg.Refused(publisher.handle, 0, "incarnation", "in use"))
        stage.run(6.0)
    assert len(stage.head.all(msg.Open)) == FIRST_REFUSALS_AT_MOST + 1
    assert stage.app.of(Failed) == [Failed("incarnation", "in use")]
    assert [(each.first, each.last, each.answer) for each in stage.app.of(Answered)] == [(1, 2, "refused")]
    with pytest.raises(ClosedError, match="in use"):
        publish(publisher, 1)
    assert stage.client.publishers == {}


def test_closing_answers_everything(stage: Any):
    publisher = opened(stage)
    publish(publisher, 102)
    stage.run()
    publisher.close()
    publisher.close()
    stage.run()
    assert [(each.first, each.last, each.answer) for each in stage.app.of(Answered)] == [
        (1, 100, "unknown"),
        (101, 102, "refused"),
    ]
    assert stage.head.last_of(msg.Close).handle == publisher.handle
    with pytest.raises(ClosedError, match="closed"):
        publish(publisher, 1)
    assert publisher.buffer.size_bytes == 0


def test_publishers_do_not_share_a_name(kit: Any):
    client = kit.client()
    client.publisher("p")
    with pytest.raises(ValueError, match="in use in this process"):
        client.publisher("p")
    with pytest.raises(ValueError, match="1 to 253 characters"):
        client.publisher("")


# -- valid publications


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"a": 2**63}, "64 bits"),
        ({"a": -(2**63) - 1}, "64 bits"),
        ({"a": None}, "attribute 'a' is NoneType"),
        ({"a": [1]}, "attribute 'a' is list"),
        ({"": 1}, "not empty"),
        ({1: 1}, "not empty"),
        ({"a": "\ud800"}, "Unicode"),
    ],
)
def test_what_no_broker_would_take_is_refused_here(attributes: Any, expected: str):
    with pytest.raises(PublicationError, match=expected) as caught:
        encoded_body(attributes, b"", 1000)
    assert caught.value.code == "malformed"


def test_a_payload_is_bytes():
    with pytest.raises(PublicationError, match="payload is bytes, not str"):
        encoded_body({}, "text", 1000)  # type: ignore[arg-type]  # what a user may write


def test_what_is_too_large_never_reaches_the_wire(stage: Any):
    publisher = opened(stage)
    with pytest.raises(PublicationError, match="at most 256000") as caught:
        publisher.publish({}, b"x" * 256_000, sent_us=0)
    assert caught.value.code == "oversized"
    assert publish(publisher, 1) == [1]


def test_subclasses_go_as_what_they_are():
    body = msg.decode(msg.body, encoded_body({"a": Colour.RED}, bytearray(b"x"), 1000))
    assert body == msg.Body({"a": 1}, b"x")
    assert type(body.attributes["a"]) is int


scalars = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), scalars, max_size=8), st.binary(max_size=50))
def test_what_is_encoded_is_decoded_to_the_same(attributes: dict[str, Any], payload: bytes):
    body = msg.decode(msg.body, encoded_body(attributes, payload, 100_000))
    assert body == msg.Body(attributes, payload)
    assert [type(value) for value in body.attributes.values()] == [type(value) for value in attributes.values()]


def test_a_publisher_without_answers_takes_no_more_and_goes_on_with_the_next_answer(stage: Any):
    publisher = opened(stage)
    publish(publisher, 1)
    stage.run()
    stage.head.tell(msg.Accepted(publisher.handle, 1))
    stage.run()
    limit = stage.client.limits.stall_seconds
    stage.run(2 * limit)
    publish(publisher, 2)  # nothing waited before: the time begins with the first of these
    stage.run(limit - 1.0)
    publish(publisher, 1)
    stage.run(2.0)
    with pytest.raises(StalledError, match="3 publications unanswered"):
        publish(publisher, 1)
    assert len(publisher.buffer) == 3
    stage.head.tell(msg.Accepted(publisher.handle, 2))
    stage.run()
    assert publish(publisher, 1) == [5]


def test_an_incarnation_that_an_earlier_life_has_left_behind_is_passed_before_the_first_opening(stage: Any):
    """The clock of that life was ahead, as a machine's may be; both are one after the other, so the later one wins."""
    stage.head.answers_open = False
    publisher = stage.client.publisher("p")
    publisher.publish({"k": 1}, sent_us=1)
    stage.run()
    first = stage.head.last_of(msg.Open)
    ahead = first.incarnation + 1_000
    stage.head.tell(msg.Refused(first.handle, 0, "incarnation", "the clock", ahead))
    stage.run()
    second = stage.head.last_of(msg.Open)
    assert (second.incarnation, publisher.failed) == (ahead + 1, None)
    stage.head.tell(msg.Opened(second.handle, "h", 1, 0, 10))
    stage.run()
    assert publisher.is_open
    stage.head.tell(msg.Refused(second.handle, 0, "incarnation", "taken", ahead + 50))
    stage.run()
    assert publisher.failed is not None, "one that was open has lost its name to another process"
