"""What every machine shares: handshakes, unknown peers, bad input, heartbeats, credit and the end of a round."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec
import pytest
from tests.core.fleet import one_cluster, resume

from plimsoll.core.config import BrokerConfig, BrokerHardware
from plimsoll.core.metering.bucket import TokenBucket
from plimsoll.core.permissions import ALL_PERMISSIONS, NO_PERMISSIONS, ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import hooks
from plimsoll.core.transport.flusher import fitting
from plimsoll.core.transport.link import FRAME_BYTES, Link, LinkLimits
from plimsoll.core.transport.link_handshake import REPEATED_WINDOWS
from plimsoll.core.transport.overlay_node import Dial, Hangup, OverlayNode, output_bucket

LIMITS = LinkLimits(window_frames=8, heartbeat_seconds=1.0, dead_seconds=5.0)
FRIEND = Info("friend", "client", 3)


class Echo(OverlayNode):
    """An accepting side that records what happens to it."""

    def __init__(self, **more: Any) -> None:
        super().__init__(Info("echo", "head", 9), LIMITS, iter(range(100, 999)).__next__, max_frame_bytes=1000, **more)
        self.events: list[tuple[str, Any]] = []

    def admits(self, info: Info) -> str:
        return "you are not on the list" if info.name == "foe" else ""

    def on_open(self, link: Link) -> None:
        self.events.append(("open", link.id))

    def on_lost(self, link: Link) -> None:
        self.events.append(("lost", link.id))

    def on_granted(self, link: Link) -> None:
        self.events.append(("granted", link.grant.identity))

    def on_refused(self, link: Link, code: str, text: str) -> None:
        self.events.append(("refused", code))

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.events += [("record", msgspec.msgpack.decode(raw)) for raw in frame.records]
        self.took(link)

    def hear(self, *frames: bytes, peer: Any = b"p", now: float = 0.0) -> list[wire.Frame]:
        """Take frames, end the round, and return what is sent to this peer."""
        self.receive(peer, frames, now)
        self.poll(now)
        return [wire.decode_frame(data) for to, data in self.data_to_send() if to == peer]


def hello(link: int = 5, received: int = 0, known: bool = False, info: Info = FRIEND) -> bytes:
    return wire.hello_frame(link, received, known, info)


def data(seq: int, *values: Any, link: int = 5, credit: int = 100) -> bytes:
    return wire.data_frame(link, 0, seq, 0, credit, [msgspec.msgpack.encode(value) for value in values], len(values))


# -- handshakes


def test_a_hello_is_answered_and_opens_the_link_once():
    echo = Echo()
    echo.poll(0.0)
    assert echo.hear(hello()) == [
        wire.HelloOk(1, wire.HELLO_OK, 5, 0, False, echo.info),
        wire.Ack(1, wire.ACK, 5, 0, 8),
    ]
    echo.hear(hello())
    assert echo.events == [("open", 5)]


def test_who_is_not_admitted_is_told_why_and_leaves_nothing_behind():
    echo = Echo()
    (answer,) = echo.hear(hello(info=Info("foe", "client", 1)))
    assert answer == wire.Refuse(1, wire.REFUSE, 5, "refused", "you are not on the list")
    assert echo.handshakes.accepted_links() == []
    assert echo.counters["peers_refused"] == 1


def test_a_known_link_that_is_not_known_is_lost():
    echo = Echo()
    (answer,) = echo.hear(hello(known=True))
    assert answer == wire.HelloOk(1, wire.HELLO_OK, 5, 0, True, echo.info)
    assert echo.handshakes.accepted_links() == []


def test_a_link_goes_on_over_a_new_connection_with_what_did_not_arrive():
    echo = Echo()
    echo.hear(hello())
    echo.receive(b"p", [wire.ack_frame(5, 0, 100)], 0.0)
    (link,) = echo.handshakes.accepted_links()
    for value in (1, 2, 3):
        echo.put(link, msgspec.msgpack.encode(value))
        echo.flush()
    assert len(echo.data_to_send()) == 3
    answer = echo.hear(hello(received=1, known=True), peer=b"q")
    assert [frame.seq for frame in answer if isinstance(frame, wire.Data)] == [2, 3]
    assert echo.links == {b"q": link}
    assert echo.events == [("open", 5)]


def unacknowledged(echo: Echo, frames: int = 4) -> Link:
    """A link of the echo with frames that are not acknowledged."""
    echo.hear(hello())
    echo.receive(b"p", [wire.ack_frame(5, 0, 100)], 0.0)
    (link,) = echo.handshakes.accepted_links()
    for value in range(frames):
        echo.put(link, msgspec.msgpack.encode(bytes(LIMITS.window_bytes // frames) + b"%d" % value))
        echo.flush()
    echo.data_to_send()
    return link


def test_a_peer_that_says_hello_again_and_again_is_sent_little_again():
    echo = Echo()
    unacknowledged(echo)
    again = 0
    for at in range(1_000):  # over ten seconds, on ever other connections
        answer = echo.hear(hello(known=True), peer=b"q%d" % at, now=at / 100)
        again += sum(isinstance(frame, wire.Data) for frame in answer)
    # The windows that are free, and one each after 1, 2 and 4 seconds.
    assert 4 * REPEATED_WINDOWS <= again <= 4 * (REPEATED_WINDOWS + 5)
    assert echo.counters["hellos_ignored"] > 900


def test_a_peer_that_acknowledges_what_is_sent_again_may_lose_its_connection_often():
    echo = Echo()
    link = unacknowledged(echo)
    for at in range(50):
        answer = echo.hear(hello(received=link.acked, known=True), peer=b"q%d" % at, now=at / 100)
        assert len([frame for frame in answer if isinstance(frame, wire.Data)]) == 4
        echo.receive(b"q%d" % at, [wire.ack_frame(5, link.next_seq - 1, 1_000)], at / 100)
        for value in range(4):
            echo.put(link, msgspec.msgpack.encode(bytes(LIMITS.window_bytes // 4) + b"%d" % value))
            echo.flush()
        echo.data_to_send()
    assert echo.counters["hellos_ignored"] == 0


def test_a_new_link_is_not_looked_for_among_all_others():
    class Unscanned(dict[Any, Link]):
        def __iter__(self) -> Any:
            raise AssertionError("all links are looked at for one HELLO")

    echo = Echo()
    echo.heartbeats.next_beat_at = 100.0
    echo.handshakes._accepted = Unscanned()
    echo.hear(hello(link=1), peer=b"a")
    echo.hear(hello(link=2), peer=b"b")
    assert echo.events == [("open", 1), ("lost", 1), ("open", 2)]
    echo.hear(wire.bye_frame(2, "over"), peer=b"b")
    echo.hear(hello(link=3), peer=b"c")
    assert echo.events[3:] == [("lost", 2), ("open", 3)]


def test_a_restarted_process_ends_its_older_link():
    echo = Echo()
    echo.hear(hello(link=5))
    echo.hear(hello(link=6), peer=b"q")
    assert echo.events == [("open", 5), ("lost", 5), ("open", 6)]


def test_one_connection_has_one_link_under_any_name():
    echo = Echo()
    for i in range(50):
        echo.hear(hello(link=i, info=Info(f"name-{i}", "client", 1)))
    assert [link.name for link in echo.handshakes.accepted_links()] == ["name-49"]
    assert len(echo.links) == 1


def test_a_stranger_is_asked_who_it_is():
    echo = Echo()
    for frame in (data(1, "x"), wire.ack_frame(5, 0, 1), wire.ping_frame(5, 1)):
        assert echo.hear(frame) == [wire.Who(1, wire.WHO)]
    assert echo.hear(wire.bye_frame(5, ""), wire.refuse_frame(5, "x", ""), wire.who_frame()) == []
    assert echo.events == []


def test_one_hello_answers_all_that_ask_who_this_is():
    echo = Echo()
    link = echo.dial("q", "mem://q")
    echo.hear(wire.hello_ok_frame(link.id, 0, False, FRIEND), peer="q")
    who, heartbeat = wire.who_frame(), link.limits.heartbeat_seconds
    answers = echo.hear(*[who] * 50, peer="q", now=0.1 * heartbeat)
    assert [frame.link for frame in answers if isinstance(frame, wire.Hello)] == [link.id]
    assert not echo.hear(who, peer="q", now=0.5 * heartbeat)
    echo.hear(wire.hello_ok_frame(link.id, 0, False, FRIEND), peer="q", now=0.6 * heartbeat)
    answers = echo.hear(who, peer="q", now=0.7 * heartbeat)  # the one before was answered
    assert [type(frame) for frame in answers] == [wire.Hello]
    answers = echo.hear(who, peer="q", now=0.9 * heartbeat + heartbeat)  # that one may be lost
    assert wire.Hello in map(type, answers)


def test_gone_keeps_the_link_for_its_next_connection():
    echo = Echo()
    echo.hear(hello())
    echo.gone(b"p", 1.0)
    (link,) = echo.handshakes.accepted_links()
    assert not link.open
    assert echo.links == {}
    echo.hear(hello(known=True), peer=b"q", now=2.0)
    assert echo.events == [("open", 5)]


def test_bye_ends_a_link_at_once():
    echo = Echo()
    echo.hear(hello())
    echo.hear(wire.bye_frame(5, "done"))
    assert echo.events == [("open", 5), ("lost", 5)]
    assert echo.handshakes.accepted_links() == []


# -- what peers may do


def test_a_link_has_the_grant_of_its_peer_and_is_notified_of_changes_only():
    echo = Echo()
    echo.hear(hello())
    (link,) = echo.handshakes.accepted_links()
    assert link.grant is ALL_PERMISSIONS
    echo.grant_of = lambda peer: ClientPermissions("ann")
    for _ in range(2):
        echo.regrant(1.0)
    assert link.grant == ClientPermissions("ann")
    echo.grant_of = lambda peer: None
    echo.regrant(2.0)
    assert link.grant == ClientPermissions("ann"), "a peer that the shell does not know now keeps its grant"
    assert echo.events == [("open", 5), ("granted", "ann")]


def test_an_unknown_peer_is_granted_nothing():
    echo = Echo()
    echo.grant_of = lambda peer: None
    echo.hear(hello())
    assert [link.grant for link in echo.handshakes.accepted_links()] == [NO_PERMISSIONS]


def test_a_link_that_comes_back_on_another_connection_has_what_that_is_granted():
    echo = Echo()
    echo.grant_of = lambda peer: ClientPermissions(peer.decode())
    echo.hear(hello())
    echo.hear(hello(known=True), peer=b"q")
    assert echo.events == [("open", 5), ("granted", "q")]


def test_who_is_expelled_is_told_why_and_its_link_is_over():
    echo = Echo()
    echo.hear(hello())
    echo.expel(b"p", "go", 1.0)
    echo.expel(b"p", "go", 1.0)
    echo.expel(b"unknown", "go", 1.0)
    assert [wire.decode_frame(data) for _, data in echo.data_to_send()] == [
        wire.Refuse(1, wire.REFUSE, 5, "refused", "go")
    ]
    assert echo.events == [("open", 5), ("lost", 5)]
    assert echo.handshakes.accepted_links() == []


# -- data


def test_frames_are_taken_in_order_and_exactly_once():
    echo = Echo()
    echo.hear(hello())
    echo.hear(data(1, "a", "b"), data(3, "d"), data(1, "a", "b"))
    assert [value for kind, value in echo.events if kind == "record"] == ["a", "b"]
    assert echo.counters["frames_out_of_order"] == 2
    echo.hear(data(2, "c"), data(3, "d"))
    assert [value for kind, value in echo.events if kind == "record"] == ["a", "b", "c", "d"]


def test_a_hole_asks_for_a_handshake_but_not_for_each_frame():
    echo = Echo()
    echo.hear(hello())
    answers = echo.hear(data(4, "x"), data(5, "y"), data(6, "z"))
    assert [frame for frame in answers if isinstance(frame, wire.Who)] == [wire.Who(1, wire.WHO)]


def test_a_repeated_frame_is_acknowledged_again():
    echo = Echo()
    echo.hear(hello())
    echo.hear(data(1, "a"))
    echo.hear(now=0.5)
    answers = echo.hear(data(1, "a"), now=1.0)
    assert wire.Ack(1, wire.ACK, 5, 1, 9) in answers


# -- bad input


def test_bad_frames_are_counted_and_the_link_survives_them():
    echo = Echo()
    echo.hear(hello())
    assert echo.hear(b"", b"x" * 50, b"\x92\x01\x63", data(1, "x" * 2000)) == []
    echo.hear(data(1, "a"))
    assert [value for kind, value in echo.events if kind == "record"] == ["a"]
    assert echo.counters["frames_refused_malformed"] == 3
    assert echo.counters["frames_refused_oversized"] == 1


def test_who_sends_nothing_but_rubbish_is_told_so_once():
    echo = Echo()
    answers = [frame for _ in range(20) for frame in echo.hear(b"rubbish")]
    (refuse,) = answers
    assert isinstance(refuse, wire.Refuse)
    assert (refuse.code, refuse.link) == ("malformed", 0)


def test_another_version_is_told_at_once():
    (refuse,) = Echo().hear(b"\x92\x02\x04")
    assert isinstance(refuse, wire.Refuse)
    assert refuse.code == "version"
    assert "version 1" in refuse.text


def test_memory_of_bad_peers_is_bounded():
    echo = Echo()
    for i in range(30_000):
        echo.receive(i.to_bytes(4, "big"), [b"x"], 0.0)
    assert len(echo._bad) <= 10_001


def test_frames_of_the_other_socket_are_misplaced():
    echo = Echo()
    echo.hear(wire.control_frame(msg.Leave()))
    echo.receive_control(b"p", hello(), 0.0)
    assert echo.counters["frames_refused_misplaced"] == 1
    assert echo.counters["control_refused_misplaced"] == 1
    assert echo.links == {}


# -- time


def test_a_heartbeat_is_answered_and_measures_the_round_trip():
    echo = Echo()
    echo.hear(hello())
    assert echo.hear(wire.ping_frame(5, 123)) == [wire.Beat(1, wire.PONG, 5, 123)]
    answers = echo.hear(now=2.0)
    (ping,) = [frame for frame in answers if isinstance(frame, wire.Beat)]
    echo.hear(wire.pong_frame(5, ping.time_us), now=2.25)
    (link,) = echo.handshakes.accepted_links()
    assert link.rtt_seconds == pytest.approx(0.25)


def test_silence_ends_a_link():
    echo = Echo()
    echo.hear(hello())
    for now in (1.0, 2.0, 4.9):
        echo.hear(now=now)
    assert echo.events == [("open", 5)]
    echo.hear(now=6.0)
    assert echo.events == [("open", 5), ("lost", 5)]
    assert echo.counters["links_lost"] == 1
    assert echo.handshakes.accepted_links() == []


def test_the_dialling_side_says_hello_until_it_is_answered_and_then_no_more():
    echo = Echo()
    echo.dial("other", "tcp://x", "key")
    assert echo.dials_to_make() == [Dial("other", "tcp://x", "key")]
    said = []
    for now in (0.0, 1.0, 2.0):
        echo.poll(now)
        said += [wire.decode_frame(frame) for _, frame in echo.data_to_send()]
    hellos = [frame for frame in said if isinstance(frame, wire.Hello)]
    assert len(hellos) >= 3
    assert len({frame.link for frame in hellos}) == 1
    link = hellos[0].link
    echo.receive("other", [wire.hello_ok_frame(link, 0, False, Info("other", "head", 1))], 2.5)
    assert echo.events == [("open", link)]
    echo.receive("other", [wire.hello_ok_frame(link, 0, False, Info("other", "head", 1))], 2.6)
    assert echo.events == [("open", link)]
    echo.hang_up("other", "enough")
    assert echo.dials_to_make() == [Hangup("other")]
    assert wire.decode_frame(echo.data_to_send()[-1][1]) == wire.Bye(1, wire.BYE, link, "enough")
    assert echo.dialled == echo.links == {}


def test_a_link_that_the_other_side_has_lost_starts_over():
    echo = Echo()
    echo.dial("other", "tcp://x")
    hello_frame = wire.decode_frame(echo.data_to_send()[0][1])
    assert isinstance(hello_frame, wire.Hello)
    other = Info("other", "head", 1)
    echo.receive("other", [wire.hello_ok_frame(hello_frame.link, 0, False, other)], 0.0)
    echo.data_to_send()
    echo.receive("other", [wire.who_frame()], 0.1)
    asked = wire.decode_frame(echo.data_to_send()[0][1])
    assert isinstance(asked, wire.Hello)
    assert asked.known
    echo.receive("other", [wire.hello_ok_frame(asked.link, 0, True, other)], 0.2)
    again = wire.decode_frame(echo.data_to_send()[0][1])
    assert isinstance(again, wire.Hello)
    assert (again.known, again.received) == (False, 0)
    assert again.link != asked.link
    assert echo.events == [("open", asked.link), ("lost", again.link)]


def test_a_refusal_is_passed_on():
    echo = Echo()
    link = echo.dial("other", "tcp://x")
    echo.receive("other", [wire.refuse_frame(link.id, "refused", "no")], 0.0)
    assert echo.events == [("refused", "refused")]


def test_a_node_says_when_it_wants_to_be_woken():
    echo = Echo()
    echo.hear(hello())
    assert echo.next_poll_at() == 1.0
    echo.receive(b"p", [data(1, "a")], 0.1)
    assert echo.next_poll_at() == pytest.approx(0.1 + LIMITS.ack_seconds)
    assert echo.hear(now=0.2) == [wire.Ack(1, wire.ACK, 5, 1, 9)]
    assert echo.next_poll_at() == 1.0


# -- the end of a round


def test_records_are_joined_into_frames_of_bounded_size():
    echo = Echo()
    echo.hear(hello())
    echo.receive(b"p", [wire.ack_frame(5, 0, 100)], 0.0)
    (link,) = echo.handshakes.accepted_links()
    sizes = [30_000, 30_000, 30_000, 100_000, 10, 10]
    for size in sizes:
        echo.put(link, msgspec.msgpack.encode(b"x" * size))
    echo.flush()
    frames = [wire.decode_frame(frame) for _, frame in echo.data_to_send()]
    assert [len(f.records) for f in frames if isinstance(f, wire.Data)] == [2, 1, 1, 2]


def test_at_least_one_record_fits():
    assert fitting([b"x" * (2 * FRAME_BYTES), b"y"]) == 1
    assert fitting([b"x", b"y"]) == 2


def test_bandwidth_spreads_what_is_sent():
    echo = Echo(bucket=TokenBucket(10_000.0, 1000.0))
    echo.hear(hello())
    echo.receive(b"p", [wire.ack_frame(5, 0, 1000)], 0.0)
    (link,) = echo.handshakes.accepted_links()
    sent = 0
    now = 0.0
    for _ in range(40):
        echo.put(link, msgspec.msgpack.encode(b"x" * 500))
    while now < 1.0:
        echo.poll(now)
        sent += sum(len(frame) for _, frame in echo.data_to_send())
        wanted = echo.next_poll_at()
        assert wanted > now
        now = min(wanted, now + 0.05)
    assert 8_000 <= sent <= 30_000


def test_links_take_turns_at_the_bandwidth():
    """The first link always has more to send; it must not keep the other one from sending anything."""
    echo = Echo(bucket=TokenBucket(100_000.0, 1000.0))
    for peer, number in ((b"p", 5), (b"q", 6)):
        echo.hear(hello(number, info=Info(f"client-{number}", "client", 3)), peer=peer)
        echo.receive(peer, [wire.ack_frame(number, 0, 1000)], 0.0)
    full, light = echo.handshakes.accepted_links()
    now, sent = 0.0, dict[Hashable, int]({b"p": 0, b"q": 0})
    for n in range(1, 20):
        while len(full.buffer) < 500:
            echo.put(full, msgspec.msgpack.encode(b"x" * 500))
        echo.put(light, msgspec.msgpack.encode(b"y" * 500))
        echo.poll(now)
        for to, frame in echo.data_to_send():
            sent[to] += len(frame)
            (echo.links[to]).acknowledged(echo.links[to].next_seq - 1, 1000, now)
        assert sent[b"q"] >= 500 * (n // 2 - 1), "at most a frame of the other link is ahead of each of its own"
        now = max(echo.next_poll_at(), now + FRAME_BYTES / 100_000.0)
    assert sent[b"p"] > 3 * FRAME_BYTES


def test_credit_is_held_while_too_much_waits_and_given_when_it_has_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hooks, "CREDIT_HELD_ABOVE_RECORDS", 3)
    echo = Echo()
    echo.hear(hello())
    (link,) = echo.handshakes.accepted_links()
    for _ in range(5):
        echo.put(link, b"\x01")
    echo.hear(*[data(seq, "x", credit=0) for seq in range(1, 5)])
    assert link.consumed == 0
    echo.hear(data(5, "x", credit=100), now=0.1)
    assert link.consumed == 5
    assert link.buffer == []
    echo.hear(wire.bye_frame(5, ""), now=0.2)
    assert echo.flusher._owed == {}


def test_an_edge_takes_no_more_than_its_head_does(monkeypatch: pytest.MonkeyPatch):
    """What clients ask for piles up at the edge while its head is away."""
    monkeypatch.setattr("plimsoll.core.edge.machine.CREDIT_HELD_ABOVE_RECORDS", 20)
    fleet = one_cluster(edges=1, dead_seconds=60.0)
    client = fleet.client("c", "e1", dead_seconds=60.0, window_frames=1024)
    edge = fleet.edge("e1")
    fleet.cut("h", "e1")
    for i in range(3000):
        client.tell("e1", resume(i, f"s{i}"))
        fleet.round()
        fleet.now += 0.001
    assert len(edge.head.buffer) < 1100
    assert len(client.dialled["e1"].buffer) > 500
    fleet.mend("h", "e1")
    fleet.run(8.0)
    assert len(client.of("e1", msg.Suback)) == 3000


def test_publishers_that_open_at_a_head_that_starts_are_bounded():
    fleet = one_cluster(edges=1)
    fleet.crash("e1")
    fleet.crash("h")
    fleet.start("h")
    client = fleet.client("c", "h", window_frames=1024)
    for i in range(2500):
        client.tell("h", msg.Open(i, f"p{i}", 1))
        fleet.round()
        fleet.now += 0.001
    assert len(fleet.head().startup.waiting) <= 1024 + 16
    fleet.start("e1")
    fleet.run(3.0)
    assert len(client.of("h", msg.Opened)) == 2500


def test_credit_goes_back_when_frames_are_taken_however_long_after_they_were_acknowledged():
    """A broker of emulated hardware takes what came in when it has been served; then nothing else may come any more."""

    class Slow(Echo):
        def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
            self.waiting = (link, frame.seq)

    slow = Slow()
    slow.hear(hello())
    slow.hear(*(data(seq, seq) for seq in range(1, 9)))
    assert [frame.ack for frame in slow.hear(now=1.0) if isinstance(frame, wire.Ack)] == [8]
    slow.took(slow.waiting[0], 8)
    slow.poll(2.0)
    answers = [wire.decode_frame(frame) for _, frame in slow.data_to_send()]
    assert [frame for frame in answers if isinstance(frame, wire.Ack)] == [wire.Ack(1, wire.ACK, 5, 8, 16)]


def test_what_is_said_and_heard_by_control_is_counted_by_kind():
    fleet = one_cluster(edges=1)
    head, edge = fleet.head(), fleet.edge("e1")
    fleet.run(3.0)
    assert edge.counters["said_LoadUpdate"] == head.counters["heard_LoadUpdate"] > 0
    assert edge.counters["said_EdgeReport"] == 1
    assert head.counters["said_Welcome"] == 1
    mediator = fleet.mediator("h")
    fleet.run(3.0)
    assert mediator.counters["heard_LoadUpdate"] == head.counters["said_LoadUpdate"] > 0


def test_a_broker_saves_up_as_much_bandwidth_as_its_profile_says():
    def config(rate: float | None, burst: float) -> BrokerConfig:
        hardware = BrokerHardware(output_bytes_per_second=rate, output_burst_seconds=burst)
        return BrokerConfig(name="e", role="edge", cluster="c", data="d", control="c", hardware=hardware)

    assert output_bucket(config(None, 0.05)) is None
    bucket = output_bucket(config(1_000_000.0, 0.01))
    assert bucket is not None
    assert (bucket.rate, bucket.burst) == (1_000_000.0, 10_000.0)
    small = output_bucket(config(1_000.0, 0.01))
    assert small is not None
    assert small.burst == 4096.0, "less than a page would wait for each record"
