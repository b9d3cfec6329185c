"""Time limits, restarts of heads, and gaps: docs/handover.md, sections 7 to 9."""

from __future__ import annotations

from tests.simulator.mutants.partners import NO_DEADLINE, NO_LEASE, NO_LEAVE
from tests.simulator.mutants.rewriting import Change, Mutant, Setting

from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.edge.catchup_replay import CatchupReplay
from plimsoll.core.edge.handover.slots import SlotTable
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.head_messages import HeadMessages
from plimsoll.core.edge.machine import Edge
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.head import log_reader
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.head.handover.table import HandoverTable
from plimsoll.core.head.log import Log
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.publish_requests import PublishRequests
from plimsoll.core.head.record_input import RecordInput
from plimsoll.core.head.startup import StartupBarrier

RESTARTS = (
    "sessions-head-restart",
    "two-heads",
    "head-and-edge",
    "head-restart-tree",
    "head-restart",
    "sessions-everything",
)

MUTANTS = [
    Mutant(
        "drains-for-ever",
        "A session ends at the latest `drain_seconds` after its cut.",
        (Change(Coordinator.tick, "self._force_detach(session)", "session.drains_until = float('inf')"),),
        ("calm-drain", "sessions-local"),
        partners=(
            Change(
                ClientHandovers._go,
                "self._client.say(port.link, msg.Go(session, part))",
                "pass",
            ),
        ),
        alone="a member that is cut arrives, or resumes, once no fault delays it",
    ),
    Mutant(
        "force-detach-does-nothing",
        "FORCE_DETACH closes the attachments of members that are not done.",
        (
            Change(
                HeadMessages._on_force_detach,
                "self.source.on_force_detach(detach)\n    self.target.on_force_detach(detach)",
                "pass",
            ),
        ),
        ("sessions-drain-deadline", "far-bumpy", "vanish", "sessions-across", "sessions-hold"),
        harmless="a member that was given up still arrives, or is closed with its link",
    ),
    Mutant(
        "force-detach-leaves-cover",
        "An attachment that FORCE_DETACH closes stays in the cover until its lease ends.",
        (
            Change(
                HandoverTarget.on_force_detach,
                'self.attachments.close_and_notify(attachment, "parted", TOO_LONG)',
                'self.attachments.evict([attachment], "parted", "")',
            ),
        ),
        ("parted", "across-deadline", "sessions-drain-deadline"),
    ),
    Mutant(
        "detached-has-no-tail",
        "Across clusters a detached member is kept until RESUME, DONE or the end of its lease.",
        (
            Change(
                Coordinator._force_detach,
                "session.set_draining(x, session.is_across and self.table.is_owner(session.members[x], x))",
                "pass",
            ),
        ),
        ("across-deadline", "sessions-drain-deadline"),
        partners=(NO_LEASE,),
        alone="what is left at the source ends with its lease",
    ),
    Mutant(
        "slots-last-for-ever",
        "A slot, and an attachment without an INSTALL, expire.",
        (Change(SlotTable.pop_expired, "if not now < slot.until", "if False"),),
        ("sessions-calm", "sessions-local", "sessions-drain-deadline"),
        partners=(
            Change(
                HandoverTable._send_abort,
                "self.to_target(session, msg.Abort(session.id, session.items(members)))",
                "pass",
            ),
        ),
        alone="the head aborts members that are not cut in time",
    ),
    Mutant(
        "remote-members-last-for-ever",
        "A remote member ends at DONE, or expires.",
        (Change(RemoteMembers.on_done, "self.drop(done.session, x)", "pass"),),
        ("calm-across", "sessions-across", "sessions-tree"),
        partners=(
            Change(RemoteMembers._is_over, "return entry is None or entry.epoch != member.owned", "return False"),
        ),
        alone="a remote member ends with the owner entry of its cut",
    ),
    Mutant(
        "leases-last-for-ever",
        "When the lease of a closed attachment ends, the edge sends EXPIRE.",
        (NO_LEASE,),
        ("vanish", "churn", "clients", "sessions-everything"),
    ),
    Mutant(
        "expires-any-owner",
        "EXPIRE is a compare and swap at the head.",
        (
            Change(
                Membership.on_expire,
                "if entry is not None and entry.key == key and entry.epoch == expire.epoch:",
                "if entry is not None:",
            ),
        ),
        ("lease-end", "vanish"),
    ),
    Mutant(
        "dead-edges-entries-stay",
        "The owner entries of a dead edge expire at the head.",
        (Change(Membership.expire, "if at <= self.host.now", "if False"),),
        ("vanish", "head-and-edge", "sessions-everything", "sessions-edge-crash", "clients"),
        harmless="it costs memory, but a subscriber that resumes is served from its token all the same",
    ),
    # -- a head restarts
    Mutant(
        "restart-keeps-all",
        "At the HELLO of a new head an edge closes all attachments but those that are LIVE.",
        (
            Change(
                Edge.on_open,
                "if a.state is not AttachmentState.LIVE or before == self.head_epoch",
                "if before == self.head_epoch",
            ),
        ),
        RESTARTS,
    ),
    Mutant(
        "restart-keeps-slots",
        "At the HELLO of a new head an edge drops its slots.",
        (Change(HandoverTarget.restart, "self.slots.clear()", "pass"),),
        RESTARTS,
        partners=(Change(SlotTable.pop_expired, "if not now < slot.until", "if False"),),
        alone="slots expire",
    ),
    Mutant(
        "restart-report-comes-last",
        "The report of an edge is the first message to a new head.",
        (Change(Edge.on_open, "self.head.buffer.clear()", "pass"),),
        ("head-and-edge", "doubts", "two-heads"),
    ),
    Mutant(
        "any-owner-is-adopted",
        "If two edges report a subscriber, the higher owner epoch wins.",
        (
            Change(
                OwnershipTable.adopt,
                "(old.epoch >= epoch if",
                "(old.epoch < epoch if",
            ),
        ),
        ("split-report", "head-and-edge", "two-heads"),
    ),
    Mutant(
        "loser-is-not-released",
        "If two edges report a subscriber, the one with the lower owner epoch receives RELEASE.",
        (Change(Membership.on_report, "if loser is not None:", "if False:"),),
        ("split-report", "head-and-edge", "two-heads"),
        partners=(NO_LEASE,),
        alone="a closed attachment ends with its lease",
    ),
    Mutant(
        "restart-is-silent",
        "At WELCOME every LIVE attachment receives a gap.",
        (
            Change(
                HeadMessages._on_welcome, "attachment.out.append(attachment.epoch_prefix + wire.encode(gap))", "pass"
            ),
        ),
        RESTARTS,
    ),
    Mutant(
        "uncertain-range-is-resent",
        "Entries that a neighbour may or may not have received before it restarted become a gap.",
        (
            Change(
                Outboxes._renew,
                "again[:sent] = [UncertainRange(_low(again[0]), _high(again[sent - 1]))]",
                "del again[:sent]",
            ),
        ),
        ("head-restart-tree", "two-heads", "sessions-head-restart", "sessions-everything"),
    ),
    Mutant(
        "neighbour-restart-is-silent",
        "The restart of a neighbour is logged as a gap.",
        (
            Change(
                StartupBarrier.neighbor_connected,
                "if before is not None and before != neighbor.incarnation and not neighbor.remembers(before):",
                "if False:",
            ),
        ),
        ("doubts", "head-restart-tree", "two-heads"),
    ),
    Mutant(
        "cover-goes-with-its-neighbour",
        "The cover of a neighbour that is down stays until it sends a new one.",
        (
            Change(
                CoverUpdates.broker_lost,
                "self.routes.down(outbox.name)",
                "self.routes.down(outbox.name)\n        self.drop(outbox.name)",
            ),
        ),
        ("head-restart-tree", "two-heads", "sessions-head-restart", "sessions-everything", "churn"),
    ),
    Mutant(
        "mediator-is-forgotten",
        "A head that restarts learns the mediator's epoch from the reports.",
        (
            Change(Membership.on_report, "host.mediator_fence.raise_to(report.mediator)", "pass"),
            Change(CoverUpdates.on_neighbor_report, "self.fence.raise_to(report.mediator)", "pass"),
        ),
        ("stale-restarts", "sessions-everything"),
        partners=(Change(MediatorCommands.refusal, "command.head_epoch != self.host.epoch and", "False and"),),
        alone="a command names the epoch of the head as well",
    ),
    Mutant(
        "publishes-while-starting",
        "A head accepts no publication until all edges and neighbours have reported.",
        (Change(PublishRequests.open, "if host.startup.is_starting:", "if False:"),),
        RESTARTS,
        harmless="the publications lie in gaps that are sent once all have reported",
    ),
    Mutant(
        "covers-while-starting",
        "A head sends no cover until all edges and neighbours have reported.",
        (Change(CoverUpdates.report_to_neighbors, "and not missing - {name}", ""),),
        ("two-heads", "head-restart-tree", "sessions-head-restart", "sessions-everything"),
    ),
    Mutant(
        "acknowledges-while-starting",
        "A head acknowledges nothing until all edges and neighbours have reported.",
        (Change(RecordInput.tick, "if not host.startup.missing:", "if True:"),),
        ("doubts", "two-heads", "head-restart-tree"),
    ),
    Mutant(
        "orphans-stay",
        "Remote members whose coordinator cannot be reached, or has restarted, are released.",
        (
            Change(
                RemoteMembers.heads_lost,
                "self.edges.send_to_edge(self.host.name, edge, msg.Orphan(session, members))",
                "pass",
            ),
        ),
        ("long-walls", "sessions-head-restart", "two-heads"),
        partners=(NO_LEAVE,),
        alone="the subscriber leaves the target when the head of its source restarts",
    ),
    Mutant(
        "standby-orphans-stay",
        "ORPHAN removes members in STANDBY or CUTTING from the target.",
        (Change(HandoverTarget.on_orphan, "gone.append(self.attachments.by_subscriber[x])", "pass"),),
        ("sessions-head-restart", "two-heads", "sessions-across", "far-bumpy"),
        partners=(NO_LEAVE,),
        alone="the subscriber leaves the target when the head of its source restarts",
    ),
    Mutant(
        "sessions-outlive-the-path",
        "Open sessions are aborted when the path to the target's head is lost.",
        (
            Change(
                Coordinator.heads_lost,
                'self.table.refuse(session, session.of(*OPEN), f"{session.plan.target_head} was lost")',
                "pass",
            ),
        ),
        ("long-walls", "slow-mediator", "two-heads"),
        partners=(NO_DEADLINE,),
        alone="the head has a deadline as well",
    ),
    # -- gaps
    Mutant(
        "gap-is-not-held",
        "A gap is buffered in BUFFERING.",
        (
            Change(
                HeadMessages._on_gap,
                "if attachment.state in (AttachmentState.LIVE, AttachmentState.BUFFERING):",
                "if attachment.state is AttachmentState.LIVE:",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
    Mutant(
        "gap-before-serving",
        "A gap is ignored before INSTALLED and before RESUMED.",
        (
            Change(
                HeadMessages._on_gap,
                "if attachment.state in (AttachmentState.LIVE, AttachmentState.BUFFERING):",
                "if attachment.state.value in ('live', 'hold', 'cutting', 'resuming'):",
            ),
        ),
        ("lag-across", "sessions-lag"),
        harmless="an attachment that does not serve yet passes nothing on",
    ),
    Mutant(
        "gap-raises-no-marks",
        "A gap raises the watermarks.",
        (Change(SubscriberStream.on_gap, "marks[head, epoch] = offset", "pass"),),
        ("lag-at-the-cut", "walled-log", "lag-across", "sessions-lag"),
    ),
    Mutant(
        "gap-raises-no-token",
        "A gap raises the token.",
        (Change(SubscriberStream.on_gap, "self._place(attachment, (gap.head, gap.epoch), gap.high)", "pass"),),
        ("lag-across", "sessions-lag", "small-log"),
    ),
    Mutant(
        "known-gap-is-reported",
        "A gap is not reported if the watermarks cover all of it.",
        (Change(SubscriberStream.on_gap, "if gap.last and all(", "if False and all("),),
        ("lag-across", "sessions-lag"),
        harmless="the subscriber is notified of a gap in which nothing is missing",
    ),
    Mutant(
        "gap-is-hidden",
        "A gap is reported to the application.",
        (Change(SubscriberStream.on_gap, "self._owner.tell(GapNotice(gap, now))", "pass"),),
        ("sessions-lag", "small-log"),
    ),
    Mutant(
        "gap-is-not-logged",
        "A gap between heads is logged by the receiver.",
        (Change(Distributor.relay_gap, "self._log_gap(gap.last, gap.reason, neighbor)", "pass"),),
        ("sessions-lag", "small-log", "sessions-everything", "head-restart-tree"),
    ),
    Mutant(
        "gap-is-not-passed-on",
        "A gap in the log is passed on to every link that needs publications from that neighbour.",
        (Change(Distributor._log_gap, "host.outboxes.offer(keys, position, record)", "pass"),),
        ("sessions-lag", "small-log", "head-restart-tree", "sessions-head-restart", "two-heads"),
    ),
    Mutant(
        "gap-is-not-replayed",
        "A gap in the log is replayed to subscribers that resume.",
        (Change(log_reader.answer_fetch, "if is_gap or _wanted(", "if not is_gap and _wanted("),),
        ("logged-gaps", "doubts", "two-heads", "head-and-edge"),
    ),
    Mutant(
        "gap-without-offsets",
        "A gap of evicted entries carries the last offset of each origin.",
        (Change(Log._evict, "raise_to(self.gone, entry.last)", "pass"),),
        ("walled-log", "lag-across", "sessions-lag"),
    ),
    Mutant(
        "gap-with-offsets-of-its-last",
        "A gap of evicted entries carries the highest offset of each origin in it, which is not always the last one.",
        (Change(Log.lost, "raise_to(last, self._evicted[position])", "last.update(self._evicted[position])"),),
        ("lag-at-the-cut",),
    ),
    Mutant(
        "gap-with-offsets-of-the-next",
        "A gap of evicted entries carries the offsets of these entries only.",
        (Setting(Log, "lost", lambda self, low, high: dict(self.gone)),),
        ("small-log", "sessions-lag"),
    ),
    Mutant(
        "dropped-is-not-reported",
        "Publications that a full queue drops become a gap.",
        (Change(DeliveryQueues._move, "link.buffer.append(gap)", "pass"),),
        ("sessions-hold", "small-log", "sessions-lag"),
    ),
    Mutant(
        "evicted-is-not-reported",
        "Publications that a link has lost become a gap in their place.",
        (Change(Outboxes.pump, "outbox.send_gap(hole, wire.encode(gap))", "pass"),),
        ("sessions-lag", "small-log"),
    ),
    Mutant(
        "fetched-gap-reaches-beyond-the-cut",
        "A gap that is read from the log ends at the cut.",
        (
            Change(
                CatchupReplay._take_gap,
                "if member.pending_end is not None and member.pending_end.position < high:",
                "if False:",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
    Mutant(
        "gap-behind-the-cut",
        "The gap of a blocked subscriber that is cut ends at the cut.",
        (Change(DeliveryQueues._unblock_with_gap, "high = min(high, attachment.pending_end.position)", "pass"),),
        ("slow-cut", "lag-local"),
    ),
    Mutant(
        "backlog-dies-with-the-link",
        "The backlog of a neighbour that was down is sent when it is back.",
        (Change(Outbox.renew, "self.backlog = deque([*again, *waiting])", "self.backlog = deque()"),),
        ("long-walls", "churn", "far-bumpy"),
    ),
]
