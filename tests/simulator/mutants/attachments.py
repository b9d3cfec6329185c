"""The records of a subscriber at its edges, and the cut: docs/handover.md, sections 3 and 4."""

from __future__ import annotations

from tests.simulator.mutants.partners import ANY_STATE, FORGETFUL, NO_DEADLINE, NO_LEASE, NO_LEAVE, NO_PART
from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.client.attachment import ClientHandover
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.machine import Client
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.dispatch import HandoverDispatch
from plimsoll.core.head.handover.remote_members import RemoteMembers

LEAVES_AT_CUT = Change(HandoverSource.on_cut, "attachment.keeps_place and cut.across", "False")

MUTANTS = [
    Mutant(
        "matched-while-cutting",
        "CUTTING is covered, not matched: from INSTALLED on the target has what comes.",
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
        alone="what the target then holds too early is below the watermark when it comes",
    ),
    Mutant(
        "target-does-not-hold",
        "HOLD is matched and kept.",
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
        "Before GO the target says nothing to the subscriber.",
        (Change(HandoverTarget.on_installed, "if attachment.has_go:", "if True:"),),
        ("sessions-hold", "sessions-lag", "sessions-local", "calm-drain"),
        partners=(ANY_STATE,),
        alone="the client takes nothing from an attachment that does not serve it yet",
    ),
    Mutant(
        "silent-client-takes-all",
        "The subscriber takes nothing from the target before END.",
        (Change(HandoverTarget.on_installed, "if attachment.has_go:", "if True:"),),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "go-is-forgotten",
        "A GO that comes before INSTALLED is remembered.",
        (Change(HandoverTarget.on_go, "attachment.has_go = attachment.state is AttachmentState.CUTTING", "pass"),),
        ("sessions-local", "far", "sessions-slow", "far-bumpy", "sessions-everything", "sessions-across"),
        partners=(NO_PART,),
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
                "self.links.send_to_edge(self.host.name, session.plan.source, msg.Release(x, (incarnation, n + 1)))",
                "pass",
            ),
        ),
        ("sessions-across", "calm-across"),
        partners=(NO_LEASE,),
        alone="the place at the source has a lease as well",
    ),
    Mutant(
        "held-place-is-dropped",
        "From CUTTING on a place outlasts its link, until RELEASE, ABORT or the end of its lease.",
        (Change(HandoverTarget.on_install, "State.CUTTING, True", "State.CUTTING, False"),),
        ("edge-crash-across", "sessions-across", "far-bumpy", "churn", "sessions-everything"),
    ),
    Mutant(
        "served-place-is-dropped",
        "A place outlasts its link until the head releases it or its lease ends.",
        (Change(AttachmentTable.close, "if not attachment.keeps_place:", "if True:"),),
        ("churn", "sessions-across", "far-bumpy"),
    ),
    Mutant(
        "dark-place-stays",
        "A DARK record goes with its link.",
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
        alone="ABORT ends it as well, and what is closed ends with its lease",
    ),
    Mutant(
        "dark-is-covered",
        "DARK is not in the cover: nothing comes for who is not cut.",
        (
            Change(
                HandoverTarget.on_attach,
                "self.reports.attached(attach.session, attachment.subscriber)",
                "self.reports.attached(attach.session, attachment.subscriber)\n"
                "        attachment.is_covered = True\n"
                "        table = self.attachments.subscription_table\n"
                "        for cover in table.step(table.numbered(attachment), []):\n"
                "            self.host.up(cover)",
            ),
            Change(
                AttachmentTable.install,
                "for numbered in taken.values() for pair in numbered]",
                "for a, numbered in taken.items() for pair in numbered if a.state is not AttachmentState.CUTTING]",
            ),
        ),
        ("calm-drain", "sessions-local", "churn"),
        harmless="publications for who is not cut yet would come in vain",
    ),
    Mutant(
        "asks-only-if-something-changes",
        "CUT_REQUEST is said and numbered even when the covering set does not change.",
        (
            Change(
                HandoverTarget.on_install,
                "self.host.up(msg.CutRequest(session, cover, items))",
                "if cover.adds or cover.removes:\n        self.host.up(msg.CutRequest(session, cover, items))",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_DEADLINE,),
        alone="nobody is cut then, and the head's deadline ends it",
    ),
    Mutant(
        "next-cover-is-without-them",
        "While a cut is under way every cover of the target has all of its records but the dark ones.",
        (
            Change(
                AttachmentTable.install,
                "*first, last = self.subscription_table.step(",
                "late = [a for a in self.by_subscriber.values()\n"
                "            if a.state is AttachmentState.CUTTING and a not in taken]\n"
                "    held = self.subscription_table\n"
                "    removes = [*removes, *(n for a in late for n, _ in held.numbered(a) if a.is_covered)]\n"
                "    for a in late:\n"
                "        a.is_covered = False\n"
                "    *first, last = self.subscription_table.step(",
            ),
        ),
        ("busy", "sessions-batch", "far"),
    ),
    Mutant(
        "owner-is-not-swapped",
        "The step that answers INSTALLED swaps the owner.",
        (
            Change(
                Coordinator.cut_members,
                "self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "cover-is-not-applied",
        "The step that answers INSTALLED applies the cover.",
        (
            Change(
                HandoverDispatch.on_cut_request,
                "host.covers.apply(outbox, request.cover)",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "installed-before-cover",
        "INSTALLED says from where on the cover holds: it is said in the step that applies it.",
        (
            Change(
                HandoverDispatch.on_cut_request,
                "host.covers.apply(outbox, request.cover)",
                "late = self.__dict__.setdefault('late', [])\n"
                "    late.append((outbox, request.cover))\n"
                "    for at, cover in late[:-1]:\n"
                "        host.covers.apply(at, cover) if at.key in host.outboxes.by_key else None\n"
                "    del late[:-1]",
            ),
        ),
        ("calm-drain", "sessions-local"),
    ),
    Mutant(
        "no-end",
        "At CUT the source says END.",
        (
            Change(
                HandoverSource.end,
                "if not self.attachments.queues.end(attachment, partial(self._end, session, token, [attachment.id])):",
                "attachment.state = AttachmentState.ENDING\n        if False:",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_PART,),
        alone="after `drain_seconds` FORCE_DETACH closes the attachments, and the subscriber resumes from the log",
    ),
    Mutant(
        "no-go",
        "At END the subscriber says GO.",
        (
            Change(
                ClientHandovers._go,
                "self._client.say(port.link, msg.Go(session, part))",
                "pass",
            ),
        ),
        ("calm-drain", "sessions-local"),
        partners=(NO_PART,),
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
        "At GO what was held comes first.",
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
        "At GO what was held comes first, and what is live follows it.",
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
        "At GO the target says DONE.",
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
        "done-does-not-pass",
        "The head of the target passes DONE on to the one that decides.",
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
        "Across clusters a RESUME that names the session is the DONE.",
        (
            Change(
                RemoteMembers.resumed, "self.heads.send(member.coordinator, msg.Done(session, [subscriber]))", "pass"
            ),
        ),
        ("long-hold-across", "lost-target"),
        partners=(NO_PART,),
        alone="after `drain_seconds` the session ends in any case",
    ),
    Mutant(
        "end-without-place",
        "END carries the place at which the target's stream goes on.",
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
        "end-without-place-when-alone",
        "Without a target the subscriber resumes at END from the place of the cut.",
        (Change(ClientHandovers._take_over, "subscriber.stream.set_token(end.token)", "pass"),),
        ("lost-target", "sessions-hold", "far-bumpy"),
        partners=(LEAVES_AT_CUT,),
        alone="then it resumes at the head of the source, in whose cover it still is",
    ),
    Mutant(
        "cut-loses-the-queue",
        "What came before CUT reaches the subscriber ahead of END, from its queue or from the log.",
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
        "Nothing behind CUT comes from the source: what it fetches from the log ends at the cut.",
        (
            Change(
                DeliveryQueues._emptied,
                "if attachment.pending_end is None or attachment.position < attachment.pending_end.position:",
                "if attachment.pending_end is None or attachment.position < self.host.position:",
            ),
        ),
        ("slow-cut", "slices"),
        partners=(FORGETFUL,),
        alone="what the source then delivers too much is below the watermark when it comes again",
    ),
    Mutant(
        "moves-who-is-behind",
        "Only who is LIVE at the source, attached, and in this epoch, is moved.",
        (Change(HandoverSource.on_start_move, "or attachment.state is not AttachmentState.LIVE", ""),),
        ("slow-cut", "slices", "sessions-hold"),
        harmless="who is behind would be cut all the same, and be drained for longer",
    ),
    Mutant(
        "cuts-who-has-not-attached",
        "Only who has attached at the target is cut.",
        (
            Change(Coordinator.cut, 'session.of("attached")', 'session.of("attached", "preparing")'),
            Change(
                Coordinator.cut,
                'self.refuse(session, session.of("preparing"), why="was not attached at the target in time")',
                "pass",
            ),
            Change(
                HandoverTarget.on_install,
                "missing = [x for x in install.members if not self._is_arriving(x, session, *ARRIVING)]",
                "missing = []",
            ),
        ),
        ("sessions-local", "sessions-drain-deadline", "sessions-calm"),
        partners=(NO_DEADLINE,),
        alone="the target refuses whom it does not have, and the head's deadline ends what is not cut",
    ),
    Mutant(
        "takes-who-has-no-place",
        "An ATTACH without a place is refused.",
        (
            Change(
                HandoverTarget._refusal,
                "if slot is None or slot.session != session or slot.replay or item",
                "if item",
            ),
        ),
        ("sessions-drain-deadline", "sessions-local", "churn", "stale-commands"),
        partners=(NO_LEAVE,),
        alone="the subscriber leaves the target when it hears that it stays",
    ),
    Mutant(
        "refused-in-silence",
        "An ATTACH that is refused is answered.",
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
        harmless="the head hears of it as well, and tells the subscriber to stay",
    ),
    Mutant(
        "stay-is-not-said",
        "Who stays hears STAY.",
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
        "ABORT ends what is on its way at the target.",
        (Change(HandoverTarget.on_abort, "gone.append(self.attachments.by_subscriber[item.subscriber])", "pass"),),
        ("sessions-calm", "sessions-local", "sessions-across"),
        partners=(NO_LEAVE,),
        alone="the subscriber detaches from the target at STAY",
    ),
    Mutant(
        "next-is-not-left",
        "Whoever loses the edge that serves him leaves the target, too.",
        (Change(Client.detach, "self.handovers.leave(subscriber, withdraw=withdraw)", "subscriber.handover = None"),),
        ("slow-mediator", "churn", "sessions-edge-crash"),
        partners=(
            Change(HandoverTarget.on_abort, "gone.append(self.attachments.by_subscriber[item.subscriber])", "pass"),
        ),
        alone="the head takes it off the target at RESUME",
    ),
    Mutant(
        "full-hold-takes-no-end",
        "A hold that is full ends the target's attachment, not the source's.",
        (Change(DeliveryQueues._check, "elif is_full and state is AttachmentState.BUFFERING:", "elif False:"),),
        ("long-hold", "slow-cut", "sessions-hold"),
    ),
    Mutant(
        "hold-obeys-policies",
        "No policy for full queues takes anything from what is held.",
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
        "Without a target the subscriber drains the source, and resumes at END wherever its place is known.",
        (Change(EdgeFinder.go_on, "elif not handover.endpoint:", "elif handover.endpoint is None:"),),
        ("lost-target", "edge-crash-across"),
        harmless="it would ask the target in vain, and then the head",
    ),
    Mutant(
        "changes-after-the-cut",
        "After the cut it is the target that answers for the list.",
        (
            Change(
                ClientRequests.on_subs,
                "if attachment.state is AttachmentState.ENDING or attachment.pending_end is not None:",
                "if False:",
            ),
        ),
        ("walled-target", "far", "slow-cut"),
        partners=(Change(ClientHandover.counted, "min(acked, self.held) if self.is_asked else acked", "acked"),),
        harmless="a change counts when the target has it, too",
    ),
]
