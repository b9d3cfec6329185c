"""Records of an edge for the subscribers on its link: deliveries, and changes of their attachments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol, assert_never

from plimsoll.core.client.attachment import ClientAttachmentState
from plimsoll.core.client.edge_finder import DetachingDirectory, EdgeFinder
from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.handover import FINAL_CODES, ClientHandovers, begin_tally, is_serving, target_of
from plimsoll.core.client.records import UNREADABLE, pass_over
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, Port
from plimsoll.core.permissions import INCARNATIONS_BELOW, NOT_PERMITTED
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

CONFLICTS_AT_MOST = 8
"""Attachments refused in a row for their owner epoch, after which the name is taken to be another process's."""

FIRST_CONFLICTS_AT_MOST = 20
"""The same before the first attachment, with the pauses between them about a minute: the process that has the name may
have been killed, and brokers have to notice, and its lease to end, before they say under which incarnation to go on."""

OfAttachment = msg.Resumed | msg.Suback | msg.SubRefused | msg.Epoch | msg.AttachmentClosed | msg.Stay
OfEdge = (
    msg.Progress | msg.Moved | msg.MoveTo | msg.Held | msg.End | msg.AuditQuery | msg.CountPublishers | OfAttachment
)
OfHead = (
    msg.Opened | msg.Accepted | msg.Refused | msg.Credit | msg.Unconfirmed | msg.Placed | msg.Unplaced
    | msg.GroupRefused
)  # fmt: skip


class RecordsHost(Protocol):
    """The interface to the client for its edges' records."""

    now: float
    counters: Counter[str]

    def guard(self, owner: ClientSubscriber, action: Callable[[], object], /) -> None: ...
    @property
    def subscribers_at_edges(self) -> DetachingDirectory: ...


class EdgeRecords:
    """Splits edges' frames into records, and passes each to its part of the client."""

    def __init__(self, client: RecordsHost, ports: EdgePorts, finder: EdgeFinder, handovers: ClientHandovers) -> None:
        self._client, self._ports, self._finder, self._handovers = client, ports, finder, handovers

    def on_frame(self, port: Port, frame: wire.Data, size: int) -> None:
        """Hot path: the records of one frame. A delivery is the first case.

        Raises:
            WireError: a record is broken.

        """
        decode, attachments, now = msg.to_client.decode, port.attachments, self._client.now
        size //= len(frame.records) or 1
        for raw in frame.records:
            try:
                record = decode(raw)
            except UNREADABLE as error:
                pass_over(raw, error, self._client.counters)
                continue
            if isinstance(record, msg.Deliver):
                attachment = attachments.get(record.attachment)
                # Records under way still arrive for an ended attachment, and must be ignored.
                if attachment is None or attachment.state is not ClientAttachmentState.LIVE:
                    self._client.counters["records_for_unknown_attachments"] += 1
                else:
                    try:
                        attachment.take(attachment, record.item, size, now)
                    except wire.WireError:
                        raise
                    except Exception as error:  # noqa: BLE001  # as `guard`, without a call for each delivery
                        self._client.guard(attachment.subscriber, partial(_raise, error))
            else:
                self.on_record(port, record)

    def on_record(self, port: Port, record: OfEdge | OfHead) -> None:
        match record:
            case msg.Progress():
                self._on_progress(port, record)
            case msg.Resumed() | msg.Suback() | msg.SubRefused() | msg.Epoch() | msg.AttachmentClosed() | msg.Stay():
                for attachment in self._ports.attachments(port, (record.attachment,)):
                    self._on_attachment(attachment, record)
            case msg.Moved():
                for attachment in self._ports.attachments(port, record.attachments):
                    self._redirect(attachment, record)
            case msg.MoveTo():
                self._handovers.on_move_to(port, record)
            case msg.Held():
                self._handovers.on_held(port, record)
            case msg.End():
                self._handovers.on_end(port, record)
            case msg.AuditQuery():
                self._handovers.on_count(port, record)
            case msg.CountPublishers():
                self._handovers.on_count_publishers(port, record)
            case (
                msg.Opened() | msg.Accepted() | msg.Refused() | msg.Credit() | msg.Unconfirmed() | msg.Placed()
                | msg.Unplaced() | msg.GroupRefused()
                | msg.SeeHead()
            ):  # fmt: skip
                self._client.counters["records_refused_misplaced"] += 1
            case _:
                assert_never(record)

    def _on_progress(self, port: Port, progress: msg.Progress) -> None:
        # Subscribers that are behind have earlier deliveries waiting at the edge, which their position must not pass.
        behind = set(progress.behind)
        for attachment in port.attachments.values():
            if attachment.state is ClientAttachmentState.LIVE and attachment.id not in behind:
                attachment.subscriber.stream.on_progress(attachment, progress.position)

    def _on_attachment(self, attachment: Attachment, record: OfAttachment) -> None:
        match record:
            case msg.Resumed():
                self._on_resumed(attachment, record)
            case msg.Suback():
                self._on_suback(attachment, record)
            case msg.SubRefused():
                self._on_subrefused(attachment, record)
            case msg.Epoch():
                self._on_epoch(attachment, record)
            case msg.AttachmentClosed():
                self._on_closed(attachment, record)
            case msg.Stay():
                self._handovers.on_stay(attachment, record)
            case _:
                assert_never(record)

    def _on_resumed(self, attachment: Attachment, resumed: msg.Resumed) -> None:
        if attachment.state is ClientAttachmentState.RESUMING:
            attachment.subscriber.wake = 0
            attachment.subscriber.on_resumed(attachment, resumed, self._client.now)

    def _on_suback(self, attachment: Attachment, suback: msg.Suback) -> None:
        if (handover := target_of(attachment)) is not None:
            handover.holds(suback.version)
        attachment.subscriber.subscription_list.on_suback(attachment, suback)

    def _on_subrefused(self, attachment: Attachment, refused: msg.SubRefused) -> None:
        subscriber = attachment.subscriber
        if (handover := target_of(attachment)) is None:
            subscriber.counts["subscriptions_refused"] += subscriber.subscription_list.on_subrefused(refused)
        elif refused.id in subscriber.subscriptions:
            # The serving edge has taken it, or will refuse it itself: a hand-over withdraws no subscription.
            self._ports.say_detach(attachment)
            self._handovers.lose(attachment, handover, willing=True)

    def _on_epoch(self, attachment: Attachment, epoch: msg.Epoch) -> None:
        """The head has restarted, and knows of no hand-over."""
        if not is_serving(attachment):
            self._client.counters["records_refused_misplaced"] += 1
            return
        subscriber = attachment.subscriber
        self._handovers.leave(subscriber)
        subscriber.stream.on_gap(attachment, epoch.gap, self._client.now)
        subscriber.subscription_list.report_counting()

    def _redirect(self, attachment: Attachment, moved: msg.Moved) -> None:
        """Follow a redirect: to the edge that it names, or to one that the head names."""
        subscriber = attachment.subscriber
        if (handover := target_of(attachment)) is not None:
            self._handovers.lose(attachment, handover, willing=False)
            return
        subscriber.counts["redirects"] += 1
        if moved.session is not None:
            # A move by replay (docs/handover.md, 5): RESUME names the session, so that the head counts it as moved.
            subscriber.counts["moves"] += 1
            subscriber.session = moved.session
        self._finder.again(subscriber, "moved", exclude="" if moved.edge else attachment.port.edge, at_once=True)
        if moved.edge and moved.endpoint:
            if moved.session is not None:
                begin_tally(subscriber, moved.session)
            self._finder.attach(subscriber, moved.edge, moved.endpoint, moved.public_key)

    def _on_closed(self, attachment: Attachment, closed: msg.AttachmentClosed) -> None:
        """The edge has ended an attachment: the end of the subscriber, or only of its stay there."""
        subscriber, port = attachment.subscriber, attachment.port
        if (handover := target_of(attachment)) is not None:
            self._handovers.lose(attachment, handover, willing=closed.code not in FINAL_CODES)
            return
        if closed.code in ("slow", "policy", "range", "malformed", NOT_PERMITTED):
            self._fail(subscriber, closed.code, closed.text)
            return
        if closed.code in ("epoch", "released", "replaced"):
            # Two processes with one name would take the subscriber from each other endlessly.
            subscriber.conflicts += 1
            if subscriber.conflicts >= (CONFLICTS_AT_MOST if subscriber.again else FIRST_CONFLICTS_AT_MOST):
                text = (
                    f"subscriber {subscriber.name!r} is attached by another process, or was by one whose clock was "
                    "ahead; give each process names of its own, or see whether the clock of this machine has gone back"
                )
                self._fail(subscriber, "conflict", text)
                return
        if closed.used and _goes_above(subscriber, closed.used):
            self._finder.again(subscriber, closed.text, at_once=True)
            return
        is_held = closed.code == "hold"
        self._finder.again(
            subscriber, closed.text, exclude=port.edge if closed.code in FINAL_CODES else "", at_once=is_held
        )
        if is_held:
            # Its held deliveries are gone and END has come, so the rest is fetched from its head's log.
            self._finder.attach(subscriber, port.edge, port.endpoint, port.public_key)

    def _fail(self, subscriber: ClientSubscriber, code: str, text: str) -> None:
        self._client.subscribers_at_edges.detach(subscriber)
        subscriber.fail(code, text)


def _goes_above(subscriber: ClientSubscriber, used: int) -> bool:
    """Take an incarnation above one that an earlier life has left behind; whether that has changed anything.

    The clock of that life was ahead, and it is gone. One that has been attached in this life yields: it may be older
    than the one that has come after it. Epochs of slices are their head's.
    """
    is_own = subscriber.epoch[0] == subscriber.incarnation
    if subscriber.again or not is_own or not subscriber.incarnation <= used < INCARNATIONS_BELOW - 1:
        return False
    subscriber.incarnation = used + 1
    return True


def _raise(error: Exception) -> None:
    raise error
