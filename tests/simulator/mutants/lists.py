"""Lists of subscriptions, and RESUME: docs/handover.md, sections 2, 3 and 6."""

from __future__ import annotations

from tests.simulator.mutants.partners import (
    FORGETFUL,
    NO_DEADLINE,
    NO_DETACH,
    NO_FORCE_DETACH,
    NO_LEASE,
    NO_SWAP_AT_CUT,
)
from tests.simulator.mutants.rewriting import Change, Detour, Mutant

from plimsoll.core.client.attachment import ClientHandover
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.edge_records import EdgeRecords
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.client.subscriber import ClientSubscriber
from plimsoll.core.client.subscription_list import SubscriptionList
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.head_messages import HeadMessages
from plimsoll.core.edge.pending_subacks import PendingSubacks
from plimsoll.core.head import log_reader, ownership
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.head.held_places import HeldPlaces
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.protocol import messages as msg

LISTS = ("walled-target", "far", "far-bumpy", "sessions-local", "sessions-across")

MUTANTS = [
    Mutant(
        "attach-without-list",
        "ATTACH carries the whole list of subscriptions.",
        (
            Change(
                ClientSubscriber.attach_item,
                "list(self.subscription_list.items.values())",
                "list(self.subscription_list.items.values())[:1]",
            ),
        ),
        LISTS,
    ),
    Mutant(
        "resume-without-list",
        "RESUME carries the whole list of subscriptions.",
        (
            Change(
                ClientSubscriber.resume_record,
                "list(self.subscription_list.items.values())",
                "list(self.subscription_list.items.values())[:1]",
            ),
        ),
        LISTS,
    ),
    Mutant(
        "change-only-to-source",
        "A change of the list is sent to the source and to the target.",
        (Change(SubscriptionList.send_changes, "self._owner.attachments()", "[self._owner.current]"),),
        LISTS,
        partners=(Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        alone="a change counts only when the target has it as well",
    ),
    Mutant(
        "counts-without-target",
        "A change of the list counts only when the target has it as well.",
        (Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        LISTS,
    ),
    Mutant(
        "counts-when-held",
        "HELD does not acknowledge a subscription.",
        (Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "max(acked, self.held)"),),
        LISTS,
    ),
    Mutant(
        "held-counts-after-end",
        "After END only the target's acknowledgement counts, and HELD is not one.",
        (
            Change(
                ClientHandovers._take_over,
                "subscriber.handover = None\n        self._ports.release",
                "subscriber.handover, handover.next.acked = None, handover.held\n        self._ports.release",
            ),
        ),
        ("far-acks", "busy-across", "far", "walled-target"),
    ),
    Mutant(
        "standby-list-is-not-updated",
        "The target accepts changes of a list on standby.",
        (
            Change(
                HandoverTarget.on_subs,
                "yield from self.standby_list.change(attachment, subs.adds, subs.removes, subs.version)",
                "yield 1",
            ),
        ),
        LISTS,
    ),
    Mutant(
        "epochs-by-number-alone",
        "Owner epochs are compared by incarnation first.",
        (Change(Membership.on_resume, "if newest >= resume.epoch:", "if newest[1] >= resume.epoch[1]:"),),
        ("vanish", "clients", "sessions-everything"),
    ),
    Mutant(
        "gone-epoch-is-forgotten",
        "A deleted owner entry leaves its epoch behind.",
        (Change(OwnershipTable.forget, "PastEpoch(gone.epoch, ", "PastEpoch((0, 0), "),),
        ("overtaken", "vanish", "far-bumpy"),
        partners=(NO_LEASE,),
        alone="the attachment that reuses the epoch is closed, and ends with its lease",
    ),
    Mutant(
        "resume-anywhere",
        "A subscriber with a token asks for an edge of the head that the token names.",
        (
            Change(
                EdgeFinder._head_of,
                'return subscriber.stream.origin[0] if self._insists(subscriber) else ""',
                'return ""',
            ),
        ),
        ("steady-across", "sessions-across", "edge-crash-across"),
    ),
    Mutant(
        "resume-without-token",
        "A RESUME continues from its token.",
        (Change(ownership.replay_start, "if token is None:", "if True:"),),
        ("calm-replay", "sessions-edge-crash", "churn"),
    ),
    Mutant(
        "open-session-outlives-resume",
        "RESUME voids an open session.",
        (
            Change(
                Coordinator.resumed,
                'self.table.undo(session, [subscriber], "returned", "has resumed meanwhile")',
                "pass",
            ),
        ),
        ("reborn", "vanish", "churn"),
        partners=(NO_SWAP_AT_CUT,),
        alone="the cut compares the owner",
    ),
    Mutant(
        "cut-session-outlives-resume",
        "RESUME ends a cut session.",
        (Change(Coordinator.resumed, "elif member.state == CUT or member.is_draining:", "elif False:"),),
        ("calm-replay", "sessions-replay", "sessions-local"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` the session ends in any case",
    ),
    Mutant(
        "returned-target-is-not-aborted",
        "A member that returns across clusters is removed from the target.",
        (
            Change(
                Coordinator.resumed,
                "self.table.to_target(session, msg.Abort(session.id, session.items([subscriber])))",
                "pass",
            ),
        ),
        ("cut-source", "edge-crash-across"),
        partners=(NO_LEASE,),
        alone="what it leaves at the target ends with its lease",
    ),
    Mutant(
        "remote-member-outlives-resume",
        "A remote member that resumes is not cut any more.",
        (Change(RemoteMembers.resumed, "self.drop(session, subscriber)", "pass"),),
        ("reborn-across", "far-bumpy", "vanish"),
        partners=(Change(RemoteMembers._fresh, "if newest(item.subscriber) <= item.epoch}", "}"),),
        alone="the head of the target sees by the owner epoch that it has resumed since",
    ),
    Mutant(
        "old-edge-is-not-released",
        "At RESUME the head sends RELEASE to the old edge.",
        (
            Change(
                HeldPlaces._release, "if (outbox := self.host.outboxes.by_key.get(old.key)) is not None:", "if False:"
            ),
        ),
        ("churn", "sessions-local"),
        partners=(
            NO_DETACH,
            NO_LEASE,
        ),
        alone="the subscriber detaches, and a closed attachment ends with its lease",
    ),
    Mutant(
        "older-resume-is-not-released",
        "A RESUME with an older owner epoch is answered with RELEASE.",
        (
            Change(
                Membership.on_resume,
                "host.outboxes.send(outbox, msg.Release(x, (newest[0], newest[1] + 1), used=used))\n        return",
                "return",
            ),
        ),
        ("overtaken", "vanish"),
        partners=(NO_LEASE,),
        alone="a closed attachment ends with its lease",
    ),
    Mutant(
        "resume-is-not-covered",
        "RESUME applies the cover in the step that swaps the owner.",
        (
            Change(
                Membership.on_resume,
                "host.covers.apply(outbox, resume.cover)",
                "late = self.__dict__.setdefault('late', [])\n"
                "    late.append((outbox, resume.cover))\n"
                "    for at, cover in late[:-1]:\n"
                "        host.covers.apply(at, cover) if at.key in host.outboxes.by_key else None\n"
                "    del late[:-1]",
            ),
        ),
        ("churn", "sessions-local"),
    ),
    Mutant(
        "resuming-is-matched",
        "A RESUMING attachment is in the cover but not matched: what precedes RESUMED comes from the log.",
        (
            Change(
                ClientRequests.on_resume,
                "attachment = self.attachments.open(link, resume)",
                "attachment = self.attachments.open(link, resume)\n    attachment.out = attachment.queue",
            ),
        ),
        ("busy", "churn", "sessions-edge-crash"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "lost-log-is-silent",
        "A token before the oldest entry of the log is answered with a gap.",
        (Change(ownership.replay_start, "if at + 1 < log.first:", "if False:"),),
        ("small-vanish", "lag-local", "small-log"),
        partners=(Change(log_reader.answer_fetch, "if at + 1 < log.first:", "if False:"),),
        alone="reading the log reports the same gap",
    ),
    Mutant(
        "ghost-cover-goes",
        "The cover of a dead edge stays while an owner entry names the edge.",
        (
            Change(Membership.drop_ghosts, "if key not in owned", "if True"),
            Change(Membership.expire, "self.drop_ghosts()", "self.drop_ghosts()"),
        ),
        ("sessions-edge-crash", "edge-crash-across", "edge-crash-replay", "churn"),
    ),
    Mutant(
        "sessions-outlive-their-edge",
        "The open sessions of a dead edge are aborted.",
        (
            Change(
                Coordinator.edge_lost,
                'self.table.refuse(session, session.of(*OPEN, *waits), f"{code}{edge} was lost")',
                "pass",
            ),
        ),
        ("slow-mediator", "sessions-edge-crash", "edge-crash-across"),
        partners=(
            NO_DEADLINE,
            NO_FORCE_DETACH,
        ),
        alone="the head has a deadline as well",
    ),
    Mutant(
        "suback-before-resumed",
        "No SUBACK is sent before RESUMED.",
        (Change(PendingSubacks.acknowledged, "and wait.attachment.state is not AttachmentState.RESUMING", ""),),
        ("busy", "churn"),
        partners=(Detour(msg.ResumedDown, 0.05),),
        alone="RESUMED precedes it in the same stream",
    ),
    Mutant(
        "idle-tokens-age",
        "PROGRESS also reaches idle subscribers.",
        (
            Change(
                AttachmentTable.send_progress,
                "self.host.say(link_attachments.link, msg.Progress(self.host.position, link_attachments.lagging()))",
                "pass",
            ),
        ),
        ("idle",),
    ),
    Mutant(
        "progress-includes-those-behind",
        "PROGRESS excludes attachments that are behind.",
        (Change(AttachmentTable.send_progress, "link_attachments.lagging()", "[]"),),
        ("slices", "churn", "sessions-hold", "sessions-lag", "sessions-replay"),
    ),
    Mutant(
        "progress-of-link-is-not-counted",
        "PROGRESS follows the deliveries that it covers.",
        (
            Change(EdgeRecords._on_progress, "and attachment.id not in behind", ""),
            Change(AttachmentTable.send_progress, "and link_attachments.stuck_since is None", ""),
        ),
        ("slices", "sessions-hold", "sessions-lag", "churn"),
    ),
    Mutant(
        "lapse-is-silent",
        "An owner entry records since when its cover holds; a token from before has lapsed.",
        (Change(ownership.replay_start, "(low_epoch if here else 0, at) < since", "False"),),
        ("stopped", "lease-end", "vanish"),
    ),
    Mutant(
        "lapse-voids-nothing",
        "Subscriptions that were acknowledged before a lapse are void until they are acknowledged again.",
        (Change(ClientSubscriber.on_resumed, "if resumed.lapsed and self.subscription_list.void():", "if False:"),),
        ("stopped", "lease-end", "vanish", "churn"),
    ),
    Mutant(
        "idle-log-hides-a-lapse",
        "Without an owner entry a token has always lapsed, even if nothing has been logged since.",
        (Change(ownership.OwnerEntry.has_lapsed, "self.is_again and token == (head, *self.since)", "False"),),
        ("stopped",),
    ),
    Mutant(
        "replaced-attachment-stays-live",
        "A subscriber that resumes at the same edge replaces its attachment there.",
        (
            Change(
                AttachmentTable.open,
                "self.by_subscriber[asked.subscriber] = self.by_link",
                "self.by_subscriber.setdefault(asked.subscriber, attachment)\n    self.by_link",
            ),
        ),
        ("vanish", "clients", "churn"),
    ),
    Mutant(
        "resume-behind-the-stream",
        "From RESUMED on the stream serves; up to it, the log.",
        (Change(HeadMessages._on_resumed, "if resumed.start >= resumed.position:", "if True:"),),
        ("churn", "sessions-local", "sessions-replay"),
    ),
    Mutant(
        "watermarks-after-resume",
        "After RESUME the watermarks may be ahead of the token.",
        (FORGETFUL,),
        ("churn", "sessions-across", "sessions-replay", "far-bumpy"),
        partners=(Change(SubscriberStream.on_progress, "if position > self.position:", "if False:"),),
        alone="the token is exact within a cluster",
    ),
]
