"""The source of a hand-over: it sends its subscribers to the target, and ends their streams at the cut.

Rules (docs/handover.md, 3 to 5):
- Only an attachment with the owner epoch that the head names is touched; with any other it is older, or newer.
- A member that is not served here is reported with a code (`core/protocol/departures.py`): at START_MOVE, and when its
  attachment closes between MOVE_TO and the cut. An ABORT that asks is answered for every member, served or not.
- CUT is a point in the stream. What came before it reaches the subscriber ahead of END, from its queue or from the
  head's log; nothing after it does.
- Within a cluster the cut ends the subscriber's place here, unless the head asks that it be kept. Across clusters it
  stays in the cover until RELEASE: if the subscriber has to resume at this head, the log must have everything for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from plimsoll.core.edge.attachment import SERVED, TOO_LONG, AttachmentState, EdgeAttachment, PendingEnd
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.protocol import departures, wire
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import AWAY, LEFT
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.wire import Token
from plimsoll.core.transport.link import Link

NOT_CONNECTED = f"{AWAY}: its client is not connected to the source"
UNKNOWN_HERE = f"{LEFT}: is not known at the source any more"
LEAVES = f"{LEFT}: another edge serves it, or takes it over"
STAYS = f"{departures.SERVED}: is served as before"
NOT_IN_TIME = "does not keep up at the source, or is in another session there"
BEHIND = (AttachmentState.BLOCKED, AttachmentState.CATCHUP)


class HandoverSource:
    """An edge's side of the hand-overs that take subscribers away."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable) -> None:
        self.host, self.attachments = host, attachments

    def _of(self, item: msg.MemberItem) -> EdgeAttachment | None:
        """The attachment that the head means, closed or not, if it is still in that owner epoch."""
        record = self.attachments.by_subscriber.get(item.subscriber)
        return record if record is not None and record.epoch == item.epoch else None

    def on_start_move(self, move: msg.StartMove) -> None:
        stay: defaultdict[str, list[str]] = defaultdict(list)
        told: defaultdict[Link, list[msg.MoveToItem]] = defaultdict(list)
        for item in move.members:
            attachment = self._of(item)
            if (
                attachment is None
                or attachment.state is not AttachmentState.LIVE
                or attachment.outgoing_session not in ("", move.session)
            ):
                stay[self._why_not(item.subscriber)].append(item.subscriber)
                continue
            attachment.outgoing_session = move.session
            told[attachment.link].append(msg.MoveToItem(attachment.id, attachment.epoch))
        for link, members in told.items():
            self.host.say(link, msg.MoveTo(move.session, members, move.edge, move.endpoint, move.public_key))
        for why, subscribers in stay.items():
            self.host.up(msg.HandoverRejected(move.session, subscribers, why))

    def _why_not(self, subscriber: str) -> str:
        """Why a subscriber cannot be moved, as HANDOVER_REJECTED says it."""
        attachment = self.attachments.by_subscriber.get(subscriber)
        if attachment is None:
            return UNKNOWN_HERE
        return NOT_CONNECTED if attachment.state is AttachmentState.CLOSED else NOT_IN_TIME

    def report_closed(self) -> None:
        """Report members whose client has gone in this round. One that has attached again is the head's to judge."""
        closed, self.attachments.interrupted = self.attachments.interrupted, []
        by_session: defaultdict[str, list[str]] = defaultdict(list)
        for attachment in closed:
            if self.attachments.by_subscriber.get(attachment.subscriber) is attachment:
                by_session[attachment.outgoing_session].append(attachment.subscriber)
            attachment.outgoing_session = ""
        for session, members in by_session.items():
            self.host.up(msg.HandoverRejected(session, members, NOT_CONNECTED))

    # -- the cut

    def on_cut(self, cut: msg.Cut) -> None:
        """End the members' streams here. One that has fallen behind first fetches what is left up to here."""
        ending, gone = [], []
        for item in cut.members:
            attachment = self._of(item)
            if attachment is None or attachment.state is AttachmentState.ENDING:
                continue
            attachment.keeps_place = attachment.keeps_place and (cut.across or cut.keeps_place)
            if attachment.state is AttachmentState.LIVE or attachment.state in BEHIND:
                attachment.pending_end = PendingEnd(self.host.position, cut.session, cut.token)
                if attachment.state is AttachmentState.LIVE or attachment.position >= self.host.position:
                    ending.append(attachment)
            elif not attachment.keeps_place:
                gone.append(attachment)
        self.end(ending)
        self.attachments.evict(gone, "released", "another edge serves this subscriber now")

    def end(self, attachments: Iterable[EdgeAttachment]) -> None:
        """Queue END: all up to the cut is queued already. Stop matching them."""
        removes: list[int] = []
        at_once: defaultdict[tuple[Link, str, Token], list[int]] = defaultdict(list)
        for attachment in attachments:
            if attachment.pending_end is None:
                raise RuntimeError(f"{attachment.subscriber} has not been cut")
            (_, session, token), attachment.pending_end, attachment.outgoing_session = attachment.pending_end, None, ""
            self.attachments.cursor.leave(attachment)
            if not self.attachments.queues.end(attachment, partial(self._end, session, token, [attachment.id])):
                at_once[attachment.link, session, token].append(attachment.id)
            self.attachments.subscription_table.uninstall(attachment)
            if not attachment.keeps_place:
                removes += self.attachments.subscription_table.uncover(attachment)
        for (link, session, token), numbers in at_once.items():
            link.buffer.append(self._end(session, token, numbers))
            self.host.dirty[link] = None
        self.attachments.withdraw(removes)

    def on_cut_reached(self, attachment: EdgeAttachment) -> None:
        """End one that had fallen behind at its cut, and has caught up with it."""
        self.end([attachment])

    def _end(self, session: str, token: Token, numbers: list[int]) -> bytes:
        end = msg.End(session, token, numbers)
        self.host.count_said(end)
        return wire.encode(end)

    # -- other ends

    def on_abort(self, abort: msg.Abort) -> None:
        for item in abort.members:
            attachment = self._of(item)
            if (
                attachment is not None
                and attachment.outgoing_session == abort.session
                and attachment.state is not AttachmentState.CLOSED
            ):
                attachment.outgoing_session = ""
                self.host.say(attachment.link, msg.Stay(attachment.id, abort.session))
        if abort.ask:
            self._answer(abort)

    def _answer(self, abort: msg.Abort) -> None:
        """Say of each member whether it is served here: the head has no other way to know."""
        answers: defaultdict[str, list[str]] = defaultdict(list)
        for item in abort.members:
            answers[self._standing(item.subscriber)].append(item.subscriber)
        for reason, subscribers in answers.items():
            self.host.up(msg.HandoverRejected(abort.session, subscribers, reason))

    def _standing(self, subscriber: str) -> str:
        """Whether a subscriber is served here, in whatever owner epoch, as HANDOVER_REJECTED says it."""
        attachment = self.attachments.by_subscriber.get(subscriber)
        if attachment is None:
            return UNKNOWN_HERE
        if attachment.state is AttachmentState.CLOSED:
            return NOT_CONNECTED
        return STAYS if attachment.state in SERVED and attachment.pending_end is None else LEAVES

    def on_force_detach(self, part: msg.ForceDetach) -> None:
        """Close the members: `drain_seconds` are over, and what they have not taken is in the head's log."""
        for item in part.members:
            if (attachment := self._of(item)) is not None:
                self.attachments.close_and_notify(attachment, "parted", TOO_LONG)

    def on_revoke(self, revoke: msg.Revoke) -> None:
        """By replay: close the members at once. MOVED overtakes what their link has not sent yet (docs/handover.md, 5).

        REVOKE comes on the control socket, outside the stream, so one of an older head epoch may still arrive.
        """
        if revoke.head_epoch != self.host.head_epoch:
            return
        by_link: defaultdict[Link, list[EdgeAttachment]] = defaultdict(list)
        for item in revoke.members:
            attachment = self._of(item)
            if attachment is not None and attachment.state not in (
                AttachmentState.CLOSED,
                AttachmentState.STANDBY,
                AttachmentState.ENDING,
            ):
                by_link[attachment.link].append(attachment)
        for link, attachments in by_link.items():
            self._revoke(revoke, link, attachments)

    def _revoke(self, revoke: msg.Revoke, link: Link, attachments: list[EdgeAttachment]) -> None:
        queued = {prefix for each in attachments for prefix in (each.deliver_prefix, each.epoch_prefix)}
        numbers = [attachment.id for attachment in attachments]
        for attachment in attachments:
            self.attachments.close(attachment)
        moved = msg.Moved(numbers, revoke.edge, revoke.endpoint, revoke.public_key, revoke.session)
        self.host.count_said(moved)
        link.buffer[:] = [
            wire.encode(moved),
            *(record for record in link.buffer if record[:PREFIX_BYTES] not in queued),
        ]
        self.attachments.by_link[link].recount()
        self.host.dirty[link] = None

    def restart(self) -> None:
        """Forget all sessions, as the restarted head has."""
        self.attachments.interrupted = []
        for attachment in self.attachments.by_subscriber.values():
            attachment.outgoing_session = ""
