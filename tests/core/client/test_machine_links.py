"""How the client machine finds heads and edges, and what it does when they go, against scripted brokers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from plimsoll.core.client import Acknowledged, Answered, Attached, Delivery, Detached, Failed
from plimsoll.core.client.edge_records import CONFLICTS_AT_MOST, FIRST_CONFLICTS_AT_MOST
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire as frames


def other_edge(stage: Any, kit: Any) -> Any:
    other = stage.wire.add(kit.script("o", "edge", 1), kit.other)
    stage.head.edge = ("o", kit.other)
    return other


# -- looking for an edge


def test_who_finds_no_seat_asks_again_in_time(stage: Any, kit: Any):
    stage.head.edge = None
    stage.client.subscriber("s")
    stage.run()
    for _ in range(3):
        stage.head.tell(msg.Unplaced("s", "full", 2.0))
        stage.run(1.9)
        asked = len(stage.head.all(msg.Join))
        stage.run(2.2)
        assert len(stage.head.all(msg.Join)) == asked + 1
    assert stage.client.refusal == "full"


def test_the_edge_that_failed_is_excluded(stage: Any, kit: Any):
    stage.attach()
    other = other_edge(stage, kit)
    stage.wire.remove(stage.edge)
    stage.run(20.0)
    assert stage.head.last_of(msg.Join).exclude == ["e"]
    assert other.last_of(msg.Resume).token == ("h", 5, 10)
    assert [(each.edge, bool(each.reason)) for each in stage.app.of(Detached)] == [("e", True)]
    stage.answer(10, other)
    assert stage.app.of(Attached)[-1] == Attached("o", "h", True)


def test_only_edges_that_failed_since_the_last_attachment_are_excluded(stage: Any, kit: Any):
    stage.attach()
    other = other_edge(stage, kit)
    stage.wire.remove(stage.edge)
    stage.run(20.0)
    stage.answer(10, other)
    stage.wire.add(stage.edge, kit.edge)
    stage.head.edge = ("e", kit.edge)
    stage.wire.remove(other)
    stage.run(20.0)
    assert stage.head.last_of(msg.Join).exclude == ["o"]


def test_who_attaches_while_the_connection_is_away_is_attached_when_it_is_back(stage: Any, kit: Any):
    stage.attach("first")
    stage.wire.cut.add(kit.edge)
    stage.client.edge_ports.by_edge["e"].link.open = False
    stage.client.subscriber("second")
    stage.run(0.5)
    stage.wire.cut.clear()
    stage.run(2.0)
    assert stage.edge.last_of(msg.Resume).subscriber == "second"
    assert stage.app.of(Detached) == []


def test_an_edge_that_cannot_be_reached_is_given_up(stage: Any, kit: Any):
    stage.wire.cut.add(kit.edge)
    stage.client.subscriber("s")
    stage.run(4.0)
    assert stage.client.edge_ports.by_edge["e"].attachments
    other = other_edge(stage, kit)
    stage.run(3.0)
    assert stage.head.last_of(msg.Join).exclude == ["e"]
    assert len(other.all(msg.Resume)) == 1
    assert set(stage.client.edge_ports.by_edge) == {"o"}


def test_an_edge_that_does_not_answer_is_given_up_later(stage: Any, kit: Any):
    stage.client.subscriber("s")
    stage.run()
    other = other_edge(stage, kit)
    stage.run(29.0)
    assert other.all(msg.Resume) == []
    stage.run(3.0)
    assert stage.edge.last_of(msg.Detach).withdraw is False
    assert len(other.all(msg.Resume)) == 1


def test_attempts_are_spread_and_bounded(stage: Any, kit: Any):
    stage.attach("s")
    waits = []
    for _ in range(14):
        at = stage.wire.now
        count = len(stage.edge.all(msg.Resume))
        stage.edge.tell(msg.AttachmentClosed(stage.edge.last_of(msg.Resume).attachment, "head", "no"))
        stage.wire.run(10.0, until=lambda count=count: len(stage.edge.all(msg.Resume)) > count)
        waits.append(stage.wire.now - at)
    assert waits[0] <= 0.12
    assert all(2.4 <= wait <= 5.1 for wait in waits[-5:])
    assert len({round(wait, 3) for wait in waits[-5:]}) > 1
    stage.answer(10)
    assert stage.client.subscribers["s"].attempts == 0


def test_a_crowd_does_not_come_back_at_once(stage: Any, kit: Any):
    for i in range(50):
        stage.client.subscriber(f"s{i}")
    stage.run()
    for resume in stage.edge.all(msg.Resume):
        stage.edge.tell(msg.Resumed(resume.attachment, "h", 5, 1, None, False))
    stage.run()
    other_edge(stage, kit)
    stage.wire.remove(stage.edge)
    heard: list[tuple[float, int]] = []
    while len(stage.head.all(msg.Join)) < 100:
        stage.wire.run(0.005)
        heard.append((stage.wire.now, len(stage.head.all(msg.Join))))
        assert stage.wire.now < 200
    first = next(at for at, joins in heard if joins > 50)
    assert stage.wire.now - first > 0.03
    assert max(b - a for (_, a), (_, b) in pairwise(heard)) < 20


def test_a_new_address_of_an_edge_is_used(stage: Any, kit: Any):
    stage.attach("first")
    stage.wire.add(kit.script("e", "edge", 2), kit.other)
    stage.head.edge = ("e", kit.other)
    stage.client.subscriber("second")
    stage.run(2.0)
    assert stage.client.edge_ports.by_edge["e"].endpoint == kit.other
    assert {s.current.port.endpoint for s in stage.client.subscribers.values()} == {kit.other}


# -- the head of the stream


def test_who_has_a_token_asks_for_an_edge_of_its_head(stage: Any, kit: Any):
    stage.client.subscriber("new")
    stage.client.subscriber("old", token=("g", 3, 7))
    stage.run()
    assert {join.subscriber: join.head for join in stage.head.all(msg.Join)} == {"new": "", "old": "g"}


@pytest.mark.parametrize("answered", [True, False])
def test_any_edge_will_do_when_the_head_of_the_stream_has_none_for_long(stage: Any, kit: Any, answered: bool):
    stage.head.edge = None
    stage.client.subscriber("s", token=("g", 3, 7))
    asked = stage.wire.now
    stage.run()
    heard = 0
    while stage.head.last_of(msg.Join).head:
        if answered and len(stage.head.all(msg.Join)) > heard:
            heard = len(stage.head.all(msg.Join))
            stage.head.tell(msg.Unplaced("s", "no way to g", 1.0))
        stage.run(0.5)
        assert stage.wire.now - asked < 40
    assert 30.0 <= stage.wire.now - asked <= 33.0
    assert {join.head for join in stage.head.all(msg.Join)[:-1]} == {"g"}
    stage.head.tell(msg.Placed("s", "e", kit.edge, ""))
    stage.run()
    assert stage.edge.last_of(msg.Resume).token == ("g", 3, 7)


def test_a_stream_that_was_found_is_insisted_upon_again(stage: Any, kit: Any):
    stage.head.edge = None
    stage.client.subscriber("s", token=("g", 3, 7))
    stage.run(31.0)
    assert stage.head.last_of(msg.Join).head == ""
    stage.head.tell(msg.Placed("s", "e", kit.edge, ""))
    stage.run()
    stage.answer(10)
    stage.edge.tell(msg.AttachmentClosed(stage.edge.last_of(msg.Resume).attachment, "head", "again"))
    stage.run(1.0)
    assert stage.head.last_of(msg.Join).head == "h"


def test_while_the_head_of_the_stream_has_edges_no_other_is_asked_for(stage: Any, kit: Any):
    stage.client.subscriber("s", token=("g", 3, 7))
    for _ in range(12):
        stage.run(6.0)
        stage.edge.tell(msg.AttachmentClosed(stage.edge.last_of(msg.Resume).attachment, "head", "no"))
    assert {join.head for join in stage.head.all(msg.Join)} == {"g"}


def test_the_patience_begins_with_the_first_question(kit: Any):
    wire = kit.wire()
    client = wire.add(kit.client())
    client.subscriber("s", token=("g", 3, 7))
    wire.run(60.0)
    head = wire.add(kit.script("h", "head", 5), kit.head)
    wire.run(5.0, until=lambda: head.all(msg.Join))
    assert head.last_of(msg.Join).head == "g"


# -- an edge that has gone


def without_connection(stage: Any, seconds: float) -> None:
    """The shell sees no connection to `e` for this long."""
    peer = stage.client.edge_ports.by_edge["e"].peer
    end = stage.wire.now + seconds
    while stage.wire.now < end - 1e-9:
        stage.client.unconnected({peer}, stage.wire.now)
        stage.run(0.25)


def test_an_edge_without_a_connection_is_left_soon(stage: Any, kit: Any):
    stage.attach()
    other = other_edge(stage, kit)
    stage.wire.remove(stage.edge)
    killed = stage.wire.now
    without_connection(stage, 1.75)
    assert stage.app.of(Detached) == []
    without_connection(stage, 0.5)
    assert other.last_of(msg.Resume).token == ("h", 5, 10)
    assert stage.wire.now - killed < 3.0
    assert stage.head.last_of(msg.Join).exclude == ["e"]


def test_it_is_left_without_being_told_again(stage: Any, kit: Any):
    stage.attach()
    stage.run(0.4)
    stage.wire.cut.add(kit.edge)
    stage.client.unconnected({stage.client.edge_ports.by_edge["e"].peer}, stage.wire.now)
    assert stage.client.wake_at() == pytest.approx(stage.wire.now + 2.0)
    stage.run(2.1)
    assert len(stage.app.of(Detached)) == 1


def test_an_edge_with_a_connection_again_is_kept(stage: Any, kit: Any):
    stage.attach()
    for _ in range(4):
        without_connection(stage, 1.5)
        stage.client.unconnected(set(), stage.wire.now)
        stage.run(0.25)
    assert stage.app.of(Detached) == []


def test_an_edge_that_was_never_reached_has_its_time(stage: Any, kit: Any):
    stage.wire.cut.add(kit.edge)
    stage.client.subscriber("s")
    stage.run()
    without_connection(stage, 3.0)
    stage.wire.cut.clear()
    stage.run(1.5)
    assert stage.edge.last_of(msg.Resume).subscriber == "s"
    assert stage.app.of(Detached) == []


def test_an_edge_that_is_only_silent_is_left_in_time(stage: Any, kit: Any):
    stage.attach()
    other = other_edge(stage, kit)
    stage.wire.cut.add(kit.edge)
    stage.wire.remove(stage.edge)
    silent = stage.wire.now
    stage.wire.run(20.0, until=lambda: other.all(msg.Resume))
    assert 4.0 < stage.wire.now - silent < 7.0


# -- being sent away


def test_a_redirect_that_names_an_edge_is_followed_at_once(stage: Any, kit: Any):
    subscriber = stage.attach()
    other = stage.wire.add(kit.script("o", "edge", 1), kit.other)
    stage.edge.tell(msg.Moved([subscriber.current.id], "o", kit.other, "", "lbs-1"))
    stage.run()
    resume = other.last_of(msg.Resume)
    assert (resume.session, resume.token) == ("lbs-1", ("h", 5, 10))
    assert len(stage.head.all(msg.Join)) == 1
    stage.answer(10, other)
    assert subscriber.statistics()["redirects"] == 1
    assert subscriber.session is None


def test_a_redirect_to_an_edge_that_is_not_there_ends_at_another(stage: Any, kit: Any):
    subscriber = stage.attach()
    stage.edge.tell(msg.Moved([subscriber.current.id], "gone", "tcp://gone", "", "lbs-1"))
    stage.run(8.0)
    assert stage.head.last_of(msg.Join).exclude == ["gone"]
    assert stage.edge.last_of(msg.Resume).session == "lbs-1"


def test_who_is_too_slow_by_its_own_policy_is_told_and_stays_away(stage: Any, kit: Any):
    subscriber = stage.attach()
    stage.edge.tell(msg.AttachmentClosed(subscriber.current.id, "slow", "did not keep up"))
    stage.run(30.0)
    assert stage.app.of(Failed) == [Failed("slow", "did not keep up")]
    assert len(stage.edge.all(msg.Resume)) == 1
    assert stage.client.subscribers == {}


def test_a_name_that_another_process_holds_is_given_up(stage: Any, kit: Any):
    stage.client.subscriber("s")
    for _ in range(FIRST_CONFLICTS_AT_MOST):
        stage.run(8.0)
        stage.edge.tell(msg.AttachmentClosed(stage.edge.last_of(msg.Resume).attachment, "epoch", "no"))
    stage.run()
    (failed,) = stage.app.of(Failed)
    assert failed.code == "conflict"
    assert "names of its own" in failed.text
    assert "clock" in failed.text, "what else it may be"
    numbers = [resume.epoch[1] for resume in stage.edge.all(msg.Resume)]
    assert numbers == list(range(2, 2 * FIRST_CONFLICTS_AT_MOST + 1, 2))


def test_an_incarnation_that_an_earlier_life_has_left_behind_is_passed_before_the_first_attachment(stage: Any):
    """The clock of that life was ahead, as a machine's may be; both are one after the other, so the later one wins."""
    subscriber = stage.client.subscriber("s")
    stage.run()
    first = stage.edge.last_of(msg.Resume)
    ahead = first.epoch[0] + 1_000
    stage.edge.tell(msg.AttachmentClosed(first.attachment, "epoch", "the clock", ahead))
    stage.run()
    second = stage.edge.last_of(msg.Resume)
    assert second.epoch == (ahead + 1, first.epoch[1] + 2)
    stage.answer(10)
    assert subscriber.token == ("h", 5, 10)


def test_one_that_has_been_attached_yields_to_the_process_that_has_come_after_it(stage: Any):
    """It may have stood still meanwhile; were it to go above the newer one, both would take the name in turn."""
    subscriber = stage.attach()
    incarnation = subscriber.epoch[0]
    for _ in range(CONFLICTS_AT_MOST):
        resume = stage.edge.last_of(msg.Resume)
        assert resume.epoch[0] == incarnation
        stage.edge.tell(msg.AttachmentClosed(resume.attachment, "epoch", "no", incarnation + 7))
        stage.run(8.0)
    assert [failed.code for failed in stage.app.of(Failed)] == ["conflict"]


def test_an_attachment_that_was_granted_forgets_conflicts(stage: Any, kit: Any):
    stage.attach()
    for _ in range(2 * CONFLICTS_AT_MOST):
        stage.edge.tell(msg.AttachmentClosed(stage.edge.last_of(msg.Resume).attachment, "released", "no"))
        stage.run(6.0)
        stage.answer(10)
    assert stage.app.of(Failed) == []


# -- links


def test_a_connection_that_comes_back_keeps_everything(stage: Any, kit: Any):
    subscriber = stage.attach()
    stage.edge.tell(msg.Deliver(subscriber.current.id, kit.pub(11)))
    stage.edge.poll(stage.wire.now)
    stage.wire.drop(kit.edge, kit.head)
    stage.run(5.0)
    assert stage.app.seqs() == [11]
    assert stage.app.of(Detached) == []
    assert len(stage.edge.all(msg.Resume)) == 1


def test_what_is_said_while_the_connection_is_away_arrives(stage: Any, kit: Any):
    publisher = stage.client.publisher("p")
    stage.attach()
    stage.wire.cut.update((kit.edge, kit.head))
    stage.edge.tell(msg.Progress(1))
    stage.client.links[str(stage.client.edge_ports.by_edge["e"].peer)].open = False
    stage.client.home_link.open = False
    publisher.publish({"n": 1}, sent_us=0)
    subscriber = stage.client.subscribers["s"]
    subscriber.subscribe("[n,=,2]")
    stage.run(2.0)
    stage.wire.cut.clear()
    stage.run(5.0)
    assert len(stage.head.all(msg.Publish)) == 1
    assert len(stage.edge.all(msg.Subs)) == 1


def test_a_record_that_cannot_be_read_ends_the_link_and_not_the_subscriber(stage: Any, kit: Any):
    subscriber = stage.attach()
    stage.edge.put(stage.edge.link, msgspec.msgpack.encode([3, subscriber.current.id, [2, "wrong"]]))
    stage.run(3.0)
    assert stage.client.counters["records_refused_malformed"] == 1
    assert stage.edge.last_of(msg.Resume).token == ("h", 5, 10)
    assert len(stage.edge.all(msg.Resume)) == 2


def test_a_record_of_a_later_protocol_is_passed_over(stage: Any, kit: Any):
    subscriber = stage.attach()
    publisher = stage.client.publisher("p")
    stage.run()
    for broker in (stage.edge, stage.head):
        broker.put(broker.link, msgspec.msgpack.encode([199, 1, "new"]))
    stage.edge.tell(msg.Deliver(subscriber.current.id, kit.pub(11)))
    stage.run(1.0)
    assert stage.client.counters["records_refused_unknown"] == 2
    assert stage.app.seqs() == [11]
    assert stage.app.of(Detached) == []
    assert publisher.is_open


@pytest.mark.parametrize("bad", [[], ["3"], [{}], [12, -1, "x"], 7])
def test_a_broken_record_of_a_head_restarts_its_link(stage: Any, kit: Any, bad: Any):
    publisher = stage.client.publisher("p")
    stage.run()
    stage.head.put(stage.head.link, msgspec.msgpack.encode(bad))
    stage.run(2.0)
    assert stage.client.counters["records_refused_malformed"] == 1
    assert len(stage.head.all(msg.Open)) == 2
    assert publisher.is_open


def test_a_record_on_the_wrong_link_is_counted_alone(stage: Any, kit: Any):
    subscriber = stage.attach()
    stage.head.tell(msg.Suback(1, 1, []), msg.Progress(1))
    stage.edge.tell(msg.Accepted(1, 1), msg.Deliver(subscriber.current.id, kit.pub(11)))
    stage.run(1.0)
    assert stage.client.counters["records_refused_misplaced"] == 2
    assert stage.app.seqs() == [11]
    assert len(stage.edge.all(msg.Resume)) == 1


def test_garbage_on_a_connection_is_counted_and_survived(stage: Any, kit: Any):
    subscriber = stage.attach()
    peer = subscriber.current.port.peer
    for data in (b"", b"\xc1", b"\x93\x01\x00", b"\x92\x63\x00", b"x" * 5_000_000):
        stage.client.receive(peer, [data], stage.wire.now)
    stage.edge.tell(msg.Deliver(subscriber.current.id, kit.pub(11)))
    stage.run()
    assert stage.app.seqs() == [11]
    assert sum(n for name, n in stage.client.counters.items() if name.startswith("frames_refused")) == 5


def test_frames_are_credited_at_once_even_if_the_application_takes_no_deliveries(stage: Any, kit: Any):
    subscriber = stage.attach(holds=True)
    for n in range(11, 3011):
        stage.edge.tell(msg.Deliver(subscriber.current.id, kit.pub(n)))
        stage.edge.poll(stage.wire.now)
    stage.run(1.0)
    assert subscriber.stream.queue.depth == 3000
    link = stage.edge.link
    assert link.credit >= link.next_seq
    assert not link.unacked


# -- heads


def test_another_head_is_tried_when_one_does_not_answer(kit: Any):
    wire = kit.wire()
    client = wire.add(kit.client(heads=("tcp://nowhere", kit.head), failover_seconds=3.0))
    head = wire.add(kit.script("h", "head", 5), kit.head)
    publisher = client.publisher("p")
    wire.run(10.0, until=lambda: publisher.is_open)
    assert len(head.all(msg.Open)) == 1


def test_a_head_that_answers_is_kept(kit: Any):
    wire = kit.wire()
    client = wire.add(kit.client(heads=(kit.head, kit.other), failover_seconds=3.0))
    wire.add(kit.script("h", "head", 5), kit.head)
    other = wire.add(kit.script("g", "head", 9), kit.other)
    client.publisher("p")
    wire.run(30.0)
    assert client.home_link.name == "h"
    assert other.heard == []


def test_publications_that_another_head_cannot_know_are_unknown(kit: Any):
    wire = kit.wire()
    client = wire.add(kit.client(heads=(kit.head, kit.other), failover_seconds=3.0))
    app = kit.app(client)
    first = wire.add(kit.script("h", "head", 5), kit.head)
    second = wire.add(kit.script("g", "head", 9), kit.other)
    publisher = client.publisher("p")
    wire.run(1.0)
    publisher.publish({"n": 1}, sent_us=0)
    wire.run(1.0)
    wire.remove(first)
    wire.run(20.0)
    publisher.publish({"n": 2}, sent_us=0)
    wire.run(1.0)
    assert [(each.first, each.answer) for each in app.of(Answered)] == [(1, "unknown")]
    assert [(each.seq, msg.decode(msg.body, each.body).attributes) for each in second.all(msg.Publish)] == [
        (1, {"n": 2})
    ]


def test_a_refusal_of_the_head_is_kept_for_people(stage: Any, kit: Any):
    stage.client.publisher("p")
    stage.run()
    home = stage.client.home_link
    stage.client.receive(home.peer, [frames.refuse_frame(home.id, "refused", "not you")], stage.wire.now)
    assert stage.client.status()["refusal"] == "not you"


def test_one_subscriber_does_not_wait_for_another(stage: Any, kit: Any):
    stage.attach("first")
    stage.client.subscriber("second")
    stage.run()
    stage.edge.tell(msg.Deliver(stage.client.subscribers["first"].current.id, kit.pub(11)))
    stage.run()
    assert len(stage.app.of(Delivery, "first")) == 1
    assert stage.app.of(Acknowledged, "second") == []


def test_status_can_be_written_as_json(stage: Any):
    stage.attach()
    stage.client.publisher("p")
    stage.run()
    status = msgspec.json.decode(msgspec.json.encode(stage.client.status()))
    assert status["head"] == "h"
    assert status["subscribers"] == {"attached": 1}
    assert status["edges"]["e"]["attachments"] == 1
    subscriber = stage.client.subscribers["s"]
    assert msgspec.json.decode(msgspec.json.encode(subscriber.statistics()))["edge"] == "e"
