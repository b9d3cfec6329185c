"""What an edge tells its head of subscribers whose place is to be kept for longer than edges keep it.

Rules:
- A list goes to the head ahead of the cover that announces it, and ahead of what makes this edge the owner: so a list
  that is acknowledged is one that the head keeps.
- A head that has recovered is sent all lists again, ahead of the report: a change may have been lost on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.protocol import messages as msg

PART_CHARACTERS = 200_000
"""Of the subscriptions of one KEEP_PLACE: with its name it fits into a frame, whatever has to be escaped."""


def keep_place(attachment: EdgeAttachment, left: int | None = None) -> Iterator[msg.KeepPlace]:
    """The list of an attachment, in parts; nothing if its place is not to be kept for long.

    `left`: its client has gone, and had been sent the log up to there.
    """
    if not attachment.lease_seconds:
        return
    part: list[str] = []
    size = 0
    for text in sorted({str(subscription) for subscription, _ in attachment.subscriptions.values()}):
        if part and size + len(text) > PART_CHARACTERS:
            yield _record(attachment, part, left, more=True)
            part, size = [], 0
        part.append(text)
        size += len(text)
    yield _record(attachment, part, left, more=False)


def _record(attachment: EdgeAttachment, texts: list[str], left: int | None, *, more: bool) -> msg.KeepPlace:
    grant = attachment.link.grant
    return msg.KeepPlace(
        attachment.subscriber, attachment.epoch, attachment.lease_seconds, texts, attachment.identity,
        grant.max_durable_subscribers or 0, grant.max_held_back_bytes or 0, more,
        left, bool(attachment.incoming_session),
    )  # fmt: skip


def place_left(attachment: EdgeAttachment, position: int) -> Iterator[msg.PlaceLeft]:
    """That a subscriber has gone away. `position`: of the stream."""
    if attachment.lease_seconds and attachment.is_verified and attachment.keeps_place:
        yield msg.PlaceLeft(attachment.subscriber, attachment.epoch, _had(attachment, position))


def _had(attachment: EdgeAttachment, position: int) -> int:
    """How far of the log the client has been sent. `position`: of the stream."""
    return min(position if attachment.state is AttachmentState.LIVE else attachment.position, position)


def kept_again(attachments: Iterable[EdgeAttachment], position: int) -> Iterator[msg.KeepPlace]:
    """All lists, ahead of the report to a head that has recovered, and which of them are away."""
    for attachment in attachments:
        if attachment.is_verified:
            is_away = attachment.state is AttachmentState.CLOSED
            yield from keep_place(attachment, _had(attachment, position) if is_away else None)


def left_again(attachments: Iterable[EdgeAttachment], position: int) -> Iterator[msg.PlaceLeft]:
    """Behind that report: which of them are away."""
    for attachment in attachments:
        if attachment.state is AttachmentState.CLOSED:
            yield from place_left(attachment, position)
