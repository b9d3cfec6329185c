"""Heads that keep their log on a disk: docs/durability.md."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.edge.attachment import EdgeAttachment
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.handover.cut_decision import CutDecision
from plimsoll.core.head.held_places import HeldPlaces
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.place_covers import PlaceCovers
from plimsoll.core.head.places_elsewhere import PlacesElsewhere, counts_more
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_input import RecordInput
from plimsoll.core.transport.link import Link
from plimsoll.simulator.world.durable_heads import HeadDisk

HEAD, TREE, SMALL, INTERVAL = "durable-head", "durable-tree", "durable-small", "durable-interval"
SLOW, RARE, AWAY, FAR = "slow-disk", "rare-syncs", "durable-away", "far-away"
APART, TREE_MOVED = "durable-apart", "sessions-durable-head-across"
MOVED, MOVED_ACROSS = "sessions-durable-away", "away-across"
ACROSS, BOTH = "sessions-durable-away-across", "standby-both"

MUTANTS = [
    Mutant(
        "sent-before-its-sync",
        "Nothing of a round leaves a head before what the round has logged is safe.",
        (Change(HeadDisk.end_round, "if self._held or self._waits_for > self._safe:", "if False:"),),
        (SLOW, HEAD, TREE),
    ),
    Mutant(
        "edges-begin-at-the-end",
        "An edge goes on where it had got to in an earlier epoch.",
        (Change(EpochContinuation.for_edge, "if journal is None", "if True or journal is None"),),
        (HEAD, TREE),
    ),
    Mutant(
        "edges-are-sent-nothing-they-missed",
        "An edge that goes on is sent what it has missed.",
        (Change(EpochContinuation.send_missed, "if start < last:", "if False:"),),
        (HEAD, TREE),
    ),
    Mutant(
        "neighbours-are-sent-nothing-they-missed",
        "A neighbour is sent what it has missed of earlier epochs.",
        (Change(EpochContinuation.to_neighbor, "[*in_doubt, *missed]", "in_doubt"),),
        (TREE, SMALL),
    ),
    Mutant(
        "unacknowledged-is-uncertain",
        "What a neighbour with a log on a disk has not acknowledged is sent again, without a gap.",
        (Change(Outboxes._renew, "and not remembers", ""),),
        (TREE,),
    ),
    Mutant(
        "held-relays-are-acknowledged",
        "What a head keeps only in memory is not acknowledged to the neighbour that sent it.",
        (Change(Link.safe, "if not self.acks_dealt:", "if True:"),),
        (SMALL, TREE),
    ),
    Mutant(
        "publishers-are-forgotten",
        "A head that has recovered remembers the last number of each publisher.",
        (Change(EpochContinuation.restore, "host.publishers.restore(known, deque(exceptions))", "pass"),),
        (HEAD, TREE),
    ),
    Mutant(
        "incarnations-are-not-noted",
        "The incarnation of a publisher is in the log ahead of its publications.",
        (Change(PublisherTable._note, "if self.journal is not None:", "if False:"),),
        (HEAD, TREE),
    ),
    Mutant(
        "covers-are-not-recalled",
        "A head that has recovered routes to neighbours by what they had asked for.",
        (Change(EpochContinuation.restore, "self._recall_covers()", "pass"),),
        (APART,),
    ),
    Mutant(
        "covers-are-not-written",
        "A change of what a neighbour asks for is in the log before it is acknowledged.",
        (
            Change(
                EpochContinuation.asks,
                "if is_first or replaced is None or dict(adds) != dict(replaced):",
                "if is_first:",
            ),
        ),
        (APART, TREE),
    ),
    Mutant(
        "recalled-neighbours-are-offered-early",
        "A neighbour whose cover is known from the disk is offered nothing before it has reported.",
        (Change(Distributor._log_publication, "if host.outboxes.recalled", "if False"),),
        (APART, TREE),
    ),
    Mutant(
        "recalled-neighbours-count-as-known",
        "A neighbour that reports is sent what was logged before, if its cover was known from the disk alone.",
        (
            Change(
                CoverUpdates.on_neighbor_report,
                "and outbox.name not in self.outboxes.recalled",
                "and True",
            ),
        ),
        (APART, TREE),
    ),
    Mutant(
        "forgotten-neighbours-begin-at-the-end",
        "A neighbour that has forgotten is sent what a head has accepted since its start.",
        (
            Change(EpochContinuation.begins_for, "neighbor not in self.host.outboxes.recalled", "True"),
            Change(EpochContinuation._has_forgotten, "return is_recalled and", "return False and"),
        ),
        (BOTH,),
    ),
    Mutant(
        "forgotten-neighbours-get-no-gap",
        "A neighbour that has forgotten gets a gap over what earlier lives of a head may have sent it.",
        (Change(EpochContinuation.to_neighbor, "if start else []", "if False else []"),),
        (BOTH,),
    ),
    Mutant(
        "places-end-with-their-edge",
        "What an edge keeps ends after its lease; the place that a head keeps goes on.",
        (Change(Membership._lapse, "if host.durable_places.is_kept(subscriber):", "if False:"),),
        (FAR, AWAY),
    ),
    Mutant(
        "places-are-not-recovered",
        "A head that has recovered keeps the places that it kept, and is their owner until an edge says that it is.",
        (Change(DurablePlaces.restore, "for place in state.places.values():", "for place in ():"),),
        (FAR, AWAY),
    ),
    Mutant(
        "places-stay-behind-a-hand-over",
        "A place goes to the edge that a hand-over has made the owner.",
        (Change(DurablePlaces.tick, "self._settle(*key)", "pass"),),
        (MOVED, MOVED_ACROSS),
    ),
    Mutant(
        "targets-tell-no-list",
        "The target of a hand-over tells its head the list of a member that has a place, ahead of the cut.",
        (Change(HandoverTarget.on_install, "self.attachments.keep(attachment)", "pass"),),
        (MOVED, MOVED_ACROSS),
    ),
    Mutant(
        "places-are-not-covered",
        "The list of a place is covered by the head itself.",
        (Change(PlaceCovers.cover, "self._covers.change(AWAY_KEY, msg.Cover(0, adds, gone))", "pass"),),
        (FAR, AWAY),
    ),
    Mutant(
        "places-elsewhere-stay",
        "A place that no edge serves ends once another head serves its subscriber.",
        (Change(PlacesElsewhere.expire, "if due and not", "if False and not"),),
        (ACROSS,),
    ),
    Mutant(
        "guests-are-not-in-doubt",
        "The place of a subscriber that has not arrived yields to the head that it comes from.",
        (Change(counts_more, "other.is_guest and", "False and"),),
        (ACROSS,),
    ),
    Mutant(
        "sources-let-go-at-the-cut",
        "In a tree a cut leaves the place at the source until the target would report the member.",
        (Change(CutDecision._send_cut, "self.host.held_places.are_needed", "False"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "ending-places-go-with-their-head",
        "The place of a member that has been sent END outlasts its head.",
        (Change(EdgeAttachment.may_outlast_head, "not in SILENT", "in (AttachmentState.CLOSED,)"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "places-are-released-at-once",
        "An edge lets a subscriber go only once the next edge has had RESUMED.",
        (Change(HeldPlaces.swapped, "if self.are_needed:", "if False:"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "resumes-take-over-nothing",
        "A RESUME at the same edge takes over since when its subscriber is covered, until the head answers.",
        (Change(EdgeAttachment.take_over, "if is_whole", "if False"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "resumes-do-not-wait-for-edges",
        "A RESUME waits until all edges have reported to a head that has recovered.",
        (Change(RecordInput.is_early, "isinstance(message, msg.ResumeUp) and", "False and"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "older-resumes-are-released-at-once",
        "An older RESUME of an edge that keeps the place is released no earlier than that.",
        (Change(Membership.on_resume, "if host.held_places.holds(outbox.key, x):", "if False:"),),
        (TREE_MOVED,),
    ),
    Mutant(
        "unsure-logs-keep-their-memory",
        "A head that may have forgotten something has a new memory epoch.",
        (Change(LogJournal.__init__, "is_same = before is not None and recovered.is_whole", "is_same = bool(before)"),),
        (RARE, INTERVAL),
    ),
]
