"""A head among edges, neighbours and publishers: what it accepts, promises and loses, end to end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.fleet import STOCK, Client, Fleet, Publishing, one_cluster, publication, resume

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport import hooks


def refused(client: Client, head: str = "h") -> list[tuple[int, str]]:
    return [(record.seq, record.code) for record in client.of(head, msg.Refused)]


# -- publishing


def test_who_comes_behind_a_life_whose_clock_was_ahead_is_told_its_incarnation():
    fleet = one_cluster()
    ahead, late = fleet.client("c1", "h"), fleet.client("c2", "h")
    ahead.tell("h", msg.Open(1, "p", 90))
    fleet.run(0.1)
    late.tell("h", msg.Open(1, "p", 5))
    fleet.run(0.1)
    assert [each.used for each in late.of("h", msg.Refused)] == [0], "it is alive"
    ahead.tell("h", msg.Close(1))
    fleet.run(0.1)
    late.tell("h", msg.Open(2, "p", 5))
    fleet.run(0.1)
    assert [each.used for each in late.of("h", msg.Refused)] == [0, 90]
    late.tell("h", msg.Open(3, "p", 91))
    fleet.run(0.1)
    assert late.of("h", msg.Opened)


def test_publications_are_accepted_logged_and_delivered_in_order():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(20)
    fleet.run(0.5)
    assert publisher.accepted == 20
    assert client.numbers("e1", 1) == list(range(1, 21))
    offsets = [item.offset for item in client.items("e1", 1) if isinstance(item, msg.PubOpen)]
    assert offsets == list(range(1, 21))


def test_a_publisher_that_has_not_opened_is_refused():
    fleet = one_cluster()
    client = fleet.client("c", "h")
    client.tell("h", publication(9, 1))
    fleet.run(0.2)
    assert refused(client) == [(1, "not-open")]


def test_a_number_that_is_not_the_next_is_refused_and_not_used_up():
    """Cumulative acceptance would otherwise answer the numbers of a hole, which were never sent."""
    fleet = one_cluster()
    client = fleet.client("c", "h")
    publisher = Publishing(client, "h")
    client.tell("h", publication(1, 1), publication(1, 5), publication(1, 6))
    fleet.run(0.2)
    assert refused(client) == [(5, "out-of-order"), (6, "out-of-order")]
    assert client.of("h", msg.Refused)[0].text == "number 5 is not the next: 2 is expected"
    assert publisher.accepted == 1
    assert fleet.head().counters["publications_out_of_order"] == 2
    client.tell("h", *(publication(1, seq) for seq in range(2, 7)))
    fleet.run(0.2)
    assert publisher.accepted == 6
    assert len(fleet.head().log) == 6


def test_numbers_above_the_credit_are_refused_and_cost_nothing():
    fleet = one_cluster(publisher_window=4)
    client = fleet.client("c", "h")
    publisher = Publishing(client, "h")
    fleet.run(0.2)
    opened = client.of("h", msg.Opened)[0]
    assert opened.through == 4
    client.tell("h", *(publication(1, seq) for seq in range(1, 6)))
    fleet.run(0.2)
    assert refused(client) == [(5, "over-credit")]
    assert publisher.accepted == 4
    client.tell("h", publication(1, 6))
    fleet.run(0.2)
    assert refused(client)[1:] == [(6, "out-of-order")], "there is credit again, and 5 has not come"


def test_what_is_too_large_or_not_a_body_is_refused_by_number_and_the_rest_goes_on():
    fleet = one_cluster(max_publication_bytes=1000)
    client = fleet.client("c", "h")
    publisher = Publishing(client, "h")
    client.tell("h", publication(1, 1, payload=b"x" * 2000))
    client.tell("h", msg.Publish(1, 2, 0, 0, msgspec.Raw(msgspec.msgpack.encode([{"deep": [1]}]))))
    client.tell("h", msg.Publish(1, 3, 0, 0, msgspec.Raw(msgspec.msgpack.encode("text"))))
    client.tell("h", msg.Publish(1, 4, 0, 0, msgspec.Raw(msgspec.msgpack.encode([{}, b"", [[[]]]]))))
    client.tell("h", publication(1, 5))
    fleet.run(0.2)
    assert refused(client) == [(1, "oversized"), (2, "malformed"), (3, "malformed"), (4, "malformed")]
    assert publisher.accepted == 5
    assert len(fleet.head().log) == 1


def test_a_repeated_publication_is_logged_once_and_answered_again_after_reopening():
    fleet = one_cluster()
    client = fleet.client("c", "h")
    Publishing(client, "h")
    client.tell("h", publication(1, 1), publication(1, 1), publication(1, 2))
    fleet.run(0.2)
    assert len(fleet.head().log) == 2
    again = fleet.client("c2", "h")
    again.tell("h", msg.Open(5, "p", 1))
    again.tell("h", publication(5, 2), publication(5, 3))
    fleet.run(0.2)
    assert again.of("h", msg.Opened) == [msg.Opened(5, "h", fleet.head().epoch, 2, 128)]
    assert max(a.through for a in again.of("h", msg.Accepted)) == 3
    assert len(fleet.head().log) == 3
    assert fleet.head().counters["publications_repeated"] == 2


def test_a_refusal_that_was_lost_with_its_link_is_said_again():
    """Else the cumulative acceptance of the new link would turn it into an acceptance."""
    fleet = one_cluster(max_publication_bytes=1000)
    client = fleet.client("c", "h")
    Publishing(client, "h")
    fleet.run(0.2)
    client.tell("h", publication(1, 1), publication(1, 2, payload=b"x" * 2000), publication(1, 3))
    fleet.run(0.01)
    again = fleet.client("c2", "h")
    again.tell("h", msg.Open(5, "p", 1))
    fleet.run(0.2)
    assert [(record.handle, record.seq, record.code) for record in again.of("h", msg.Refused)] == [(5, 2, "oversized")]
    order = [type(record).__name__ for record in again.heard["h"]]
    assert order.index("Refused") < order.index("Accepted")


def test_a_newer_incarnation_takes_the_name_and_the_older_one_may_not_go_on():
    fleet = one_cluster()
    old, new = fleet.client("c1", "h"), fleet.client("c2", "h")
    old.tell("h", msg.Open(1, "p", 1), publication(1, 1))
    fleet.run(0.1)
    new.tell("h", msg.Open(1, "p", 2), publication(1, 1))
    fleet.run(0.1)
    old.tell("h", publication(1, 2), msg.Open(1, "p", 1))
    fleet.run(0.1)
    assert refused(old) == [(2, "not-open"), (0, "incarnation")]
    text = old.of("h", msg.Refused)[-1].text
    assert "a newer incarnation, 2, and this one is 1" in text
    assert "clock" in text
    assert len(fleet.head().log) == 2


def test_a_quota_holds_the_publisher_by_credit_and_lets_it_go_on():
    fleet = one_cluster(publisher_rate_per_second=10.0)
    client = fleet.client("c", "h")
    publisher = Publishing(client, "h")
    fleet.run(0.1)
    start = fleet.now
    while fleet.now < start + 5.0:
        credit = max(
            [o.through for o in client.of("h", msg.Opened)] + [c.through for c in client.of("h", msg.Credit)], default=0
        )
        while publisher.seq < credit:
            publisher.publish()
        fleet.run(0.05)
    assert 40 <= publisher.accepted <= 75, "ten a second for five seconds, and what was saved up at the start"
    assert refused(client) == []


# -- confirmation by edges


def test_confirm_edges_waits_for_the_edges_that_need_it_and_for_no_other():
    fleet = one_cluster(edges=2)
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s1"))
    client.tell("e2", resume(1, "s2", "[class,=,'BOND']"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    fleet.freeze("e2")
    publisher.publish(3, confirm=True)
    fleet.run(0.2)
    assert publisher.accepted == 3
    assert client.of("h", msg.Unconfirmed) == []


def test_an_edge_that_is_late_is_named_and_later_publications_wait_their_turn():
    fleet = one_cluster(edges=2)
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s1"))
    client.tell("e2", resume(1, "s2"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    fleet.freeze("e2")
    publisher.publish(2, confirm=True)
    publisher.publish(1)
    fleet.run(0.5)
    assert publisher.accepted == 0, "acceptance is cumulative: the third waits for the first two"
    fleet.run(1.0)
    assert publisher.accepted == 3
    assert [(u.seq, u.edges) for u in client.of("h", msg.Unconfirmed)] == [(1, ["e2"]), (2, ["e2"])]


def test_an_edge_that_is_lost_is_named_at_once():
    fleet = one_cluster(edges=2, confirm_seconds=60.0)
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e2", resume(1, "s2"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    fleet.crash("e2")
    publisher.publish(1, confirm=True)
    fleet.run(1.0)
    assert publisher.accepted == 0
    fleet.run(3.0)
    assert [(u.seq, u.edges) for u in client.of("h", msg.Unconfirmed)] == [(1, ["e2"])]
    assert publisher.accepted == 1


def test_a_large_batch_is_confirmed_only_when_the_edge_has_all_of_it():
    """More than one frame waits for the edge: the acknowledgement of the first confirms only its own records."""
    fleet = one_cluster(edges=1, confirm_seconds=60.0, window_bytes=100_000)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(10, confirm=True, payload=b"x" * 20_000)
    head, edge = fleet.head(), fleet.edge("e1")
    for _ in range(400):
        before = edge.position
        fleet.round()
        assert publisher.accepted <= max(before, edge.position)
        fleet.now += 0.001
        if publisher.accepted == 10:
            break
    assert publisher.accepted == 10
    assert head.counters["gaps_sent"] == 0


def test_an_answer_that_named_edges_is_said_again_on_a_new_link():
    fleet = one_cluster(edges=1)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    fleet.freeze("e1")
    publisher.publish(1, confirm=True)
    fleet.run(1.5)
    again = fleet.client("c2", "h")
    again.tell("h", msg.Open(5, "p", 1))
    fleet.run(0.2)
    assert [(u.handle, u.seq, u.edges) for u in again.of("h", msg.Unconfirmed)] == [(5, 1, ["e1"])]


# -- placing


def test_a_newcomer_is_placed_away_from_what_it_excludes_and_told_when_there_is_no_edge():
    fleet = one_cluster(edges=2)
    client = fleet.client("c", "h")
    client.tell("h", msg.Join("s", ["e1"]), msg.Join("t", [], "e1"), msg.Join("u", ["e1", "e2"]))
    fleet.run(0.2)
    placed = {p.subscriber: p for p in client.of("h", msg.Placed)}
    assert placed["s"].edge == "e2"
    assert placed["s"].endpoint == "mem://e2"
    assert placed["t"].edge == "e1"
    assert "u" in placed, "an excluded edge is better than none"
    fleet.crash("e1")
    fleet.crash("e2")
    fleet.run(3.0)
    client.tell("h", msg.Join("v"))
    fleet.run(0.2)
    assert [u.subscriber for u in client.of("h", msg.Unplaced)] == ["v"]


# -- bad input


def test_records_for_another_role_are_counted_and_the_link_survives():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    client.tell("h", resume(1, "s"), msg.Pause(3))
    client.tell("e1", msg.Publish(1, 1, 0, 0, msgspec.Raw(wire.encode(msg.Body({})))), msg.Close(1))
    client.put(client.dialled["h"], wire.encode(msg.Welcome(4)))
    client.put(client.dialled["h"], b"\x05")
    publisher = Publishing(client, "h")
    publisher.publish(1)
    client.tell("e1", resume(1, "s"))
    fleet.run(0.5)
    assert publisher.accepted == 1
    assert fleet.head().counters["records_refused_misplaced"] == 2
    assert fleet.edge("e1").counters["records_refused_misplaced"] == 2
    assert len(client.of("e1", msg.Suback)) == 1
    assert client.lost == []


def test_a_load_report_that_makes_no_sense_is_counted():
    fleet = one_cluster()
    head = fleet.head()
    reports: list[Any] = [{"broker": "e1"}, {"broker": "e1", "input_utilization": "much"}, {}]
    for report in reports:
        head.receive_control(b"x", wire.control_frame(msg.Identify("e1", "edge", 1)), fleet.now)
        head.receive_control(b"x", wire.control_frame(msg.LoadUpdate(report)), fleet.now)
    assert head.counters["control_refused_report"] == 2


def test_a_client_that_takes_nothing_is_held_by_its_credit_and_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch):
    """Its answers pile up at the head until it takes them, so its requests are bounded too."""
    monkeypatch.setattr(hooks, "CREDIT_HELD_ABOVE_RECORDS", 64)
    fleet = one_cluster()
    client = fleet.client("c", "h", window_frames=4)
    client.takes = False
    fleet.run(0.2)
    link = client.dialled["h"]
    for _ in range(2000):
        client.tell("h", publication(77, 1))
        fleet.round()
        fleet.now += 0.001
    (theirs,) = [a for a in fleet.head().handshakes.accepted_links() if a.name == "c"]
    assert 64 < len(theirs.buffer) <= 64 + 1024 + 16
    assert len(link.buffer) > 500, "the rest waits at the client"
    client.takes = True
    client.took(link, 4)
    fleet.run(2.0)
    assert link.buffer == []
    assert len(client.of("h", msg.Refused)) == 2000


# -- emulated hardware


def test_emulated_hardware_delays_but_loses_nothing_and_keeps_order():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.02))
    fleet = one_cluster(hardware={"h": slow})
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(20)
    fleet.run(0.1)
    assert 1 <= len(client.numbers("e1", 1)) < 10
    fleet.run(1.0)
    assert client.numbers("e1", 1) == list(range(1, 21))


def test_what_a_lost_client_still_had_in_the_server_is_dropped():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=1.0))
    fleet = one_cluster(hardware={"h": slow})
    client = fleet.client("c", "h")
    client.tell("h", msg.Open(1, "p", 1), publication(1, 1), publication(1, 2), msg.Open(2, "q", 1))
    fleet.run(0.2)
    fleet.crash("c")
    fleet.run(6.0)
    head = fleet.head()
    assert "q" in head.publishers.by_name or len(head.publishers) == 1
    assert all(publisher.link is None for publisher in head.publishers.by_name.values())


# -- restart


def test_a_head_that_starts_accepts_nothing_before_all_have_reported():
    fleet = Fleet()
    fleet.cluster("h", ["e1", "e2"])
    fleet.start("h", "e1")
    client = fleet.client("c", "h")
    publisher = Publishing(client, "h")
    client.tell("h", msg.Join("s"))
    fleet.run(1.0)
    assert client.of("h", msg.Opened) == []
    assert [u.subscriber for u in client.of("h", msg.Unplaced)] == ["s"]
    assert fleet.head().status()["waiting_for"] == ["e2"]
    fleet.start("e2")
    fleet.run(1.0)
    assert len(client.of("h", msg.Opened)) == 1
    publisher.publish(1)
    fleet.run(0.2)
    assert publisher.accepted == 1


def test_an_edge_that_never_comes_is_waited_for_as_long_as_its_lease():
    fleet = Fleet(limits={"lease_seconds": 3.0})
    fleet.cluster("h", ["e1"])
    fleet.start("h")
    client = fleet.client("c", "h")
    Publishing(client, "h")
    fleet.run(2.5)
    assert client.of("h", msg.Opened) == []
    fleet.run(1.0)
    assert len(client.of("h", msg.Opened)) == 1


def test_live_subscribers_survive_a_restart_of_the_head_with_a_gap_from_their_token():
    fleet = one_cluster(edges=1)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"), resume(2, "idle", "[class,=,'BOND']"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(5)
    fleet.run(0.5)
    old = fleet.head().epoch
    fleet.crash("h")
    fleet.run(0.5)
    fleet.start("h")
    fleet.run(4.0)
    again = fleet.client("c2", "h")
    Publishing(again, "h", "p2").publish(3)
    fleet.run(1.0)
    epochs = {e.attachment: e.gap for e in client.of("e1", msg.Epoch)}
    assert set(epochs) == {1, 2}
    new = fleet.head().epoch
    assert (epochs[1].low_epoch, epochs[1].low, epochs[1].epoch, epochs[1].high) == (old, 6, new, 0)
    assert client.numbers("e1", 1) == [1, 2, 3, 4, 5, 1, 2, 3]
    assert fleet.edge("e1").counters["records_refused_misplaced"] == 0
    assert client.of("e1", msg.AttachmentClosed) == []
    assert client.of("e1", msg.Progress)[-1].position == 3, "positions of the new epoch are told, too"


def test_a_restart_of_the_head_reaches_a_subscriber_with_several_subscriptions():
    fleet = one_cluster(edges=1)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s", STOCK, "[n,>,0]"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(2)
    fleet.run(0.5)
    fleet.crash("h")
    fleet.run(0.1)
    fleet.start("h")
    fleet.run(4.0)
    again = fleet.client("c2", "h")
    second = Publishing(again, "h", "p2")
    bond: Any = {"class": "BOND", "n": -1}
    second.publish(1, **bond)
    second.publish(1)
    fleet.run(1.0)
    assert client.numbers("e1", 1) == [1, 2, 2]


def test_who_may_not_publish_any_more_is_told_and_nothing_more_is_taken():
    fleet = one_cluster()
    client = fleet.client("pub", "h")
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    publisher.publish(1)
    fleet.run(0.2)
    head = fleet.head()
    head.grant_of = lambda peer: ClientPermissions("ann", publishes=False)
    head.regrant(fleet.now)
    publisher.publish(1)
    fleet.run(0.2)
    assert [(refused.seq, refused.code) for refused in client.of("h", msg.Refused)] == [(0, "role"), (2, "not-open")]
    assert head.log.last == 1


def test_a_load_report_names_the_neighbours_to_which_there_is_no_link():
    fleet = Fleet()
    fleet.cluster("h", [], neighbors=("k",))
    fleet.cluster("k", [], neighbors=("h",))
    fleet.start()
    fleet.run(3.0)
    assert fleet.head().reporter.last["neighbors_down"] == []
    fleet.cut("h", "k")
    fleet.run(20.0)
    assert [fleet.head(name).reporter.last["neighbors_down"] for name in "hk"] == [["k"], ["h"]]
    fleet.mend("h", "k")
    fleet.run(20.0)
    assert [fleet.head(name).reporter.last["neighbors_down"] for name in "hk"] == [[], []]
