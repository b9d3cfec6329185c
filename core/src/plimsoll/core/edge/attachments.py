"""The attachments of an edge, by subscriber and by link, from their opening until their place ends.

Rules:
- A subscriber has one attachment here. A closed one has no queue and is not matched; its place (its entry and its
  cover) stays until the head releases it or its lease ends, unless `keeps_place` is false.
- Messages to the head keep the order in which a round has gathered them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SERVED, AttachmentState, EdgeAttachment, LinkAttachments
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.edge.kept_places import keep_place, place_left
from plimsoll.core.edge.pending_subacks import PendingSubacks
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.edge.subscription_table import Numbered, SubscriptionTable
from plimsoll.core.identity_shares import NamesByIdentity
from plimsoll.core.permissions import NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import owner_identity
from plimsoll.core.transport.link import Link


class EdgeContext(Protocol):
    """What every part of an edge may use of it: time, place in the log, configuration, and both directions."""

    now: float
    position: int
    head_epoch: int
    head_endpoint: str
    public_key: str
    config: BrokerConfig
    counters: Counter[str]
    keys_of: Callable[[str], list[str]]
    name_grants: NameGrants
    dirty: dict[Link, None]

    @property
    def is_leaving(self) -> bool: ...
    def say(self, link: Link, message: msg.ToClient, /) -> None: ...
    def count_said(self, message: msg.ToClient, /) -> None: ...
    def up(self, message: msg.FromEdge, /) -> None:
        """Send to the head, in order with what this round has gathered for it."""


class AttachmentTable:
    """Opens, installs and closes attachments. `by_subscriber` has closed ones too, as long as they keep their place.

    `interrupted`: those that were sent MOVE_TO and closed before their cut, in this round.
    """

    def __init__(
        self,
        host: EdgeContext,
        subscription_table: SubscriptionTable,
        by_link: dict[Link, LinkAttachments],
        cursor: CatchupCursor,
        queues: DeliveryQueues,
    ) -> None:
        self.host, self.subscription_table, self.by_link = host, subscription_table, by_link
        self.cursor, self.queues = cursor, queues
        self.pending_subacks = PendingSubacks()
        self.by_subscriber: NamesByIdentity[EdgeAttachment] = NamesByIdentity()
        self.interrupted: list[EdgeAttachment] = []

    def attached(self, link: Link, attachment_id: int) -> EdgeAttachment | None:
        """The attachment that a client means by this number on this link."""
        link_attachments = self.by_link.get(link)
        return link_attachments.by_id.get(attachment_id) if link_attachments else None

    # -- opening

    def open(self, link: Link, asked: msg.Resume | msg.AttachItem) -> EdgeAttachment:
        """Open an attachment, with no subscription taken or installed yet; an older use of its number is over."""
        self.vacate(link, asked.attachment)
        attachment = EdgeAttachment(
            asked.subscriber, asked.attachment, link, asked.epoch, asked.version, self.queues.void
        )  # fmt: skip
        attachment.identity = owner_identity(asked.subscriber, link.identity)
        attachment.lease_seconds = asked.lease_seconds
        attachment.apply(asked.policy, self.host.config.limits, self.host.config.time_factor)
        self.by_subscriber[asked.subscriber] = self.by_link[link].by_id[attachment.id] = attachment
        return attachment

    def vacate(self, link: Link, attachment_id: int) -> None:
        """Close the attachment that has this number: the client uses the number again."""
        if (other := self.attached(link, attachment_id)) is not None:
            self.close_and_notify(other, "replaced", "its attachment number was used again")

    def install(self, taken: Mapping[EdgeAttachment, list[Numbered]], removes: Iterable[int] = ()) -> msg.Cover:
        """Match what was taken, and announce it in one numbered covering update that SUBACK waits for.

        Sends all parts of the update but the last, and returns that: it is for the message that completes the step.
        """
        *first, last = self._install(taken, removes)
        for part in first:
            self.host.up(part)
        for attachment in taken:
            self.pending_subacks.ask(last.seq, attachment, attachment.version)
        return last

    def install_part(
        self, attachment: EdgeAttachment, taken: list[Numbered], removes: Iterable[int] = ()
    ) -> list[msg.Cover]:
        """The same for a part that no SUBACK waits for: its change is not complete, or it is on standby."""
        return self._install({attachment: taken}, removes)

    def _install(self, taken: Mapping[EdgeAttachment, list[Numbered]], removes: Iterable[int]) -> list[msg.Cover]:
        for attachment, numbered in taken.items():
            self.subscription_table.install(attachment, numbered)
            attachment.is_covered = True
        return self.subscription_table.step([pair for numbered in taken.values() for pair in numbered], removes)

    def announce(self, attachment: EdgeAttachment, cover: msg.Cover) -> None:
        """Send the last covering update of a change of a list, behind the list itself if the head is to keep it."""
        self.keep(attachment)
        self.host.up(cover)

    def keep(self, attachment: EdgeAttachment) -> None:
        """Send the head the list of an attachment, if it is to keep a place for it."""
        for part in keep_place(attachment):
            self.host.up(part)

    # -- closing

    def close(self, attachment: EdgeAttachment) -> None:
        """Detach it. If it keeps its place, that stays until the head releases it or its lease ends."""
        if attachment.state is AttachmentState.CLOSED:
            return
        for left in place_left(attachment, self.host.position):
            self.host.up(left)
        self.cursor.leave(attachment)
        if attachment.outgoing_session and attachment.pending_end is None:
            self.interrupted.append(attachment)
        attachment.state, attachment.closed_at, attachment.out = AttachmentState.CLOSED, self.host.now, self.queues.void
        attachment.clear()
        self.pending_subacks.forget(attachment)
        self.subscription_table.uninstall(attachment)
        if (link_attachments := self.by_link.get(attachment.link)) is not None:
            link_attachments.queued.pop(attachment, None)
            if link_attachments.by_id.get(attachment.id) is attachment:
                del link_attachments.by_id[attachment.id]
        if not attachment.keeps_place:
            self.drop([attachment])

    def close_and_notify(self, attachment: EdgeAttachment, code: str, text: str, used: int = 0) -> None:
        """Close an attachment from this side; the client learns of it ahead of what was queued."""
        if attachment.state is not AttachmentState.CLOSED:
            self.close(attachment)
            # Even if the link has no connection now: it may come back, and the client still counts on its attachment.
            self.host.say(attachment.link, msg.AttachmentClosed(attachment.id, code, text, used))

    def send_elsewhere(self, attachments: Iterable[EdgeAttachment]) -> None:
        """Close attachments; their subscribers ask the head for another edge, and go on from their tokens."""
        moved: defaultdict[Link, list[int]] = defaultdict(list)
        for attachment in list(attachments):
            # One that has been cut goes to its target at END; MOVED would call it to another edge.
            if attachment.state in SERVED and attachment.pending_end is None:
                moved[attachment.link].append(attachment.id)
                self.close(attachment)
        for link, numbers in moved.items():
            self.host.say(link, msg.Moved(numbers, "", "", ""))

    def drop(self, attachments: Iterable[EdgeAttachment]) -> None:
        """Forget closed attachments, and withdraw their cover."""
        removes = []
        for attachment in attachments:
            if self.by_subscriber.get(attachment.subscriber) is attachment:
                del self.by_subscriber[attachment.subscriber]
                removes += self.subscription_table.uncover(attachment)
        self.withdraw(removes)

    def withdraw(self, removes: list[int]) -> None:
        """Take these numbers out of the cover, in bounded steps from the end of this round on."""
        self.subscription_table.retire(removes)

    def disconnect(self, attachment: EdgeAttachment) -> None:
        """Apply the policy `disconnect`: the subscriber loses its place, at its head too."""
        self.host.counters["subscribers_disconnected"] += 1
        why = "the subscriber did not keep up; its policy is to be disconnected"
        self.close_and_notify(attachment, "slow", why)
        self.host.up(msg.Forget(attachment.subscriber, attachment.epoch))
        self.drop([attachment])

    def evict(self, attachments: Iterable[EdgeAttachment], code: str, text: str, used: int = 0) -> None:
        """Close and forget: neither entry nor cover of these stays here. `used`: as in ATTACHMENT_CLOSED."""
        gone = list(attachments)
        for attachment in gone:
            self.close_and_notify(attachment, code, text, used)
        self.drop(gone)

    def keep_places(self, attachments: Iterable[EdgeAttachment], code: str, text: str) -> None:
        """Close those that are open; entry and cover of all stay, and a lease that was asked to end is asked again."""
        for attachment in attachments:
            self.close_and_notify(attachment, code, text)
            attachment.expiring = False

    # -- time

    def send_progress(self) -> None:
        """Send subscribers the position of the stream: an idle one's token would otherwise age into a false gap."""
        for link_attachments in self.by_link.values():
            is_new = link_attachments.by_id and link_attachments.progress_sent < self.host.position
            # Ahead of a buffer that is stuck PROGRESS would speak of publications that have not been sent.
            if is_new and link_attachments.stuck_since is None:
                link_attachments.progress_sent = self.host.position
                self.host.say(link_attachments.link, msg.Progress(self.host.position, link_attachments.lagging()))

    def expire_leases(self) -> None:
        """Ask the head to end places whose lease is over. It compares epochs: the subscriber may be back elsewhere."""
        lease = self.host.config.limits.lease_seconds * self.host.config.time_factor
        for attachment in self.by_subscriber.values():
            if (
                attachment.state is AttachmentState.CLOSED
                and not attachment.expiring
                and self.host.now - attachment.closed_at > lease
            ):
                attachment.expiring = True
                self.host.up(msg.Expire(attachment.subscriber, attachment.epoch))
