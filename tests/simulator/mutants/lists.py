"""The list of subscriptions, and RESUME: docs/handover.md, sections 2, 3 and 6."""

from __future__ import annotations

from tests.simulator.mutants.partners import FORGETFUL, NO_DEADLINE, NO_DETACH, NO_LEASE, NO_PART, NO_SWAP_AT_CUT
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
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.protocol import messages as msg

LISTS = ("walled-target", "far", "far-bumpy", "sessions-local", "sessions-across")

MUTANTS = [
    Mutant(
        "attach-without-list",
        "The whole list is in ATTACH.",
        (
            Change(
                ClientSubscriber.attach_item,
                "list(self.subscriptions.values())",
                "list(self.subscriptions.values())[:1]",
            ),
        ),
        LISTS,
    ),
    Mutant(
        "resume-without-list",
        "The whole list is in RESUME.",
        (
            Change(
                ClientSubscriber.resume_record,
                "list(self.subscriptions.values())",
                "list(self.subscriptions.values())[:1]",
            ),
        ),
        LISTS,
    ),
    Mutant(
        "change-only-to-source",
        "A change of the list goes to the source and to the target.",
        (Change(SubscriptionList.send_changes, "self._owner.attachments()", "[self._owner.current]"),),
        LISTS,
        partners=(Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        alone="a change counts when the target has it, too",
    ),
    Mutant(
        "counts-without-target",
        "A change counts when the target has it, too.",
        (Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        LISTS,
    ),
    Mutant(
        "counts-when-held",
        "HELD is no acknowledgement.",
        (Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "max(acked, self.held)"),),
        LISTS,
    ),
    Mutant(
        "held-counts-after-end",
        "After END only the target's acknowledgement counts, and HELD is none.",
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
        "dark-list-stands-still",
        "The target takes changes of a list that is not matched yet.",
        (Change(HandoverTarget.on_subs, "if self._take_all(attachment, subs.adds):", "if True:"),),
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
        "An owner entry that is deleted leaves its epoch.",
        (Change(OwnershipTable.forget, "PastEpoch(gone.epoch, ", "PastEpoch((0, 0), "),),
        ("overtaken", "vanish", "far-bumpy"),
        partners=(NO_LEASE,),
        alone="what takes it up again is closed, and ends with its lease",
    ),
    Mutant(
        "resume-anywhere",
        "Whoever has a token asks for an edge of the head that it names.",
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
        "A RESUME goes on from its token.",
        (Change(ownership.replay_start, "if token is None:", "if True:"),),
        ("calm-replay", "sessions-edge-crash", "churn"),
    ),
    Mutant(
        "open-session-outlives-resume",
        "RESUME voids an open session.",
        (
            Change(
                Coordinator.resumed, 'self.refuse(session, [subscriber], "returned", "has resumed meanwhile")', "pass"
            ),
        ),
        ("reborn", "vanish", "churn"),
        partners=(NO_SWAP_AT_CUT,),
        alone="the cut compares the owner",
    ),
    Mutant(
        "cut-session-outlives-resume",
        "RESUME closes a cut session.",
        (Change(Coordinator.resumed, "elif member.state == CUT or member.is_draining:", "elif False:"),),
        ("calm-replay", "sessions-replay", "sessions-local"),
        partners=(NO_PART,),
        alone="after `drain_seconds` the session ends in any case",
    ),
    Mutant(
        "returned-target-is-not-told",
        "A member that returns across clusters is taken off the target.",
        (
            Change(
                Coordinator.resumed,
                "self._to_target(session, msg.Abort(session.id, session.items([subscriber])))",
                "pass",
            ),
        ),
        ("cut-source", "edge-crash-across"),
        partners=(NO_LEASE,),
        alone="what it has left behind at the target ends with its lease",
    ),
    Mutant(
        "guest-outlives-resume",
        "A guest that resumes is cut no more.",
        (Change(RemoteMembers.resumed, "self.drop(session, subscriber)", "pass"),),
        ("reborn-across", "far-bumpy", "vanish"),
        partners=(Change(RemoteMembers._fresh, "if newest(item.subscriber) <= item.epoch}", "}"),),
        alone="the head of the target sees by the epoch that it has resumed since",
    ),
    Mutant(
        "old-edge-is-not-released",
        "At RESUME the old edge gets RELEASE.",
        (Change(Membership.release, "if (outbox := self.host.outboxes.by_key.get(key)) is not None:", "if False:"),),
        ("churn", "sessions-local"),
        partners=(
            NO_DETACH,
            NO_LEASE,
        ),
        alone="the subscriber detaches, and what is closed ends with its lease",
    ),
    Mutant(
        "older-resume-is-not-released",
        "Who comes with an older epoch gets RELEASE.",
        (
            Change(
                Membership.on_resume,
                "host.outboxes.send(outbox, msg.Release(x, (newest[0], newest[1] + 1)))\n        return",
                "return",
            ),
        ),
        ("overtaken", "vanish"),
        partners=(NO_LEASE,),
        alone="what is closed ends with its lease",
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
        "RESUMING is in the cover, and not matched: what the stream has before RESUMED comes from the log.",
        (
            Change(
                ClientRequests.on_resume,
                "attachment = self.attachments.open(link, resume)",
                "attachment = self.attachments.open(link, resume)\n    attachment.out = attachment.queue",
            ),
        ),
        ("busy", "churn", "sessions-edge-crash"),
        partners=(FORGETFUL,),
        alone="what comes twice is below the watermark",
    ),
    Mutant(
        "lost-log-is-silent",
        "A token older than the log's oldest entry is a gap.",
        (Change(ownership.replay_start, "if at + 1 < log.first:", "if False:"),),
        ("small-vanish", "lag-local", "small-log"),
        partners=(Change(log_reader.answer_fetch, "if at + 1 < log.first:", "if False:"),),
        alone="what is fetched from the log begins with the same gap",
    ),
    Mutant(
        "ghost-cover-goes",
        "A dead edge's cover stays while an owner entry names it.",
        (
            Change(Membership.drop_ghosts, "if key not in owned", "if True"),
            Change(Membership.expire_ghosts, "self.drop_ghosts()", "self.drop_ghosts()"),
        ),
        ("sessions-edge-crash", "edge-crash-across", "edge-crash-replay", "churn"),
    ),
    Mutant(
        "sessions-outlive-their-edge",
        "The open sessions of a dead edge abort.",
        (Change(Coordinator.edge_lost, 'self.refuse(session, session.of(*OPEN), why=f"{edge} was lost")', "pass"),),
        ("slow-mediator", "sessions-edge-crash", "edge-crash-across"),
        partners=(
            NO_DEADLINE,
            NO_PART,
        ),
        alone="the head has a deadline as well",
    ),
    Mutant(
        "suback-before-resumed",
        "Nothing is promised before RESUMED.",
        (Change(PendingSubacks.acknowledged, "and wait.attachment.state is not AttachmentState.RESUMING", ""),),
        ("busy", "churn"),
        partners=(Detour(msg.ResumedDown, 0.05),),
        alone="RESUMED is said first, in the same stream",
    ),
    Mutant(
        "idle-tokens-age",
        "The head's position is sent to idle subscribers, too.",
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
        "progress-says-too-much",
        "PROGRESS says nothing of attachments that are behind.",
        (Change(AttachmentTable.send_progress, "link_attachments.lagging()", "[]"),),
        ("slices", "churn", "sessions-hold", "sessions-lag", "sessions-replay"),
    ),
    Mutant(
        "progress-of-link-is-not-counted",
        "PROGRESS is said behind what it speaks of.",
        (
            Change(EdgeRecords._on_progress, "and attachment.id not in behind", ""),
            Change(AttachmentTable.send_progress, "and link_attachments.stuck_since is None", ""),
        ),
        ("slices", "sessions-hold", "sessions-lag", "churn"),
    ),
    Mutant(
        "lapse-is-silent",
        "An owner entry knows since when its cover holds; a token from before has lapsed.",
        (Change(ownership.replay_start, "(low_epoch if here else 0, at) < since", "False"),),
        ("stopped", "lease-end", "vanish"),
    ),
    Mutant(
        "lapse-voids-nothing",
        "What was acknowledged before a lapse is void until it is acknowledged anew.",
        (Change(ClientSubscriber.on_resumed, "if resumed.lapsed and self.subscription_list.void():", "if False:"),),
        ("stopped", "lease-end", "vanish", "churn"),
    ),
    Mutant(
        "idle-log-hides-a-lapse",
        "Without an owner entry a token has lapsed always, even if nothing has been logged since.",
        (Change(ownership.OwnerEntry.has_lapsed, "self.is_again and token == (head, *self.since)", "False"),),
        ("stopped",),
    ),
    Mutant(
        "replaced-record-stays-live",
        "Who resumes at the same edge replaces his record there.",
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
        "From RESUMED on the stream serves, up to there the log.",
        (Change(HeadMessages._on_resumed, "if resumed.start >= resumed.position:", "if True:"),),
        ("churn", "sessions-local", "sessions-replay"),
    ),
    Mutant(
        "watermarks-after-resume",
        "After RESUME the watermarks stand behind the token.",
        (FORGETFUL,),
        ("churn", "sessions-across", "sessions-replay", "far-bumpy"),
        partners=(Change(SubscriberStream.on_progress, "if position > self.position:", "if False:"),),
        alone="the token is exact within a cluster",
    ),
]
