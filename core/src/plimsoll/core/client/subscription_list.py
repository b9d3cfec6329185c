"""The exchange between a subscriber and its edges about its list of subscriptions.

A change counts when the edge acknowledges it; during a hand-over, when the target has it as well (docs/handover.md, 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from plimsoll.core.client.attachment import ClientAttachment, ClientHandover
from plimsoll.core.client.events import SubscriberEvent, SubscriptionRefused
from plimsoll.core.client.subscription_changes import SubscriptionChanges
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Link

Attachment = ClientAttachment[Any]


class ListOwner(Protocol):
    """The list's interface to the subscriber."""

    current: Attachment | None
    handover: ClientHandover[Any] | None

    def tell(self, event: SubscriberEvent) -> None: ...

    def mark_changed(self) -> None:
        """There are changes to be sent at the end of the round."""

    def attachments(self) -> list[Attachment]:
        """The current one, and that at the target of a hand-over."""


class SubscriptionList(SubscriptionChanges):
    """The list of one subscriber at its edges. `say` puts a message on a link."""

    __slots__ = ("_owner", "_say")

    def __init__(self, owner: ListOwner, say: Callable[[Link, msg.Subs], None]) -> None:
        super().__init__()
        self._owner, self._say = owner, say

    @property
    def is_acknowledged(self) -> bool:
        """Whether every change has been acknowledged, though perhaps not by heads that are down."""
        return not self.unacked and not self.leaving

    @property
    def is_settled(self) -> bool:
        """Whether every change has arrived everywhere."""
        return self.is_acknowledged and not self.unreached

    def change(self) -> None:
        """Begin a change, or go on with the one that has not been sent yet."""
        current = self._owner.current
        if self.begin(gather=current is not None and current.is_asked):
            self._owner.mark_changed()

    def send_changes(self) -> None:
        """At the end of a round: all its changes as one, to every edge that has the list."""
        changes = self.take()
        if changes is None:
            return
        for attachment in self._owner.attachments():
            if attachment.is_asked:
                self._say(attachment.port.link, msg.Subs(attachment.id, self.version, *changes))

    def on_suback(self, attachment: Attachment, suback: msg.Suback) -> None:
        if suback.version >= attachment.acked:
            attachment.acked, attachment.unreached = suback.version, tuple(suback.unreached)
        self.report_counting()

    def report_counting(self) -> None:
        """Report which changes count: those that the edge has acknowledged, and the target of a hand-over has."""
        current, handover = self._owner.current, self._owner.handover
        if current is None:
            return
        version = current.acked if handover is None else handover.counted(current.acked)
        for event in self.settle(version, current.unreached, current.stream[0]):
            self._owner.tell(event)

    def on_subrefused(self, refused: msg.SubRefused) -> bool:
        """The edge refuses a subscription; returns whether it was on the list."""
        if not self.drop(refused.id):
            return False
        self._owner.tell(SubscriptionRefused(refused.id, refused.text))
        handover = self._owner.handover
        if handover is not None and handover.is_asked:
            # the target may have taken it
            self.change()
            self.remove(refused.id)
        return True
