"""A head in memory that takes on a standby: the copy of its log recovers to all that the head knew, at any moment."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.core.head.standby.conftest import CONFIG

from plimsoll.core.config import BrokerHardware, HardwareEmulation, PeerBroker
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.records import PlaceKept
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_copy import LogCopy
from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

TREE = msgspec.structs.replace(CONFIG, neighbors=(PeerBroker(name="a"), PeerBroker(name="b")))
BODY = msgspec.Raw(wire.encode(msg.Body({"k": 1}, b"x" * 300)))
SLICE = 4_000


def made(config: object = CONFIG, entries: int = 20_000) -> tuple[Head, LogStore, LogCopy]:
    """A head of epoch 5 that serves, the segments that it is to have, and the copy that has not begun."""
    head = Head(config, 5, itertools.count(1).__next__)  # type: ignore[arg-type]  # a configuration
    head.startup.lease_passed()
    store = LogStore(MemoryFiles(), "h", 200_000, 16_384)
    return head, store, LogCopy(head, store, entries)


def publish(head: Head, count: int) -> None:
    """Log what a publisher sends; its number goes on."""
    publisher = head.publishers.by_name.get("p")
    if publisher is None:
        publisher = head.publishers._new("p", 7, "", 0.0)
    for _ in range(count):
        head.distributor.publish(publisher, msg.Publish(1, publisher.last_seq + 1, 0, 0, BODY), {"k": 1})
        head.publishers.took(publisher, publisher.last_seq + 1, 300, 0.0)


def relay(head: Head, neighbor: str, count: int, origin: str, first: int = 1) -> None:
    for offset in range(first, first + count):
        head.distributor.relay(neighbor, msg.Pub(100 + offset, origin, 3, offset, "q", 1, offset, 0, 0, BODY))


def copied(head: Head, copy: LogCopy, more: int = 0) -> int:
    """Copy in small slices, with publications between them; returns how many rounds it took."""
    for number in range(1, 1000):
        if copy.step(SLICE):
            return number
        publish(head, more)
    raise AssertionError("no end")


def recovered(store: LogStore, config: object = CONFIG) -> Head:
    """The head that a standby with these segments becomes."""
    files = MemoryFiles()
    for name in store.files.names():
        data = store.files.read(name, 0, store.files.size(name))
        files.create(name, len(data))
        files.write(name, 0, data)
    found = LogStore(files, "h", store.size, store.segment_bytes)
    log = recovered_log(found, found.recover(), is_synced=True, is_replica=True)
    return Head(config, 6, itertools.count(1).__next__, log)  # type: ignore[arg-type]  # a configuration


@pytest.mark.parametrize("entries", [0, 1, 100])
def test_the_copy_is_the_log_of_the_head_entry_by_entry(entries: int):
    head, store, copy = made()
    publish(head, entries)
    before = [entry for _, entry in head.log.after(0)]
    copied(head, copy)
    found = recovered(store)
    assert [entry for _, entry in found.log.after(0)] == before == [entry for _, entry in head.log.after(0)]
    assert found.continuation.memory == 5, "it has forgotten nothing since"
    assert found.continuation.for_edge(msg.EdgeReport("", "", msg.Cover(1, [], []), [], head_epoch=5, position=0)) == 0


def test_publications_go_on_meanwhile_and_are_in_it():
    head, store, copy = made()
    publish(head, 150)
    assert copied(head, copy, more=3) > 5
    commit = RoundCommit(store, head)
    publish(head, 10)
    commit.write(0.0)
    found = recovered(store)
    assert [at for at, _ in found.log.after(0)] == list(range(1, head.log.last + 1))
    assert found.publishers.by_name["p"].last_seq == head.publishers.by_name["p"].last_seq == head.log.last


def test_what_no_longer_fits_at_hand_is_read_from_the_segments():
    head, store, copy = made(entries=5_000)
    publish(head, 100)
    copied(head, copy)
    assert isinstance(head.log, DurableLog)
    assert head.log.memory_first > 80
    assert head.log.bytes <= 5_000 < store.bytes
    assert [at for at, _ in head.log.after(0)] == list(range(1, 101))
    assert head.outboxes.log is head.log


def test_the_oldest_go_by_the_size_of_the_segments_and_are_a_gap():
    head, store, copy = made()
    store.size = 60_000
    publish(head, 400)
    copied(head, copy)
    assert head.log.first > 200
    assert recovered(store).log.first == head.log.first == store.first
    assert head.log.lost(1, head.log.first - 1) == {("h", 5): head.log.first - 1}


def test_a_log_that_has_evicted_begins_where_it_does():
    head, store, copy = made(msgspec.structs.replace(CONFIG, limits=CONFIG.limits))
    head.log.limit_bytes = 20_000
    publish(head, 100)
    first = head.log.first
    assert first > 1
    copied(head, copy)
    found = recovered(store)
    assert (found.log.first, head.log.first) == (first, first)
    assert found.log.lost(1, first - 1) == {("h", 5): first - 1}


def test_who_sent_what_is_known_so_that_nothing_goes_back_to_a_neighbour():
    head, store, copy = made(TREE)
    relay(head, "a", 3, "far")
    publish(head, 2)
    head.distributor.relay_gap("b", msg.Gap("b", 4, 1, 4, 9, [("beyond", 2, 8)], "log"))
    head.distributor.log_uncertainty("a")
    head.distributor.log_uncertainty("")
    copied(head, copy)
    said = [logged.source for _, logged in store.records(1, 100_000)]
    assert said == ["a", "a", "a", "", "", "b", "a", ""]
    assert recovered(store, TREE).distributor.seen == {("far", 3): 3, ("beyond", 2): 8}


def test_how_far_neighbours_were_heard_and_what_they_asked_for_is_known():
    head, store, copy = made(TREE)
    head.startup._epochs["a"] = 3
    head.covers.change("a", msg.Cover(0, [msg.CoverItem(1, "[k,=,1]")], []))
    relay(head, "a", 3, "a")
    copied(head, copy)
    found = recovered(store, TREE)
    assert found.distributor.heard == {"a": (3, 103)}
    assert found.startup.answered_for == {"a"}
    assert found.routes.match({"k": 1}) == {"a"}


def test_an_earlier_epoch_of_a_neighbour_counts_until_something_comes_of_the_next():
    head, _, _ = made(TREE)
    head.startup.neighbor_connected(wire.Info("a", "head", 3))
    relay(head, "a", 2, "a")
    assert head.continuation.heard("a") == (3, 102)
    head.startup.neighbor_connected(wire.Info("a", "head", 8))
    assert head.continuation.heard("a") == (3, 102)
    head.distributor.relay("a", msg.Pub(150, "a", 8, 1, "q", 1, 9, 0, 0, BODY))
    assert head.continuation.heard("a") == (8, 150)


def test_places_and_times_are_in_it():
    head, store, copy = made()
    publish(head, 1)
    place = PlaceKept("s", "me", (1, 1), (5, 0), 3600.0, ["[k,=,1]"])
    head.durable_places.kept["s"] = place
    head.durable_places.times.note(1.0, 1)
    copied(head, copy)
    found = recovered(store)
    assert found.durable_places.kept == {"s": place}
    assert found.durable_places.times.marks == [(1.0, 1)]


def test_it_waits_until_the_head_has_started():
    head = Head(msgspec.structs.replace(CONFIG, edges=("e",)), 5, itertools.count(1).__next__)
    copy = LogCopy(head, LogStore(MemoryFiles(), "h", 200_000), 1_000)
    assert (copy.step(), copy.is_behind, head.journal) == (False, False, None)
    head.startup.lease_passed()
    assert copy.step()
    assert head.journal is not None


def test_it_ends_only_when_all_that_neighbours_were_told_is_here_has_been_dealt_with():
    """Else what waits in the queue would be lost with the process, and not be sent again."""
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.1, per_subscription_seconds=0.0))
    config = msgspec.structs.replace(TREE, hardware=slow)
    head, _, copy = made(config)
    head.receive(b"a", [wire.hello_frame(9, 0, False, wire.Info("b", "head", 3))], 0.0)
    link = head.links[b"a"]
    record = wire.encode(msg.Pub(101, "b", 3, 1, "q", 1, 1, 0, 0, BODY))
    link.expected = 1
    frame = wire.data_head(wire.data_link(9, 0), 1, wire.data_answer(0, 100), 1) + record
    head.receive(b"a", [frame], 0.0)
    assert (link.expected, link.dealt) == (2, 0)
    for _ in range(2):
        assert not copy.step()
    assert link.acks_dealt, "from now on it is acknowledged when it has been dealt with"
    head.poll(1.0)
    assert link.dealt == 1
    assert copy.step()
    assert head.log.last == 1
