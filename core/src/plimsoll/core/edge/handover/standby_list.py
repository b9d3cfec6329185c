"""The lists of attachments on standby: matched and announced from ATTACH on, in parts of bounded work.

Rules (docs/handover.md, 3, rule 6):
- Each part is installed, and announced by an ordinary covering update. What is matched goes nowhere before INSTALLED.
- All of a list is taken, or none of it: what cannot be taken ends the attachment, since at the source it counts.
- A change that is not complete at INSTALL goes on as any change does; it is answered by SUBACK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from plimsoll.core.covering.cover_set import reading_units
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.list_change import PART_UNITS, ListChange, is_changeable
from plimsoll.core.edge.subscription_table import Numbered
from plimsoll.core.protocol import messages as msg


class StandbyList:
    """`refuse` ends an attachment whose list cannot be taken, for the reason given."""

    def __init__(
        self, host: EdgeContext, attachments: AttachmentTable, refuse: Callable[[EdgeAttachment, str], None]
    ) -> None:
        self.host, self.attachments, self.refuse = host, attachments, refuse
        self.table = attachments.subscription_table
        self.list_change = ListChange(host, attachments)

    def change(
        self, attachment: EdgeAttachment, adds: Sequence[msg.SubscriptionItem], removes: Iterable[int], version: int
    ) -> Iterator[int]:
        """Change the list of an attachment on standby; yields the units of work of each part."""
        leaving = set(removes)
        taken: list[Numbered] = []
        units = 0
        for at, item in enumerate(adds):
            if units >= PART_UNITS:
                yield units + self._announce(attachment, taken)
                taken, units = [], 0
                if attachment.state is not AttachmentState.STANDBY:
                    yield from self._go_on(attachment, adds[at:], leaving, version)
                    return
            if not self._take(attachment, item, leaving, taken):
                return
            units += reading_units(item.text)
        removed = self.table.confirm(attachment, leaving)
        attachment.version = version
        if taken or removed:
            units += self._announce(attachment, taken, removed)
        yield units

    def _take(
        self, attachment: EdgeAttachment, item: msg.SubscriptionItem, leaving: set[int], taken: list[Numbered]
    ) -> bool:
        """Take one subscription; if that cannot be, end the attachment."""
        try:
            taken.append(self.table.take(attachment, item, leaving))
        except ValueError as error:
            self.host.counters["subscriptions_refused"] += 1
            self.table.put_back(attachment, taken)
            self.refuse(attachment, f"subscription {item.id} cannot be taken here: {error}")
            return False
        return True

    def _announce(self, attachment: EdgeAttachment, taken: list[Numbered], removed: Iterable[int] = ()) -> int:
        """Install and announce a part; returns the units of work."""
        for cover in self.attachments.install_part(attachment, taken, removed):
            self.host.up(cover)
        return self.table.units_spent

    def _go_on(
        self, attachment: EdgeAttachment, adds: Sequence[msg.SubscriptionItem], leaving: set[int], version: int
    ) -> Iterator[int]:
        """Make the rest of a change whose attachment is on standby no more."""
        if is_changeable(attachment):
            announce = partial(self.attachments.announce, attachment)
            yield from self.list_change.apply(attachment, adds, leaving, version, announce)
