"""Where edges, neighbours, subscribers and publishers go on at a head that has recovered its log."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.core.head.durability.conftest import MemoryFiles
from tests.core.head.durability.test_commit import CONFIG, log

from plimsoll.core.config import PeerBroker
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.records import GroupNamed, NeighborAsks, NeighborMet, NumberRefused, PublisherKnown
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.head.outbox import Outbox, UncertainRange
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits

COVER = msg.Cover(1, [], [])
TREE = msgspec.structs.replace(CONFIG, neighbors=(PeerBroker(name="a"),), edges=("e1", "e2"))


def start(files: MemoryFiles, epoch: int, config: object = CONFIG) -> tuple[Head, RoundCommit]:
    store = LogStore(files, "h", 100_000, 4096)
    head = Head(config, epoch, itertools.count(1).__next__, recovered_log(store, store.recover(), is_synced=True))  # type: ignore[arg-type]  # a configuration
    commit = RoundCommit(store, head)
    commit.begin(0.0)
    commit.write(0.0)
    return head, commit


def restarted(files: MemoryFiles, config: object = CONFIG, records: tuple[object, ...] = ()) -> Head:
    """A head in epoch 6 with the ten entries of epoch 5."""
    head, commit = start(files, 5, config)
    assert head.journal is not None
    head.journal.pending += records  # type: ignore[arg-type]  # records of the test
    log(head, 10)
    commit.write(0.0)
    return start(files, 6, config)[0]


def report(epoch: int, position: int) -> msg.EdgeReport:
    return msg.EdgeReport("tcp://e", "", COVER, [], head_epoch=epoch, position=position)


def test_an_edge_goes_on_where_it_had_got_to(files: MemoryFiles):
    continuation = restarted(files).continuation
    assert [continuation.for_edge(report(5, at)) for at in (0, 4, 10)] == [0, 4, 10]
    assert continuation.for_edge(report(5, 11)) is None, "it has had more than the log has"
    assert continuation.for_edge(report(4, 3)) is None
    assert continuation.for_edge(report(0, 0)) is None, "it has had nothing"


@pytest.mark.parametrize(
    ("policy", "records", "needs_all"),
    [
        ({"type": "Padres"}, (), False),
        ({"type": "Padres"}, (GroupNamed("g"),), True),
        ({"type": "Pulsar", "pulsar": {"topicAttribute": "symbol"}}, (), True),
    ],
)
def test_edges_that_are_not_there_are_waited_for_only_where_something_depends_on_them(
    files: MemoryFiles, policy: dict[str, object], records: tuple[object, ...], needs_all: bool
):
    head = restarted(files, msgspec.structs.replace(CONFIG, policy=policy), records)
    assert head.startup.needs_all == needs_all
    assert Head(CONFIG, 6, lambda: 1).startup.needs_all, "it keeps no log"


def test_a_group_is_noted_until_its_end(files: MemoryFiles):
    head, commit = start(files, 5)
    group = head.groups.define("g", msg.GroupDefinition("[class,=,'A']", 4, "Hash", "x"))
    assert head.continuation.checkpoint().group_names == ["g"]
    commit.write(0.0)
    store = LogStore(files, "h", 100_000, 4096)
    assert recovered_log(store, store.recover(), is_synced=True).state.group_names == {"g"}
    head.groups._end(group)
    commit.write(0.0)
    store = LogStore(files, "h", 100_000, 4096)
    assert recovered_log(store, store.recover(), is_synced=True).state.group_names == set()


def test_without_a_disk_all_begin_at_the_end():
    head = Head(CONFIG, 6, lambda: 1)
    assert head.continuation.for_edge(report(6, 0)) is None
    assert head.continuation.memory == 6
    assert head.continuation.heard("a") == (0, 0)
    with pytest.raises(RuntimeError, match="no checkpoint"):
        head.continuation.checkpoint()


@pytest.mark.parametrize("since", [(5, 0), (5, 7), (6, 10)])
def test_a_token_of_an_earlier_epoch_resolves_in_a_cluster_of_its_own(files: MemoryFiles, since: tuple[int, int]):
    head = restarted(files)
    at = head.continuation.replay_start(("h", 5, 4), since)
    assert (at.start, at.gap, at.lapsed) == (4, None, False)


def test_a_token_of_a_tree_needs_a_cover_that_has_been_there_all_the_time(files: MemoryFiles):
    head = restarted(files, TREE)
    assert head.continuation.replay_start(("h", 5, 4), (5, 3)) == (4, None, False)
    late = head.continuation.replay_start(("h", 5, 4), (6, 10))
    assert late.gap is not None
    assert late.lapsed


def test_a_resume_waits_until_all_edges_have_reported_to_a_head_of_a_tree(files: MemoryFiles):
    head, resume = restarted(files, TREE), msg.ResumeUp("x", (1, 2), COVER, ("h", 5, 4))
    assert head.record_input.is_early(resume), "an edge that has not reported may have its place"
    assert not head.record_input.is_early(COVER)
    head.startup.missing -= {"e1", "e2"}
    assert not head.record_input.is_early(resume)
    assert not Head(TREE, 6, lambda: 1).record_input.is_early(resume), "without a disk there is a gap anyway"


@pytest.mark.parametrize("token", [("h", 5, 11), ("h", 4, 1), ("g", 5, 3)])
def test_any_other_token_gets_a_gap(files: MemoryFiles, token: tuple[str, int, int]):
    at = restarted(files).continuation.replay_start(token, (5, 0))
    assert at.gap is not None


def test_a_new_subscriber_begins_at_the_end(files: MemoryFiles):
    assert restarted(files).continuation.replay_start(None, (6, 10)).start == 10


def test_publishers_are_remembered_with_their_numbers_and_exceptions(files: MemoryFiles):
    known = PublisherKnown("p", 1, "id", left="s")
    refused = NumberRefused("p", 1, 12, "oversized", "large")
    waited = NumberRefused("p", 1, 13, "", "")
    head = restarted(files, TREE, (known, refused, waited))
    found = head.publishers.by_name["p"]
    assert (found.incarnation, found.identity, found.left, found.last_seq) == (1, "id", "s", 13)
    assert list(found.singled_out) == [msg.Refused(0, 12, "oversized", "large"), msg.Unconfirmed(0, 13, ["e1", "e2"])]


def test_a_checkpoint_says_all_that_a_restart_needs(files: MemoryFiles):
    head = restarted(files, TREE, (PublisherKnown("p", 1, "id"), NumberRefused("p", 1, 12, "oversized", "large")))
    head.distributor.seen["a", 3], head.distributor.heard["a"] = 8, (3, 20)
    log(head, 2)
    found = head.continuation.checkpoint()
    assert [each.epoch for each in found.epochs] == [5, 6]
    assert found.offsets == [("a", 3, 8), ("h", 5, 10), ("h", 6, 2)]
    assert found.publishers == [PublisherKnown("p", 1, "id", 12)]
    assert found.refused == [NumberRefused("p", 1, 12, "oversized", "large")]
    assert found.neighbors == [("a", 3, 20)]


def asking(head: Head, *texts: str) -> msg.Cover:
    """A cover of neighbour `a` that is written down, and that the head routes by."""
    cover = msg.Cover(1, [msg.CoverItem(number, text) for number, text in enumerate(texts)], [])
    before = head.routes.items("a")
    head.covers.announce(head.routes.replace("a", cover))
    head.continuation.asks("a", cover, before)
    return cover


def met(files: MemoryFiles) -> tuple[Head, RoundCommit]:
    head, commit = start(files, 5, TREE)
    assert head.journal is not None
    head.journal.pending.append(NeighborMet("a", 3, 1))
    head.distributor.heard["a"] = (3, 1)
    return head, commit


def test_a_head_that_has_recovered_routes_by_what_neighbours_had_asked_for(files: MemoryFiles):
    head, commit = met(files)
    asking(head, "[k,=,1]")
    head.continuation.asks("a", msg.Cover(2, [msg.CoverItem(7, "[k,=,2]")], [0]))
    commit.write(0.0)
    head, _ = start(files, 6, TREE)
    assert head.routes.texts("a") == ["[k,=,2]"]
    assert head.outboxes.recalled == {"a"}
    head.on_tick()
    assert head.startup.missing == {"e1", "e2"}, "it is not waited for"


def test_what_neighbours_ask_for_outlasts_its_segment(files: MemoryFiles):
    head, commit = met(files)
    asking(head, "[k,=,1]")
    while len(commit.store.segments) < 4:
        log(head, 5)
        commit.write(0.0)
    head, _ = start(files, 6, TREE)
    assert head.routes.texts("a") == ["[k,=,1]"]


def test_the_same_cover_is_written_once_even_if_it_is_empty(files: MemoryFiles):
    head, commit = met(files)
    for _ in range(3):
        asking(head)
    assert head.journal is not None
    assert [type(record) for record in head.journal.pending] == [NeighborMet, NeighborAsks]
    commit.write(0.0)
    head, _ = start(files, 6, TREE)
    assert head.outboxes.recalled == {"a"}, "that it asks for nothing is known, too"


def test_a_neighbour_of_which_nothing_is_known_is_waited_for(files: MemoryFiles):
    _, commit = met(files)  # as in a log of a version that did not write covers
    commit.write(0.0)
    head, _ = start(files, 6, TREE)
    head.on_tick()
    assert head.outboxes.recalled == set()
    assert "a" in head.startup.missing


def test_a_neighbour_that_was_away_for_longer_than_the_log_goes_back_gets_a_gap(files: MemoryFiles):
    head = restarted(files, TREE)
    report = msg.NeighborReport(COVER, 0, 5, 3, 10)
    link = Link("a", local=Info("h", "head", 6), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0)
    link.remote = Info("a", "head", 9)
    outbox = head.outboxes.open(link, True)
    assert head.continuation.to_neighbor(outbox, report)
    head.log.first = 5
    assert not head.continuation.to_neighbor(outbox, report), "positions 4 to 4 are gone: it would never hear of them"


def recovered_alone(files: MemoryFiles, memory: int = 9) -> tuple[Head, Outbox]:
    """A head in epoch 6 that knows from its log what neighbour `a` asks for, and that `a` has linked to.

    Ten entries are of epoch 5, and two were logged before the link was there. `memory`: of the neighbour.
    """
    head, commit = met(files)
    asking(head, "[k,exists]")
    log(head, 10)
    commit.write(0.0)
    head, _ = start(files, 6, TREE)
    log(head, 2)
    link = Link("a", local=Info("h", "head", 6), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0)
    link.remote = Info("a", "head", 9, memory=memory)
    outbox = head.outboxes.open(link, True)
    head.startup.neighbor_connected(link.remote)
    return head, outbox


def test_a_neighbour_that_has_forgotten_goes_on_where_this_life_of_the_head_began(files: MemoryFiles):
    head, outbox = recovered_alone(files)
    head.covers.report_to_neighbors({"a"})
    said = [msg.decode(msg.between_heads, raw) for raw in outbox.link.buffer]
    assert [each.log_position for each in said if isinstance(each, msg.NeighborReport)] == [10]
    assert head.continuation.begins_for("a") == 10
    head.outboxes.recalled.clear()
    assert head.continuation.begins_for("a") == 12, "from its report on it is offered all"


@pytest.mark.parametrize("heard", [(6, 10), (0, 0)])
def test_it_is_sent_all_of_this_life_behind_a_gap_over_earlier_ones(files: MemoryFiles, heard: tuple[int, int]):
    head, outbox = recovered_alone(files)
    whole = msg.Cover(1, [msg.CoverItem(1, "[k,exists]")], [])
    head.covers.on_neighbor_report(outbox, msg.NeighborReport(whole, 0, *heard))
    assert list(outbox.backlog) == [UncertainRange(1, 10), 11, 12]


def test_a_neighbour_that_remembers_is_sent_what_it_has_missed_without_a_gap(files: MemoryFiles):
    head, outbox = recovered_alone(files, memory=3)
    whole = msg.Cover(1, [msg.CoverItem(1, "[k,exists]")], [])
    head.covers.on_neighbor_report(outbox, msg.NeighborReport(whole, 0, 5, 8, 0))
    assert list(outbox.backlog) == [9, 10, 11, 12]


def test_the_loss_of_a_neighbour_is_told_once(files: MemoryFiles):
    head, commit = met(files)
    asking(head, "[k,exists]")
    lost = Info("a", "head", 9, memory=9)
    for epoch, gaps in ((6, 1), (7, 0)):
        commit.write(0.0)
        head, commit = start(files, epoch, TREE)
        link = Link(
            "a", local=Info("h", "head", epoch), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
        )
        link.remote = lost
        outbox = head.outboxes.open(link, True)
        head.startup.neighbor_connected(lost)
        head.startup.on_neighbor_report(outbox, msg.NeighborReport(COVER, 0, 5, 1, 4))
        assert head.counters["gaps_logged"] == gaps, "the log knows that the neighbour has begun again"
        assert head.continuation.heard("a") == (9, 4)
