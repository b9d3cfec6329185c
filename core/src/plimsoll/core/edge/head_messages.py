"""What the head sends in its stream, but for publications: positions, gaps, acknowledgements and hand-overs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from plimsoll.core.edge.attachment import REFUSALS, AttachmentState
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.catchup_replay import CatchupReplay
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.name_claims import HERE, ClaimTable, in_records
from plimsoll.core.permissions import NOT_PERMITTED
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

HeadMessage = (
    msg.Gap | msg.Progress | msg.CoverAck | msg.ResumedDown | msg.Release | msg.Replay | msg.Fetched | msg.Welcome
    | msg.Prepare | msg.StartMove | msg.Install | msg.Installed | msg.Cut | msg.Abort | msg.ForceDetach | msg.Orphan
    | msg.MediatorEpoch | msg.ExpectedDeliveries | msg.PublisherAuditStart | msg.NameClaims
)  # fmt: skip
"""ToEdge without PubOpen, which the edge delivers itself."""


class HeadMessages:
    """Dispatches by type. `mediator_epoch`: the highest known, which a head that restarts learns again from here.

    `position_epoch`: the head epoch that the edge's position is of. `publisher_claims`, `subscriber_claims`: whose
    names are, as the head has said; a head that restarts learns this again from here, too.
    """

    def __init__(
        self,
        host: EdgeContext,
        attachments: AttachmentTable,
        source: HandoverSource,
        target: HandoverTarget,
        replay: CatchupReplay,
    ) -> None:
        self.host, self.attachments = host, attachments
        self.source, self.target, self.replay = source, target, replay
        self.mediator_epoch = 0
        self.position_epoch = 0
        lease_seconds = host.config.limits.lease_seconds * host.config.time_factor
        self.publisher_claims, self.subscriber_claims = ClaimTable(lease_seconds), ClaimTable(lease_seconds)
        self._lag_until = 0.0

    @property
    def lagging(self) -> bool:
        """Whether this edge has lately lost publications because it fell behind the head's log."""
        return self.host.now < self._lag_until

    def handle(self, message: HeadMessage) -> None:
        """Deal with one message. The frequent ones come first: cases are tried in order."""
        match message:
            case msg.Progress():
                self.host.position = max(self.host.position, message.position)
            case msg.Replay():
                self.replay.on_replay(message)
            case msg.Gap():
                self._on_gap(message)
            case msg.CoverAck():
                self._on_cover_ack(message)
            case msg.ResumedDown():
                self._on_resumed(message)
            case msg.Release():
                self._on_release(message)
            case msg.Fetched():
                self.replay.on_fetched(message)
            case msg.Welcome():
                self._on_welcome(message)
            case msg.Prepare():
                self.target.on_prepare(message)
            case msg.StartMove():
                self.source.on_start_move(message)
            case msg.Install():
                self.target.on_install(message)
            case msg.Installed():
                self.target.on_installed(message)
            case msg.Cut():
                self.source.on_cut(message)
            case msg.Abort():
                self._on_abort(message)
            case msg.ForceDetach():
                self._on_force_detach(message)
            case msg.Orphan():
                self.target.on_orphan(message)
            case msg.MediatorEpoch():
                self.mediator_epoch = max(self.mediator_epoch, message.epoch)
            case msg.ExpectedDeliveries():
                self.target.delivery_audit.on_expected(message)
            case msg.PublisherAuditStart():
                self.target.publisher_audit.on_start(message)
            case msg.NameClaims():
                self._hear(self.publisher_claims, message.publishers)
                self._hear(self.subscriber_claims, message.subscribers)
            case _:
                assert_never(message)

    # -- whose names are

    def _hear(self, claims: ClaimTable, said: list[msg.NameClaim]) -> None:
        for claim in said:
            claims.hear(claim, HERE, self.host.now)
        claims.take_news(self.host.now)

    def all_claims(self) -> Iterator[msg.NameClaims]:
        """What a head may have forgotten."""
        now = self.host.now
        return in_records(self.publisher_claims.all(now), self.subscriber_claims.all(now))

    def expire_claims(self) -> None:
        """Forget what has not been used for long."""
        self.publisher_claims.expire(self.host.now)
        self.subscriber_claims.expire(self.host.now)

    # -- the stream

    def _on_gap(self, gap: msg.Gap) -> None:
        self.host.position = max(self.host.position, gap.high)
        if gap.reason == "log" and gap.head == self.host.config.head_name:
            limits, factor = self.host.config.limits, self.host.config.time_factor
            self._lag_until = self.host.now + 2 * limits.report_seconds * factor
        self.host.counters["gaps_in"] += 1
        piece = wire.encode(gap)
        for attachment in self.attachments.by_subscriber.values():
            # Before INSTALLED and before RESUMED the positions of this stream are not yet this subscriber's.
            if attachment.state in (AttachmentState.LIVE, AttachmentState.BUFFERING):
                attachment.out.append(attachment.deliver_prefix + piece)
                self.host.dirty[attachment.link] = None

    def _on_welcome(self, welcome: msg.Welcome) -> None:
        """A head has restarted: LIVE subscribers get a gap from their token to here, all epochs between included.

        With `start` the stream goes on behind that position, and nothing is missing: their gap is empty.
        """
        position = welcome.position if welcome.start is None else welcome.start
        self.host.head_endpoint = welcome.endpoint
        gap = msg.Gap(
            self.host.config.head_name,
            self.position_epoch if welcome.start is None else self.host.head_epoch,
            position + 1 if welcome.start is not None else self.host.position + 1,
            self.host.head_epoch,
            position,
            [],
            "restart",
        )
        self.host.position, self.position_epoch = position, self.host.head_epoch
        for link_attachments in self.attachments.by_link.values():
            link_attachments.progress_sent = 0  # positions of the new epoch may begin at 1 again
        for attachment in self.attachments.by_subscriber.values():
            if welcome.start is None:
                attachment.last_position = 0
            if attachment.state is AttachmentState.LIVE:
                attachment.out.append(attachment.epoch_prefix + wire.encode(gap))
                if not attachment.queue:
                    attachment.front_epoch = self.host.head_epoch
                self.host.dirty[attachment.link] = None

    def _on_cover_ack(self, ack: msg.CoverAck) -> None:
        for link, suback in self.attachments.pending_subacks.acknowledged(ack.seq, ack.unreached):
            self.host.say(link, suback)

    def _on_resumed(self, resumed: msg.ResumedDown) -> None:
        self.host.position = max(self.host.position, resumed.position)
        attachment = self.attachments.by_subscriber.get(resumed.subscriber)
        if attachment is None or attachment.epoch != resumed.epoch:
            return
        attachment.since, attachment.position = resumed.since, resumed.start
        attachment.is_again, attachment.is_verified = resumed.is_again, True
        if resumed.is_awaited:
            self.host.up(msg.PlaceTaken(resumed.subscriber, resumed.epoch))
        attachment.front_epoch = self.host.head_epoch
        if attachment.state is not AttachmentState.RESUMING:
            return
        head, epoch = self.host.config.head_name, self.host.head_epoch
        # RESUMED goes ahead of every delivery: what came before it on this link was of another place in the log.
        self.host.say(
            attachment.link,
            msg.Resumed(attachment.id, head, epoch, resumed.start, resumed.gap, resumed.lapsed, resumed.lease_seconds),
        )
        self.target.on_resumed(attachment)
        if resumed.start >= resumed.position:
            self.attachments.queues.live(attachment)
        else:
            self.attachments.cursor.join(attachment)

    def _on_release(self, release: msg.Release) -> None:
        attachment = self.attachments.by_subscriber.get(release.subscriber)
        if attachment is not None and release.code:
            if attachment.epoch == release.epoch:
                if release.code == NOT_PERMITTED:
                    self.target.claims.refused(release.subscriber, attachment.identity)
                self.attachments.evict([attachment], release.code, release.text)
        elif attachment is not None and attachment.epoch < release.epoch:
            if attachment.epoch[0] < release.used:
                self.attachments.evict([attachment], "epoch", REFUSALS["epoch"], release.used)
            else:
                self.attachments.evict([attachment], "released", "another edge serves this subscriber now")

    # -- hand-overs that this edge may be the source or the target of

    def _on_abort(self, abort: msg.Abort) -> None:
        self.source.on_abort(abort)
        self.target.on_abort(abort)

    def _on_force_detach(self, detach: msg.ForceDetach) -> None:
        self.source.on_force_detach(detach)
        self.target.on_force_detach(detach)
