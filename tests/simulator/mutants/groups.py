"""Slices of consumer groups that move between consumers: docs/groups.md."""

from __future__ import annotations

from tests.simulator.mutants.partners import NO_LEASE
from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.client import slice_cache
from plimsoll.core.client.assigned_slices import AssignedSlices
from plimsoll.core.client.caching_slices import CachingSlices
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.group_beats import GroupBeats
from plimsoll.core.client.group_items import GroupItems
from plimsoll.core.client.group_member import GroupMember
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.head.groups.cache_sessions import CacheSessions
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.durable_groups import DurableGroups
from plimsoll.core.head.groups.group_links import GroupLinks
from plimsoll.core.head.groups.group_memory import GroupMemory
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.requests import GroupRequests
from plimsoll.core.head.groups.restart import GroupRestart
from plimsoll.core.head.groups.slice_attachments import SliceAttachments
from plimsoll.core.head.groups.slice_audit import SliceAudit
from plimsoll.core.head.groups.slice_commands import SliceCommands
from plimsoll.core.head.groups.slice_moves import SliceMoves
from plimsoll.core.head.groups.slice_schedule import SliceSchedule
from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.head.membership import Membership
from plimsoll.core.policies.consumer_groups import membership

CALM, FAULTS, HEADS, MOVES = "groups", "groups-faults", "groups-heads", "groups-handovers"
CACHES, CACHE_FAULTS = "groups-caches", "groups-caches-faults"
CLUSTERS, SESSIONS, DURABLE = "groups-clusters", "groups-sessions", "groups-durable"
DURABLE_CLUSTERS = "groups-durable-clusters"

MUTANTS = [
    Mutant(
        "slice-is-assigned-before-its-release",
        "A slice is assigned only when its holder has released it, or has gone.",
        (
            Change(
                ConsumerGroup.revoke,
                "self.say(holder, msg.SliceRevoked(self.name, each.number, each.epoch))",
                "(self.say(holder, msg.SliceRevoked(self.name, each.number, each.epoch)), self._give_up(each, "
                "is_certain=True))",
            ),
        ),
        (CALM, FAULTS),
    ),
    Mutant(
        "slice-is-released-with-an-item-in-hand",
        "A slice is released once the application has finished what it has.",
        (Change(AssignedSlices.on_revoked, "if owned.handed:", "if False:"),),
        (CALM, FAULTS),
    ),
    Mutant(
        "taker-begins-behind-what-has-come",
        "A taker goes on behind the last acknowledgement, not behind what had come.",
        (Change(SliceSubscriber.place, "if self.handed or self.events or token is None:", "if False:"),),
        (CALM, FAULTS),
    ),
    Mutant(
        "revoked-slice-gives-more",
        "A slice that is revoked gives the application nothing more.",
        (Change(GroupItems.take, "if not owned.is_stopping and self", "if self"),),
        (CALM, FAULTS, MOVES),
        harmless="it is released later, behind what is finished by then: the move takes longer",
    ),
    Mutant(
        "nothing-is-marked",
        "What a consumer that has gone may have been given is marked when it comes again.",
        (Change(ConsumerGroup._drop, "is_certain=False", "is_certain=True"),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "second-death-forgets-the-first",
        "What may have been given stays marked, however many consumers die on it.",
        (Change(GroupSlice.end, "if given_to is not None:", "if True:"),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "member-without-answers-goes-on",
        "A member that has had no answer for its lease stops by itself.",
        (
            Change(GroupMember.on_tick, "now > self.beats.lease_until", "False"),
            Change(GroupItems.take, "now > self._beats.lease_until", "False"),
        ),
        (FAULTS, HEADS),
    ),
    Mutant(
        "answer-counts-from-its-arrival",
        "The answer to a beat counts from when the beat was sent.",
        (Change(GroupBeats.on_answer, "self._heard(sent)", "self._heard(self._client.now + self._lease_seconds)"),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "older-assignment-is-believed",
        "What a member says of a slice counts only under the epoch in which it has it.",
        (Change(GroupSlice.is_held, "self.holder == member and self.epoch == epoch", "self.holder == member"),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "assignment-keeps-its-epoch",
        "Each assignment has a new, higher epoch.",
        (
            Change(
                ConsumerGroup.next_epoch,
                "max(each.epoch, newest, self.host.epoch >> EPOCH_BITS) + 1",
                "max(each.epoch, newest, 1)",
            ),
        ),
        (CALM, FAULTS),
    ),
    Mutant(
        "restarted-head-does-not-wait-for-members",
        "A head that restarts lets members say what they have before it assigns anything.",
        (Change(GroupRestart.hold_until, "self._has_restarted or self.is_served(group)", "False"),),
        (HEADS,),
    ),
    Mutant(
        "restarted-head-accepts-without-stamps",
        "A head that restarts accepts nothing before it knows the groups whose slices its edges serve.",
        (
            Change(
                Membership.on_report,
                "host.startup.expect(host.groups.restart.edge_reported(report))",
                "host.groups.restart.edge_reported(report)",
            ),
        ),
        (HEADS,),
        partners=(Change(SliceStamps.of, "if not stampers:", "if True:"),),  # clients that do not stamp
    ),
    Mutant(
        "forgotten-places-are-no-gap",
        "What a head has forgotten of a slice, and no member says, is told as a gap.",
        (Change(GroupMemory._doubt, "if each.token is None and not self.is_recalled:", "if False:"),),
        (HEADS,),
    ),
    Mutant(
        "restarted-head-forgets-how-far-slices-are",
        "A head with its log has from there how far the slices of a declared group are, if no member says so.",
        (Change(DurableGroups.restore, "state.slices.get(name, {}).values()", "()"),),
        (DURABLE,),
    ),
    Mutant(
        "restarted-head-forgets-what-may-have-been-given",
        "What a consumer that has gone may have been given stays marked when a head with its log restarts.",
        (
            Change(GroupSlice.recall, "kept.given_to", "None"),
            Change(GroupMemory._doubt, "if not each.holder:", "if False:"),
        ),
        (DURABLE,),
    ),
    Mutant(
        "mark-ends-with-the-epoch",
        "What may have been given is marked under the positions of a later epoch of the same log.",
        (Change(SliceSubscriber._log_goes_on, "before[0] == after[0]", "False"),),
        (DURABLE,),
    ),
    Mutant(
        "group-is-asked-for-by-its-slices-alone",
        "The head of a declared group asks its neighbours for the stream itself, whether or not slices are attached.",
        (Change(GroupTable.declare, "self.covers.ask(group.name, group.definition.filter)", "None"),),
        (DURABLE_CLUSTERS,),
    ),
    Mutant(
        "restarted-head-forgets-since-when-a-group-is-asked-for",
        "A head with its log has had all of a declared group since before it started.",
        (Change(GroupDeclarations._restore_own, "group.since = kept.since", "pass"),),
        (DURABLE_CLUSTERS,),
    ),
    Mutant(
        "join-that-was-late-is-believed",
        "A member that has given slices up while its GROUP_JOIN was on its way says so when it is answered.",
        (Change(AssignedSlices.on_joined, "self._released.values()", "()"),),
        (DURABLE, HEADS),
    ),
    Mutant(
        "cut-off-member-forgets-its-places",
        "A member that has stopped by itself says how far it had got.",
        (
            Change(
                AssignedSlices.lose_all,
                "self._released[owned.slice] = owned.place(is_released=True, was_cut_off=True), self._beats.number",
                "pass",
            ),
        ),
        (HEADS, FAULTS),
    ),
    Mutant(
        "release-is-said-once",
        "What was released is said again over a new link.",
        (Change(AssignedSlices.begin_again, "*(place for place, _ in self._released.values())", ""),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "wrong-stamps-are-kept",
        "The head gives each publication its stamp.",
        (Change(GroupStamps.stamped, "stampers[0].stamp(body.attributes, publisher, request.seq)", "0"),),
        (CALM,),
    ),
    Mutant(
        "slices-of-the-gone-stay-theirs",
        "The slices of a consumer that has gone go on with others.",
        (Change(ConsumerGroup._drop, "if each.holder == member.name:", "if False:"),),
        (FAULTS, HEADS),
    ),
    Mutant(
        "leaving-consumer-keeps-its-slices",
        "A consumer that leaves is asked for all of its slices.",
        (Change(membership.settle, "if c.is_leaving))", "if False))"),),
        (CALM,),
    ),
    Mutant(
        "taker-caches-from-now",
        "A taker caches from where its giver is, or what comes between is in neither cache.",
        (Change(CacheSessions.on_caching, "said.token, said.marks, each.given_to", "None, [], each.given_to"),),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "caches-are-merged-twice",
        "What both sides have cached counts once.",
        (
            Change(
                slice_cache.merged_caches,
                "[found[token] for token in sorted(found)]",
                "sorted(chain(giver, own), key=lambda each: each.token)",
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "caches-are-merged-in-no-order",
        "The merged cache is in the order of the log.",
        (
            Change(
                slice_cache.merged_caches,
                "for token in sorted(found)",
                "for token in sorted(found, reverse=True)",
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "merged-cache-is-not-seen",
        "What the giver had cached is not taken again from an edge.",
        (Change(SliceSubscriber.merge, "self.stream.cached(self.cache.items)", "None"),),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "giver-caches-with-an-item-in-hand",
        "A giver says that it caches once its application has finished what it has.",
        (
            Change(AssignedSlices.on_revoked, "if owned.handed:", "if owned.handed and not revoked.caches:"),
            Change(
                AssignedSlices.finished, "if owned.is_stopping and not owned.handed", "if False and not owned.handed"
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "cache-is-sent-without-what-waits",
        "A giver sends all that it has received and not given.",
        (Change(CachingSlices.send, "owned.cached_items()", "owned.cached_items()[1:]"),),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "taker-has-the-slice-before-the-cache",
        "A taker gives its application nothing before its giver's cache is there.",
        (
            Change(
                AssignedSlices.on_assigned,
                "self._caching.add(owned)",
                "(self._caching.add(owned), self._have(owned))",
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "late-cache-is-merged",
        "A slice whose session has ended goes on from the log, not with a cache that was not sent.",
        (
            Change(
                CacheSessions.merged,
                'session.step != "cache" or not released.is_cached or released.place.was_cut_off',
                "False",
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "taker-goes-on-behind-its-own-place",
        "A taker goes on behind the place of its giver.",
        (
            Change(
                SliceSubscriber.merge,
                "self.acked, self._marks = place.token,",
                "self.acked, self._marks = self.stream.token,",
            ),
        ),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "taker-keeps-a-session-that-is-over",
        "A taker forgets what it has cached when its session is over.",
        (Change(CacheSessions.cancel, "and session.epoch:", "and False:"),),
        (CACHES, CACHE_FAULTS),
    ),
    Mutant(
        "left-name-keeps-its-place",
        "The name that the giver has used keeps no place.",
        (
            Change(ConsumerGroup._pass_on, "self.end_place(name)", "None"),
            Change(ConsumerGroup._sweep, "self.end_place(name)", "None"),
        ),
        (CACHES, CACHE_FAULTS),
        partners=(NO_LEASE,),
        alone="a place that is left ends with its lease",
    ),
    Mutant(
        "lost-answer-is-passed-over",
        "A member of another cluster that misses an answer joins again.",
        (Change(GroupLinks.on_answer, "if answer.number == way.received + 1:", "if True:"),),
        (CLUSTERS,),
    ),
    Mutant(
        "lost-word-is-passed-over",
        "What a member of another cluster says is taken only if nothing before it is missing.",
        (Change(GroupLinks.on_asked, "asked.number != link.received + 1", "False"),),
        (CLUSTERS,),
    ),
    Mutant(
        "silent-head-is-waited-for",
        "A member that gets no answer from the head of its group is told so.",
        (Change(GroupLinks.expire, "way.waits_since is not None and", "False and"),),
        (CLUSTERS,),
    ),
    Mutant(
        "slice-attaches-anywhere",
        "A slice attaches to an edge of the head of its group.",
        (Change(EdgeFinder._head_of, "return subscriber.first_head", 'return ""'),),
        (CLUSTERS,),
    ),
    Mutant(
        "audit-leaves-the-giver-out",
        "What giver and taker have counted together is what was due across a move.",
        (Change(SliceAudit._take, "given.items - before.items + end.counted.items", "end.counted.items"),),
        (SESSIONS,),
    ),
    Mutant(
        "drained-for-ever",
        "A drained consumer that gets slices for want of another is one like any other again.",
        (Change(SliceSchedule._settle, "if all(member.is_emptied for member in staying):", "if False:"),),
        (SESSIONS,),
    ),
    Mutant(
        "answer-of-another-head-is-believed",
        "A member of another cluster is told what the head of its group says, and no other.",
        (Change(GroupLinks.on_answer, "way is None or way.head != head", "way is None"),),
        (CLUSTERS,),
    ),
    Mutant(
        "answer-to-an-earlier-life-is-believed",
        "What was said to an earlier life of a member's head is not for a member of this one.",
        (Change(GroupLinks.on_answer, "if answer.epoch == self.host.epoch else None", ""),),
        (CLUSTERS,),
    ),
    Mutant(
        "gone-elsewhere-is-called-stayed",
        "A slice that has gone to a third consumer has not stayed.",
        (Change(SliceMoves._decide, "DETACHED", "STAYED"),),
        (SESSIONS,),
    ),
    Mutant(
        "told-giver-is-decided-early",
        "A giver that was told to let go is waited for, though its taker has gone.",
        (Change(SliceMoves._look, "and not move.waits_for(each)", ""),),
        (SESSIONS,),
    ),
    Mutant(
        "stopped-drain-stays-drained",
        "A consumer whose drain is stopped before it begins is one like any other.",
        (Change(SliceMoves.abort, "group.schedule.withdraw(tuple(move.moves()))", "None"),),
        (SESSIONS,),
    ),
    Mutant(
        "late-command-is-carried-out",
        "A command that comes after its stop moves nothing.",
        (Change(SliceMoves.abort, "self._remember(self._failed(session_id, why))", "None"),),
        (SESSIONS,),
    ),
    Mutant(
        "quiet-group-is-announced",
        "A group with next to no work is left as it is.",
        (Change(SliceCommands.announce, "< QUIET_LOAD", "< 0.0"),),
        (SESSIONS,),
    ),
    Mutant(
        "whole-restart-is-not-learned",
        "Slices that began as those of a new group begin again when a member says that the head has restarted.",
        (Change(GroupRequests.on_join, "known.memory.learn_of_restart()", "pass"),),
        (HEADS,),
    ),
    Mutant(
        "earlier-member-counts-as-the-last",
        "A slice that is not claimed after a restart may have been with a member that has died since.",
        (Change(GroupMemory._doubt, "if not each.holder:", "if False:"),),
        (HEADS,),
    ),
    Mutant(
        "older-claim-is-kept",
        "Of two members that claim a slice after a restart the one with the newer epoch has it.",
        (Change(ConsumerGroup._take_places, "and place.epoch > each.epoch:", "and not each.holder:"),),
        (HEADS,),
    ),
    Mutant(
        "cover-begins-with-the-attachment",
        "A head has had all publications of a group since it knows the group, whether or not slices were attached.",
        (Change(SliceAttachments.covered_since, "else found[0].since", "else None"),),
        (HEADS,),
    ),
]
