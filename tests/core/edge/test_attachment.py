"""A subscriber at an edge: its queue is counted as it grows, and what is dropped becomes one gap."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.fleet import resume

from plimsoll.core.config import BrokerLimits
from plimsoll.core.edge.attachment import COUNTED_TO, AttachmentState, EdgeAttachment, LinkAttachments, out_of_bounds
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

NO_PORT: Any = None


def attachment(limit: int = 1000) -> EdgeAttachment:
    made = EdgeAttachment("s", 5, NO_PORT, (1, 2), 1, [])
    made.queue_limit_bytes, made.front_epoch = limit, 7
    return made


def pub(position: int, size: int = 100, head: str = "h", epoch: int = 7) -> bytes:
    body = msgspec.Raw(wire.encode(msg.Body({}, b"x" * size)))
    return wire.encode(msg.Pub(position, head, epoch, position, "p", 1, position, 0, 0, body))


def told(one: EdgeAttachment) -> msg.Gap:
    assert one.dropped is not None
    gap = msg.decode(msg.to_edge, one.dropped.record())
    assert isinstance(gap, msg.Gap)
    return gap


@given(st.lists(st.sampled_from(["add", "count", "pop"]), max_size=60))
def test_bytes_are_counted_in_any_order_of_growing_and_taking(steps: list[str]):
    one = attachment()
    for i, step in enumerate(steps):
        if step == "add":
            one.queue.append(one.deliver_prefix + pub(i + 1, i))
        elif step == "count":
            assert one.count_queue() == sum(map(len, one.queue))
        elif one.queue:
            one.pop()
    assert one.count_queue() == sum(map(len, one.queue))
    one.clear()
    assert one.count_queue() == 0


def test_dropped_records_become_one_gap_with_the_last_offsets():
    one = attachment(500)
    for i in range(1, 11):
        one.queue.append(one.deliver_prefix + pub(i, head="h" if i % 2 else "k"))
    one.count_queue()
    count = one.drop_oldest("h")
    assert one.count_queue() <= 500
    assert count == 10 - len(one.queue)
    gap = told(one)
    assert (gap.low, gap.high, gap.low_epoch, gap.epoch, gap.reason) == (1, count, 7, 7, "queue")
    assert {head: offset for head, _, offset in gap.last} == {
        "h": count if count % 2 else count - 1, "k": count if count % 2 == 0 else count - 1,
    }  # fmt: skip


def test_the_last_record_is_never_dropped():
    one = attachment(10)
    one.queue.append(one.deliver_prefix + pub(1, 5000))
    one.count_queue()
    assert one.drop_oldest("h") == 0
    assert one.dropped is None


def test_a_gap_that_is_dropped_is_part_of_the_gap_that_is_told():
    one = attachment(1)
    inner = msg.Gap("h", 7, 2, 7, 9, [("k", 3, 40)], "log")
    for record in (pub(1), wire.encode(inner), pub(10), pub(11)):
        one.queue.append(one.deliver_prefix + record)
    one.count_queue()
    one.drop_oldest("h")
    gap = told(one)
    assert (gap.low, gap.high) == (1, 10)
    assert gap.last == [("h", 7, 10), ("k", 3, 40)]


def test_a_gap_that_is_dropped_takes_back_nothing_of_what_is_dropped_before_it():
    one = attachment(1)
    inner = msg.Gap("h", 7, 9, 7, 9, [("h", 7, 3), ("k", 3, 40)], "log")
    for record in (pub(8), wire.encode(inner), pub(10)):
        one.queue.append(one.deliver_prefix + record)
    one.count_queue()
    one.drop_oldest("h")
    gap = told(one)
    assert (gap.low, gap.high) == (8, 9)
    assert gap.last == [("h", 7, 8), ("k", 3, 40)]


@pytest.mark.parametrize(
    ("kept", "expected"), [(2, (7, 1, 7, 2)), (1, (7, 1, 8, 0)), (0, (7, 1, 8, 1))], ids=["before", "at", "behind"]
)
def test_a_restart_of_the_head_among_what_is_dropped(kept: int, expected: tuple[int, int, int, int]):
    """The queue holds positions 1 and 2 of epoch 7, then the gap of the restart, then positions of epoch 8."""
    one = attachment()
    restart = msg.Gap("h", 7, 3, 8, 0, [], "restart")
    for record in (pub(1), pub(2)):
        one.queue.append(one.deliver_prefix + record)
    one.queue.append(one.epoch_prefix + wire.encode(restart))
    one.queue.append(one.deliver_prefix + pub(1, epoch=8))
    one.queue.append(one.deliver_prefix + pub(2, epoch=8))
    sizes = [len(record) for record in one.queue]
    one.queue_limit_bytes = sum(sizes[{2: 2, 1: 3, 0: 4}[kept] :])
    one.count_queue()
    one.drop_oldest("h")
    gap = told(one)
    assert (gap.low_epoch, gap.low, gap.epoch, gap.high) == expected
    assert one.front_epoch == expected[2]


def test_records_with_an_epoch_are_what_the_client_reads():
    one = attachment()
    gap = msg.Gap("h", 7, 3, 8, 0, [], "restart")
    assert msg.decode(msg.to_client, one.epoch_prefix + wire.encode(gap)) == msg.Epoch(5, gap)
    assert msg.decode(msg.to_client, one.deliver_prefix + wire.encode(gap)) == msg.Deliver(5, gap)


def test_a_gap_at_the_end_is_taken_back_only_while_it_is_the_end():
    one = attachment()
    one.queue.append(one.deliver_prefix + pub(1))
    assert one.take_back_gap() is None
    one.add_gap(4, b"gap record")
    assert one.take_back_gap() == 4
    assert len(one.queue) == 1
    assert one.count_queue() == len(one.queue[0])
    one.add_gap(4, b"gap record")
    one.queue.append(one.deliver_prefix + pub(9))
    assert one.take_back_gap() is None
    one.clear()
    assert one.take_back_gap() is None


def test_a_policy_leaves_open_what_the_broker_says_and_asks_for_no_more_than_it_gives():
    one, limits = attachment(), BrokerLimits(queue_bytes=1000, block_seconds=30.0, slow_policy="drop-oldest")
    one.apply(msg.Policy(), limits, 0.5)
    assert (one.policy, one.queue_limit_bytes, one.block_seconds) == ("drop-oldest", 1000, 15.0)
    one.apply(msg.Policy("block", 5000, 2.0), limits, 1.0)
    assert (one.policy, one.queue_limit_bytes, one.block_seconds) == ("block", 1000, 2.0)
    one.apply(msg.Policy("block", 400), limits, 1.0)
    assert one.queue_limit_bytes == 400


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (resume(1, "s"), ""),
        (resume(1, "s", slow="drop-oldest", block_seconds=1e9), ""),
        (resume(1, "s", slow="x"), "policy"),
        (resume(1, "s", block_seconds=-1.0), "policy"),
        (resume(1, "s", block_seconds=float("inf")), "policy"),
        (resume(1, "s", n=COUNTED_TO), "range"),
        (resume(1, "s", token=("h", 1, COUNTED_TO)), "range"),
        (resume(1, "s", n=COUNTED_TO - 1, token=("h", 1, COUNTED_TO - 1)), ""),
        (msg.AttachItem(1, "s", (1, 3), 1, [], msg.Policy()), ""),
        (msg.AttachItem(1, "s", (1, COUNTED_TO), 1, [], msg.Policy()), "range"),
        (msg.AttachItem(1, "s", (1, 3), 1, [], msg.Policy("x")), "policy"),
    ],
)
def test_values_that_cannot_be_kept_to(record: msg.Resume | msg.AttachItem, code: str):
    assert out_of_bounds(record) == code


def test_a_port_names_the_attachments_that_the_stream_does_not_cover():
    port = LinkAttachments(NO_PORT)
    for i, state in enumerate(
        (AttachmentState.LIVE, AttachmentState.LIVE, AttachmentState.CATCHUP, AttachmentState.LIVE), 1
    ):
        one = EdgeAttachment(f"s{i}", i, NO_PORT, (1, 2), 1, [])
        one.state = state
        port.by_id[i] = one
    port.by_id[2].queue.append(b"x")
    port.queued[port.by_id[2]] = None
    assert port.lagging() == [2, 3]
    port.queued.clear()
    port.by_id[2].queue.clear()
    del port.by_id[3]
    assert port.lagging() == []


@pytest.mark.parametrize(
    ("changed", "is_taken_over"),
    [({}, True), ({"expiring": True}, False), ({"keeps_place": False}, False), ({"is_verified": False}, False),
     ({"identity": "another"}, False)],
)  # fmt: skip
def test_a_resume_takes_over_the_place_of_the_attachment_before(changed: dict[str, Any], is_taken_over: bool):
    old, new, with_lease = attachment(), attachment(), attachment()
    old.since, old.is_verified, old.state = (7, 3), True, AttachmentState.CLOSED
    for name, value in changed.items():
        setattr(old, name, value)
    new.take_over(old)
    assert (new.since, new.may_outlast_head) == (((7, 3), True) if is_taken_over else ((0, 0), False))
    with_lease.lease_seconds = 60.0
    with_lease.take_over(old)
    assert not with_lease.may_outlast_head, "that place is the head's own"


@pytest.mark.parametrize("state", AttachmentState)
def test_all_that_is_not_silent_outlasts_its_head(state: AttachmentState):
    one = attachment()
    one.state, one.is_verified = state, True
    assert one.may_outlast_head == (state not in (AttachmentState.STANDBY, AttachmentState.CUTTING))
