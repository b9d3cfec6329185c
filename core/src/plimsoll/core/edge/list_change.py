"""A change of a subscriber's list, in parts of bounded work: read, installed and announced, and at last confirmed.

Rules:
- Whatever the list had is matched until all that replaces it is: additions first, in as many parts as they take, and
  removals with the last part. A subscription that has arrived and is not confirmed stands in the list under its number
  with a minus sign.
- A subscription whose text is read for longer than a part has a turn for that, and is taken in the next one. Between
  parts nothing is taken and not installed, since the attachment may end there.
- Every part is a covering update of its own (P4 in docs/handover.md, 1). SUBACK waits for the last.
- A subscriber that is closed, or cut, in the middle of a change keeps what has been installed until its place ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from plimsoll.core import predicates
from plimsoll.core.covering.cover_set import reading_units
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.subscription_table import Numbered
from plimsoll.core.predicates import Subscription
from plimsoll.core.protocol import messages as msg

PART_UNITS = 2_000
"""Work after which a part ends; a unit is some quarter of a microsecond."""
REFUSAL_CHARACTERS = 300
"""Of what is said about a subscription that is refused: it may quote the text, which may be long."""
CHANGE_UNITS = 40
"""Of any change, also of one that changes nothing: it is announced, and answered."""


class ListChange:
    """Makes the changes of lists at one edge."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable) -> None:
        self.host, self.attachments, self.table = host, attachments, attachments.subscription_table

    def apply(
        self,
        attachment: EdgeAttachment,
        adds: Sequence[msg.SubscriptionItem],
        removes: Iterable[int],
        version: int,
        announce: Callable[[msg.Cover], None],
    ) -> Iterator[int]:
        """Change a list; yields the units of work of each part. `announce` sends the last covering update.

        With it goes what the list before had: until then that counts, though the change may end before.
        """
        leaving = set(removes)
        taken: list[Numbered] = []
        units = 0
        for item in adds:
            read = reading_units(item.text)
            is_long = read >= PART_UNITS
            if units >= PART_UNITS or (is_long and taken):
                yield max(units + self._part(attachment, taken), PART_UNITS)
                taken, units = [], 0
                if not is_changeable(attachment):
                    return
            subscription = None
            if is_long:
                subscription = self._read(attachment, item, version)
                yield read
                if not is_changeable(attachment):
                    return
                if subscription is None:
                    continue
                read = CHANGE_UNITS
            self._take(attachment, item, leaving, version, taken, subscription)
            units += read
        replaced, attachment.replaced = attachment.replaced, []
        gone = replaced + self.table.confirm(attachment, leaving)
        attachment.version = version
        announce(self.attachments.install({attachment: taken}, gone))
        yield CHANGE_UNITS + units + self.table.units_spent

    def _read(self, attachment: EdgeAttachment, item: msg.SubscriptionItem, version: int) -> Subscription | None:
        """Read one subscription, or refuse it alone."""
        try:
            return predicates.parse(item.text)
        except ValueError as error:
            self._refuse(attachment, item, version, error)
            return None

    def _take(
        self,
        attachment: EdgeAttachment,
        item: msg.SubscriptionItem,
        leaving: set[int],
        version: int,
        taken: list[Numbered],
        subscription: Subscription | None,
    ) -> None:
        """Take one subscription, which may have been read, or refuse it alone."""
        try:
            taken.append(self.table.take(attachment, item, leaving, subscription))
        except ValueError as error:
            self._refuse(attachment, item, version, error)

    def _refuse(self, attachment: EdgeAttachment, item: msg.SubscriptionItem, version: int, error: ValueError) -> None:
        self.host.counters["subscriptions_refused"] += 1
        self.host.say(attachment.link, msg.SubRefused(attachment.id, version, item.id, str(error)[:REFUSAL_CHARACTERS]))

    def _part(self, attachment: EdgeAttachment, taken: list[Numbered]) -> int:
        """Install and announce what has been taken so far; returns the units of work."""
        for cover in self.attachments.install_part(attachment, taken):
            self.host.up(cover)
        return self.table.units_spent


def is_changeable(attachment: EdgeAttachment) -> bool:
    """Whether its list still counts here: after the cut the target answers."""
    is_over = attachment.state in (AttachmentState.CLOSED, AttachmentState.ENDING)
    return not is_over and attachment.pending_end is None
