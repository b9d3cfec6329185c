"""The attachments of a subscriber at its edges, and the cut: docs/handover.md, sections 3 and 4."""

from __future__ import annotations

from tests.simulator.mutants.partners import ANY_STATE, FORGETFUL, NO_DEADLINE, NO_FORCE_DETACH, NO_LEASE, NO_LEAVE
from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.client.attachment import ClientHandover
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.subscribers_at_edges import SubscribersAtEdges
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.handover.standby_list import StandbyList
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.cut_decision import CutDecision
from plimsoll.core.head.handover.remote_members import RemoteMembers

LEAVES_AT_CUT = Change(HandoverSource.on_cut, "attachment.keeps_place and (cut.across or cut.keeps_place)", "False")

MUTANTS = [
    Mutant(
        "matched-while-cutting",
        "A target in CUTTING is in the cover but not matched; from INSTALLED on it receives what follows.",
        (
            Change(
                HandoverTarget.on_install,
                "attachment.state, attachment.keeps_place = AttachmentState.CUTTING, True",
                "attachment.state, attachment.keeps_place = AttachmentState.CUTTING, True\n"
                "        attachment.out = attachment.queue",
            ),
        ),
        ("calm-drain", "sessions-local", "far"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "target-does-not-hold",
        "A target in BUFFERING is matched, and keeps its publications.",
        (
            Change(
                DeliveryQueues.route,
                "attachment.out = attachment.queue\n        self.put_aside(attachment)\n    elif attachment.state",
                "attachment.out = self.void\n    elif attachment.state",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "live-before-go",
        "Before GO the target sends nothing to the subscriber.",
        (Change(HandoverTarget.on_installed, "if attachment.has_go:", "if True:"),),
        ("sessions-hold", "sessions-lag", "sessions-local", "calm-drain"),
        partners=(ANY_STATE,),
        alone="the client accepts nothing from an attachment that does not serve it yet",
    ),
    Mutant(
        "client-accepts-target-before-end",
        "The subscriber accepts nothing from the target before END.",
        (Change(HandoverTarget.on_installed, "if attachment.has_go:", "if True:"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "go-is-forgotten",
        "A GO that arrives before INSTALLED is remembered.",
        (Change(HandoverTarget.on_go, "attachment.has_go = attachment.state is AttachmentState.CUTTING", "pass"),),
        ("sessions-local", "far", "sessions-slow", "far-bumpy", "sessions-everything", "sessions-across"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` FORCE_DETACH closes the attachment, and the subscriber resumes from the log",
    ),
    Mutant(
        "source-leaves-cover-at-cut",
        "Across clusters the source stays in the cover from the cut to RELEASE.",
        (LEAVES_AT_CUT,),
        ("lost-source", "far-bumpy", "sessions-across"),
    ),
    Mutant(
        "no-release-at-done",
        "RELEASE follows DONE.",
        (
            Change(
                Coordinator._arrived,
                "self.table.to_source(session, msg.Release(x, (incarnation, n + 1)))",
                "pass",
            ),
        ),
        ("sessions-across", "calm-across"),
        partners=(NO_LEASE,),
        alone="the attachment at the source has a lease as well",
    ),
    Mutant(
        "cutting-attachment-is-dropped",
        "From CUTTING on an attachment outlasts its link, until RELEASE, ABORT or the end of its lease.",
        (Change(HandoverTarget.on_install, "State.CUTTING, True", "State.CUTTING, False"),),
        ("edge-crash-across", "sessions-across", "far-bumpy", "churn", "sessions-everything"),
    ),
    Mutant(
        "serving-attachment-is-dropped",
        "A serving attachment outlasts its link, until RELEASE or the end of its lease.",
        (Change(AttachmentTable.close, "if not attachment.keeps_place:", "if True:"),),
        ("churn", "sessions-across", "far-bumpy"),
    ),
    Mutant(
        "standby-attachment-stays",
        "A STANDBY attachment ends with its link.",
        (
            Change(
                HandoverTarget._open,
                "attachment.incoming_session, attachment.keeps_place = AttachmentState.STANDBY, session, False",
                "attachment.incoming_session, attachment.keeps_place = AttachmentState.STANDBY, session, True",
            ),
        ),
        ("vanish", "churn", "reborn"),
        partners=(
            NO_LEASE,
            Change(HandoverTarget.on_abort, "gone.append(self.attachments.by_subscriber[item.subscriber])", "pass"),
        ),
        alone="ABORT ends it as well, and a closed attachment ends with its lease",
    ),
    Mutant(
        "matched-on-standby",
        "What an attachment matches before INSTALLED goes nowhere: its source delivers it.",
        (
            Change(
                DeliveryQueues.route,
                "attachment.out = self.silent if attachment.state in SILENT else self.void",
                "attachment.out = attachment.queue if attachment.state in SILENT else self.void",
            ),
        ),
        ("calm-drain", "sessions-local", "far"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "standby-is-not-withdrawn",
        "However an attachment on standby ends, nothing of its list stays in the cover.",
        (Change(AttachmentTable.close, "self.drop([attachment])", "del self.by_subscriber[attachment.subscriber]"),),
        ("churn", "vanish", "sessions-local"),
    ),
    Mutant(
        "list-is-cut-before-it-is-whole",
        "INSTALL takes only attachments whose whole list has been taken.",
        (Change(HandoverTarget.on_install, " and by_subscriber[x].is_held", ""),),
        ("sessions-local", "churn"),
    ),
    Mutant(
        "cut-request-only-for-changes",
        "CUT_REQUEST is sent and numbered even if the covering set does not change.",
        (
            Change(
                HandoverTarget.on_install,
                "self.host.up(msg.CutRequest(session, cover, items))",
                "if cover.adds or cover.removes:\n        self.host.up(msg.CutRequest(session, cover, items))",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_DEADLINE,),
        alone="then no member is cut, and the deadline of the head ends the session",
    ),
    Mutant(
        "next-cover-omits-cutting-members",
        "While a cut is under way every cover of the target includes all its attachments but those in STANDBY.",
        (
            Change(
                AttachmentTable._install,
                "return self.subscription_table.step(",
                "late = [a for a in self.by_subscriber.values()\n"
                "            if a.state is AttachmentState.CUTTING and a not in taken]\n"
                "    removes = [*removes, *(n for a in late for _, n in a.subscriptions.values() if a.is_covered)]\n"
                "    for a in late:\n"
                "        a.is_covered = False\n"
                "    return self.subscription_table.step(",
            ),
        ),
        ("busy", "sessions-batch", "far"),
    ),
    Mutant(
        "owner-is-not-swapped",
        "The step that sends INSTALLED swaps the owner.",
        (
            Change(
                CutDecision.cut_members,
                "self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))",
                "None",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "standby-is-not-announced",
        "What a subscriber needs is in the cover before INSTALLED.",
        (Change(StandbyList._announce, "self.host.up(cover)", "del cover"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "standby-is-announced-late",
        "INSTALLED names the position from which the cover holds, so all of a list is announced ahead of CUT_REQUEST.",
        (
            Change(StandbyList._announce, "self.host.up(cover)", "self.__dict__.setdefault('late', []).append(cover)"),
            Change(
                HandoverTarget.expire,
                "for x, slot in self.slots.pop_expired(self.host.now):",
                "for cover in self.standby_list.__dict__.pop('late', []):\n        self.host.up(cover)\n"
                "    for x, slot in self.slots.pop_expired(self.host.now):",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "no-end",
        "At CUT the source sends END.",
        (
            Change(
                HandoverSource.end,
                "if not self.attachments.queues.end(attachment, partial(self._end, session, token, [attachment.id])):",
                "attachment.state = AttachmentState.ENDING\n        if False:",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` FORCE_DETACH closes the attachments, and the subscriber resumes from the log",
    ),
    Mutant(
        "no-go",
        "At END the subscriber sends GO.",
        (
            Change(
                ClientHandovers._go,
                "self._client.say(port.link, msg.Go(session, part))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` FORCE_DETACH closes the attachment, and the subscriber resumes from the log",
    ),
    Mutant(
        "source-is-not-left",
        "At END the subscriber detaches from the source.",
        (Change(ClientHandovers.on_end, "self._ports.say_detach(*ended)", "pass"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "hold-is-not-flushed",
        "At GO the buffered publications are delivered first.",
        (
            Change(
                HandoverTarget._go_live,
                "self.attachments.queues.live(attachment)",
                "attachment.queue.clear()\n    attachment.queue_bytes = attachment.counted = 0\n"
                "    self.attachments.queues.live(attachment)",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "live-ahead-of-hold",
        "At GO live publications follow the buffered ones.",
        (
            Change(
                DeliveryQueues.route,
                "elif link_attachments.behind or attachment.paused or attachment.queue or attachment.dropped:",
                "elif link_attachments.behind or attachment.paused:",
            ),
        ),
        ("sessions-hold", "sessions-local", "sessions-batch", "sessions-lag"),
    ),
    Mutant(
        "no-done",
        "At GO the target sends DONE.",
        (
            Change(
                HandoverTarget._go_live,
                "self.reports.moved(attachment.incoming_session, attachment.subscriber)",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "done-is-not-forwarded",
        "The head of the target forwards DONE to the coordinator.",
        (
            Change(
                RemoteMembers.on_done,
                "self.heads.send(head, msg.Done(done.session, members, done.edge, checks))",
                "pass",
            ),
        ),
        ("calm-across", "sessions-across"),
    ),
    Mutant(
        "resume-is-no-done",
        "Across clusters a RESUME that names the session counts as the DONE.",
        (
            Change(
                RemoteMembers.resumed, "self.heads.send(member.coordinator, msg.Done(session, [subscriber]))", "pass"
            ),
        ),
        ("long-hold-across", "lost-target"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` the session ends in any case",
    ),
    Mutant(
        "end-without-token",
        "END carries the token from which the target's stream continues.",
        (
            Change(
                ClientHandovers._take_over,
                "subscriber.take_over(handover.next, end.token)",
                "subscriber.take_over(handover.next, subscriber.token)",
            ),
        ),
        ("steady-across", "sessions-across", "far-bumpy", "edge-crash-across"),
    ),
    Mutant(
        "end-without-token-or-target",
        "A subscriber that has lost its target resumes at END from the token of the cut.",
        (Change(ClientHandovers._take_over, "subscriber.stream.set_token(end.token)", "pass"),),
        ("lost-target", "sessions-hold", "far-bumpy"),
        partners=(LEAVES_AT_CUT,),
        alone="then it resumes at the head of the source, whose cover it is still in",
    ),
    Mutant(
        "cut-loses-the-queue",
        "Everything before CUT reaches the subscriber ahead of END, from its queue or from the log.",
        (
            Change(
                HandoverSource.on_cut,
                "if attachment.state is AttachmentState.LIVE or attachment.position >= self.host.position:",
                "if True:",
            ),
        ),
        ("slow-cut", "slices"),
    ),
    Mutant(
        "drains-beyond-the-cut",
        "Nothing after CUT comes from the source: its reads of the log end at the cut.",
        (
            Change(
                DeliveryQueues._emptied,
                "if attachment.pending_end is None or attachment.position < attachment.pending_end.position:",
                "if attachment.pending_end is None or attachment.position < self.host.position:",
            ),
        ),
        ("slow-cut", "slices"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "moves-members-behind",
        "Only a member that is attached at the source, LIVE and in the epoch of START_MOVE is moved.",
        (Change(HandoverSource.on_start_move, "or attachment.state is not AttachmentState.LIVE", ""),),
        ("slow-cut", "slices", "sessions-hold"),
        harmless="a member that is behind is cut all the same, and drained for longer",
    ),
    Mutant(
        "cuts-unattached-members",
        "Only a member that has attached at the target is cut.",
        (
            Change(Coordinator.cut, 'session.of("attached")', 'session.of("attached", "preparing")'),
            Change(
                Coordinator.cut,
                'self.table.refuse(session, session.of("preparing"), "was not attached at the target in time")',
                "pass",
            ),
            Change(
                HandoverTarget.on_install,
                "missing = [x for x in install.members if x not in held]",
                "missing = []",
            ),
        ),
        ("sessions-local", "sessions-drain-deadline", "sessions-calm"),
        partners=(NO_DEADLINE,),
        alone="the target refuses members that it does not have, and the deadline of the head ends the rest",
    ),
    Mutant(
        "attaches-without-a-slot",
        "An ATTACH without a slot is refused.",
        (
            Change(
                HandoverTarget._refusal,
                "if slot is None or slot.session != session or slot.replay or item",
                "if item",
            ),
        ),
        ("sessions-drain-deadline", "sessions-local", "churn", "stale-commands"),
        partners=(NO_LEAVE,),
        alone="the subscriber leaves the target at STAY",
    ),
    Mutant(
        "refused-in-silence",
        "A refused ATTACH is answered.",
        (
            Change(
                HandoverTarget._open,
                "self.host.say(link, msg.AttachmentClosed(item.attachment, code, REFUSALS[code]))",
                "pass",
            ),
        ),
        ("sessions-drain-deadline", "sessions-calm", "sessions-local", "stale-commands"),
        partners=(
            Change(
                HandoverSource.on_abort,
                "self.host.say(attachment.link, msg.Stay(attachment.id, abort.session))",
                "pass",
            ),
        ),
        harmless="the head is notified as well, and sends STAY to the subscriber",
    ),
    Mutant(
        "stay-is-not-sent",
        "A member that stays receives STAY.",
        (
            Change(
                HandoverSource.on_abort,
                "self.host.say(attachment.link, msg.Stay(attachment.id, abort.session))",
                "pass",
            ),
        ),
        ("sessions-calm", "sessions-local", "stale-commands"),
    ),
    Mutant(
        "undone-attachment-stays",
        "ABORT ends attachments at the target that have not been cut.",
        (Change(HandoverTarget.on_abort, "gone.append(self.attachments.by_subscriber[item.subscriber])", "pass"),),
        ("sessions-calm", "sessions-local", "sessions-across"),
        partners=(NO_LEAVE,),
        alone="the subscriber detaches from the target at STAY",
    ),
    Mutant(
        "target-is-not-left",
        "A subscriber that loses its serving edge leaves the target as well.",
        (
            Change(
                SubscribersAtEdges.detach,
                "self._client.handovers.leave(subscriber, withdraw=withdraw)",
                "subscriber.handover = None",
            ),
        ),
        ("slow-mediator", "churn", "sessions-edge-crash"),
        partners=(
            Change(HandoverTarget.on_abort, "gone.append(self.attachments.by_subscriber[item.subscriber])", "pass"),
        ),
        alone="the head removes it from the target at RESUME",
    ),
    Mutant(
        "full-buffer-does-not-end",
        "A full buffer ends the target's attachment, not the source's.",
        (Change(DeliveryQueues._check, "elif is_full and state is AttachmentState.BUFFERING:", "elif False:"),),
        ("long-hold", "slow-cut", "sessions-hold"),
    ),
    Mutant(
        "buffer-obeys-policies",
        "No policy for full queues drops buffered publications.",
        (
            Change(
                DeliveryQueues._check,
                "elif is_full and state is AttachmentState.LIVE:",
                "elif is_full and state in (AttachmentState.LIVE, AttachmentState.BUFFERING):",
            ),
            Change(
                DeliveryQueues._overflow,
                "self.block(attachment)",
                "attachment.drop_oldest(self.host.config.head_name)\n        attachment.dropped = None",
            ),
        ),
        ("sessions-hold", "sessions-lag", "slices"),
    ),
    Mutant(
        "asks-the-dead-target",
        "Without a target the subscriber drains the source, and at END resumes at the head that its token names.",
        (Change(EdgeFinder.go_on, "elif not handover.endpoint:", "elif handover.endpoint is None:"),),
        ("lost-target", "edge-crash-across"),
        harmless="it asks the target in vain, and then the head",
    ),
    Mutant(
        "changes-after-the-cut",
        "After the cut the target answers changes of the list.",
        (
            Change(
                ClientRequests.on_subs,
                "if attachment.state is AttachmentState.ENDING or attachment.pending_end is not None:",
                "if False:",
            ),
        ),
        ("walled-target", "far", "slow-cut"),
        partners=(Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        harmless="a change counts only when the target has it as well",
    ),
]
