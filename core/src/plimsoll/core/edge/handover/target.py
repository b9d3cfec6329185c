"""The target of a hand-over: it keeps a slot, takes a second, silent attachment, and takes over at the cut.

Rules (docs/handover.md, 3 to 5):
- An arriving attachment is in the index and the cover from ATTACH on, and what it matches goes nowhere. From INSTALLED
  on publications are buffered in order until GO, and no slow-consumer policy drops any of them: a buffer that fills
  ends the attachment, and the subscriber goes on at the source.
- Slots, and attachments that the head has not asked to cut, end by their time. From INSTALL on only the head, the
  subscriber, or the loss of either ends anything.
- The target promises only what it can keep: it takes all of a list, or none of it (`StandbyList`). However an
  attachment on standby ends, nothing of it stays in the index or in the cover.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plimsoll.core.edge.attachment import REFUSALS, TOO_LONG, AttachmentState, EdgeAttachment, out_of_bounds
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.handover.arrivals import ArrivalReports
from plimsoll.core.edge.handover.delivery_audit import DeliveryAuditRelay
from plimsoll.core.edge.handover.publisher_audit import PublisherAuditRelay
from plimsoll.core.edge.handover.slots import ReservedSlot, SlotTable
from plimsoll.core.edge.handover.standby_list import StandbyList
from plimsoll.core.edge.name_claims import NameCheck
from plimsoll.core.identity_shares import has_share
from plimsoll.core.permissions import NOT_PERMITTED
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import owner_identity
from plimsoll.core.transport.link import Link

ARRIVING = (AttachmentState.STANDBY, AttachmentState.CUTTING, AttachmentState.BUFFERING)
OFF = "the hand-over is off"


class HandoverTarget:
    """An edge's side of the hand-overs that bring subscribers here."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable) -> None:
        self.host, self.attachments = host, attachments
        self.slots = SlotTable()
        self.claims = NameCheck(host, attachments.by_subscriber, self.slots, host.config.time_factor)
        self.delivery_audit = DeliveryAuditRelay(host, attachments)
        self.publisher_audit = PublisherAuditRelay(host, attachments)
        self.reports = ArrivalReports(host.config.name, self.delivery_audit)
        self.standby_list = StandbyList(host, attachments, self._refuse_list)

    # -- slots

    def no_room(self, subscriber: str, identity: str = "", *, leaves: bool = False) -> str:
        """Why there is no place for one more subscriber; empty if there is one. `leaves`: its identity leaves places.

        One that has a place or a slot here has it. Slots of others count: they are promised.
        """
        served, slots = self.attachments.by_subscriber, self.slots
        taken, free = served.count(identity), self.host.config.limits.max_subscribers - len(served)
        if subscriber in served or subscriber in slots:
            return ""
        if has_share(taken + len(slots), free - len(slots), leaves=leaves):
            return ""
        waiting = [slot for x, slot in slots.items() if x not in served]
        taken, free = taken + sum(slot.identity == identity for slot in waiting), free - len(waiting)
        if has_share(taken, free, leaves=leaves):
            return ""
        if free <= 0:
            return REFUSALS["full"]
        return (
            f"this edge has {taken} subscribers of this identity, and {free} places left for others; ask the head for "
            "another one"
        )

    def on_prepare(self, prepare: msg.Prepare) -> None:
        until = self.host.now + prepare.seconds
        kept, refused = [], defaultdict(list)
        for x, identity in prepare.identified():
            if why := self._why_no_slot(x, prepare.session):
                refused[why].append(x)
            else:
                kept.append(x)
                # A repeated PREPARE: from INSTALL on the attachment itself is the place.
                if not self._is_arriving(x, prepare.session, AttachmentState.CUTTING, AttachmentState.BUFFERING):
                    self.slots[x] = ReservedSlot(prepare.session, until, prepare.replay, identity)
        for why, members in refused.items():
            self.host.up(msg.HandoverRejected(prepare.session, members, why))
        if kept:
            self.host.up(msg.Slot(prepare.session, kept, self.host.config.advertised, self.host.public_key))

    def _why_no_slot(self, x: str, session: str) -> str:
        name = self.host.config.name
        if self.host.is_leaving:
            return f"{name} is leaving"
        if (slot := self.slots.get(x)) is not None and slot.session != session:
            return f"{name} keeps a place for it in another hand-over"
        attachment = self.attachments.by_subscriber.get(x)
        if attachment is not None and attachment.state is AttachmentState.ENDING and not attachment.keeps_place:
            self.attachments.close(attachment)  # it has been sent END, and comes back
        elif attachment is not None and not self._is_arriving(x, session, *ARRIVING):
            return f"{name} has a record of it"
        # A subscriber that is moved here may have any free place. Its identity's share does not count: the mediator
        # has chosen this edge, and an edge that leaves has to get rid of all. The slot lets its RESUME in as well.
        return f"{name} has as many subscribers as it may have" if self.no_room(x) else ""

    def _is_arriving(self, x: str, session: str, *states: AttachmentState) -> bool:
        attachment = self.attachments.by_subscriber.get(x)
        return attachment is not None and attachment.incoming_session == session and attachment.state in states

    def expire(self) -> None:
        """End the slots that were not cut in time, and the standby attachments in them."""
        for x, slot in self.slots.pop_expired(self.host.now):
            if self._is_arriving(x, slot.session, AttachmentState.STANDBY):
                attachment = self.attachments.by_subscriber[x]
                why = "there was no cut in time; stay where you are"
                self.attachments.close_and_notify(attachment, "session", why)

    # -- attaching

    def on_attach(self, link: Link, attach: msg.Attach) -> Iterator[int]:
        """Attach the members that have a slot here; yields the units of work of each part."""
        came = []
        for item in attach.members:
            if (attachment := self._open(link, item, attach.session)) is not None:
                came.append(attachment)
                yield from self.standby_list.change(attachment, item.subscriptions, (), item.version)
        held = [a for a in came if a.state is AttachmentState.STANDBY]
        for attachment in held:
            attachment.is_held = True
            self.reports.attached(attach.session, attachment.subscriber)
        if held:
            self.host.say(link, msg.Held([msg.HeldItem(a.id, a.version) for a in held]))

    def _open(self, link: Link, item: msg.AttachItem, session: str) -> EdgeAttachment | None:
        """Attach a subscriber on standby, with nothing in its list, if it has a slot here."""
        self.attachments.vacate(link, item.attachment)
        if code := self._refusal(link, item, session):
            self.host.say(link, msg.AttachmentClosed(item.attachment, code, REFUSALS[code]))
            self._reject(item.subscriber, session, REFUSALS[code])
            return None
        whose = owner_identity(item.subscriber, link.identity)
        if (foreign := self.claims.refusal(item.subscriber, whose)) is not None:
            # The place is kept: it is for the subscriber of another identity.
            self.host.say(link, msg.AttachmentClosed(item.attachment, *foreign))
            return None
        attachment = self.attachments.open(link, item)
        slot = self.slots.get(item.subscriber)
        attachment.is_verified = slot is not None and bool(slot.identity)
        # No place of its own yet: until INSTALL the subscriber's place is at the source, and this ends with its link.
        attachment.state, attachment.incoming_session, attachment.keeps_place = AttachmentState.STANDBY, session, False
        self.attachments.queues.route(attachment)
        return attachment

    def _refusal(self, link: Link, item: msg.AttachItem, session: str) -> str:
        if not link.grant.subscribes:
            return NOT_PERMITTED
        if self.host.is_leaving:
            return "leaving"
        slot = self.slots.get(item.subscriber)
        if slot is None or slot.session != session or slot.replay or item.subscriber in self.attachments.by_subscriber:
            return "session"
        return out_of_bounds(item)

    def _refuse_list(self, attachment: EdgeAttachment, why: str) -> None:
        """End an attachment whose list cannot be taken: at the source all of it counts."""
        self.attachments.close_and_notify(attachment, "session", why)
        self._reject(attachment.subscriber, attachment.incoming_session, why)

    def _reject(self, x: str, session: str, why: str) -> None:
        """Report to the head that a subscriber will not attach here, unless it has already."""
        slot = self.slots.get(x)
        if slot is not None and slot.session == session and not self._is_arriving(x, session, *AttachmentState):
            del self.slots[x]
            self.host.up(msg.HandoverRejected(session, [x], why))

    def on_subs(self, attachment: EdgeAttachment, subs: msg.Subs) -> Iterator[int]:
        """Change the list of an attachment on standby."""
        yield from self.standby_list.change(attachment, subs.adds, subs.removes, subs.version)
        if attachment.state is AttachmentState.STANDBY:
            self.host.say(attachment.link, msg.Held([msg.HeldItem(attachment.id, subs.version)]))

    # -- the cut

    def on_install(self, install: msg.Install) -> None:
        """Move the members from standby to cutting: what they need has been announced before CUT_REQUEST."""
        by_subscriber, session = self.attachments.by_subscriber, install.session
        held = {x for x in install.members if self._is_arriving(x, session, *ARRIVING) and by_subscriber[x].is_held}
        missing = [x for x in install.members if x not in held]
        arrived = [by_subscriber[x] for x in install.members if x in held]
        cutting = [attachment for attachment in arrived if attachment.state is AttachmentState.STANDBY]
        if missing:
            self.host.up(msg.HandoverRejected(session, missing, "is not attached at the target"))
        if not cutting:
            return
        for attachment in cutting:
            attachment.state, attachment.keeps_place = AttachmentState.CUTTING, True
            self.slots.free(attachment.subscriber, session)  # its place is its attachment from here on
            self.attachments.keep(attachment)
        cover = self.attachments.install({attachment: [] for attachment in cutting})
        items = [msg.MemberItem(attachment.subscriber, attachment.epoch) for attachment in cutting]
        # Also when the covering set does not change: what counts is its place in the stream (docs/handover.md, 3, 1).
        self.host.up(msg.CutRequest(session, cover, items))

    def on_installed(self, installed: msg.Installed) -> None:
        """From here on the stream's matches for these members are theirs at this edge."""
        self.host.position = max(self.host.position, installed.position)
        again = set(installed.again)
        for x, since in zip(installed.members, installed.since, strict=True):
            if not self._is_arriving(x, installed.session, AttachmentState.CUTTING):
                continue
            attachment = self.attachments.by_subscriber[x]
            attachment.state, attachment.since = AttachmentState.BUFFERING, since
            attachment.is_again, attachment.is_verified = x in again, True
            attachment.position, attachment.front_epoch = installed.position, self.host.head_epoch
            self.attachments.queues.route(attachment)
            if attachment.has_go:
                self._go_live(attachment)

    def on_go(self, link: Link, go: msg.Go) -> None:
        for item in go.members:
            attachment = self.attachments.attached(link, item.attachment)
            if attachment is None or attachment.incoming_session != go.session:
                continue
            attachment.counts_from = (item.since, item.marks) if item.since is not None else None
            if attachment.state is AttachmentState.BUFFERING:
                self._go_live(attachment)
            else:
                # END came by way of the source before INSTALLED came here (docs/handover.md, 3, rule 5).
                attachment.has_go = attachment.state is AttachmentState.CUTTING

    def _go_live(self, attachment: EdgeAttachment) -> None:
        self.reports.moved(attachment.incoming_session, attachment.subscriber)
        self.delivery_audit.request(attachment, attachment.incoming_session)
        attachment.incoming_session = ""
        self.attachments.queues.live(attachment)

    def on_resumed(self, attachment: EdgeAttachment) -> None:
        """By replay a subscriber moves with its RESUME, if that named the session; the audit begins here."""
        if attachment.counts_from is not None:
            self.delivery_audit.request(attachment, attachment.moved_by)

    def on_buffer_full(self, attachment: EdgeAttachment) -> None:
        """Close it: the subscriber drains the source, and resumes at END from the cut (docs/handover.md, 9)."""
        self.host.counters["holds_full"] += 1
        self.attachments.close_and_notify(
            attachment, "hold", "more was held than your queue may have; stay at the source until END"
        )

    # -- ends

    def on_abort(self, abort: msg.Abort) -> None:
        gone = []
        for item in abort.members:
            self.slots.free(item.subscriber, abort.session)
            if self._is_arriving(item.subscriber, abort.session, *AttachmentState):
                gone.append(self.attachments.by_subscriber[item.subscriber])
        self.attachments.evict(gone, "session", OFF)

    def on_force_detach(self, detach: msg.ForceDetach) -> None:
        """Close the members that have not come: `drain_seconds` after the cut are over. Their places stay under lease.

        DONE has been sent for a member that is live here. Across clusters it may have been lost with a link between
        heads, so it is sent again.
        """
        for item in detach.members:
            self.slots.free(item.subscriber, detach.session)
            attachment = self.attachments.by_subscriber.get(item.subscriber)
            if attachment is None or attachment.epoch != _epoch_at_target(item):
                continue
            if attachment.incoming_session == detach.session:
                self.attachments.close_and_notify(attachment, "parted", TOO_LONG)
            else:
                self.reports.moved(detach.session, item.subscriber)

    def on_orphan(self, orphan: msg.Orphan) -> None:
        """The head that decides this session has restarted, or cannot be reached."""
        gone = []
        for x in orphan.members:
            self.slots.free(x, orphan.session)
            if self._is_arriving(x, orphan.session, AttachmentState.STANDBY, AttachmentState.CUTTING):
                gone.append(self.attachments.by_subscriber[x])
            elif self._is_arriving(x, orphan.session, AttachmentState.BUFFERING):
                # It has been cut: this edge is its owner, so its place stays, under lease, for its RESUME.
                self.attachments.close_and_notify(self.attachments.by_subscriber[x], "session", OFF)
        self.attachments.evict(gone, "session", OFF)

    def leave(self) -> None:
        """Take no more subscribers in: this edge is leaving."""
        refused = defaultdict(list)
        for x, slot in self.slots.items():
            refused[slot.session].append(x)
        self.slots.clear()
        for attachment in [each for each in self.attachments.by_subscriber.values() if each.incoming_session]:
            self.attachments.close_and_notify(attachment, "leaving", REFUSALS["leaving"])
        for session, members in refused.items():
            self.host.up(msg.HandoverRejected(session, members, f"{self.host.config.name} is leaving"))

    def restart(self) -> None:
        """Forget all sessions, as the restarted head has. Their attachments have been evicted before."""
        self.delivery_audit.restart()
        self.publisher_audit.restart()
        self.slots.clear()
        self.reports.clear()


def _epoch_at_target(item: msg.MemberItem) -> tuple[int, int]:
    """The owner epoch that a member has at the target: a cut raises it by 1."""
    incarnation, n = item.epoch
    return incarnation, n + 1
