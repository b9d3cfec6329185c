"""Who is attached to an edge, and who was: a record per subscriber, from its opening to its end.

Laws of the place:
- A subscriber has one record here. An attachment that is closed has no queue and is not matched; its place, that is its
  record and its cover, stays until the head releases it or its lease ends, unless it has none of its own.
- Nothing is said to the head ahead of what was put together for it in the same round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.attachment import Attachment, Port, State
from plimsoll.core.catchup import Cursor
from plimsoll.core.config import BrokerConfig
from plimsoll.core.holdings import Holdings, Numbered
from plimsoll.core.link import Link
from plimsoll.core.promises import Promises
from plimsoll.core.queues import Queues


class Host(Protocol):
    """What the parts of an edge need of it."""

    now: float
    position: int
    head_epoch: int
    public_key: str
    config: BrokerConfig
    counters: Counter[str]
    dirty: dict[Link, None]

    @property
    def is_leaving(self) -> bool: ...
    def say(self, link: Link, record: Any) -> None: ...
    def count_said(self, record: Any) -> None: ...
    def up(self, record: Any) -> None:
        """Say something to the head."""


class Roster:
    """The records of an edge, and the ports that the attached ones are at."""

    def __init__(self, host: Host, holdings: Holdings, ports: dict[Link, Port], cursor: Cursor, queues: Queues) -> None:
        self.host, self.holdings, self.ports, self.cursor, self.queues = host, holdings, ports, cursor, queues
        self.promises = Promises()
        self.records: dict[str, Attachment] = {}

    def attached(self, link: Link, attachment_id: int) -> Attachment | None:
        """The attachment that a client means."""
        port = self.ports.get(link)
        return port.attachments.get(attachment_id) if port else None

    # -- opening

    def open(self, link: Link, asked: r.Resume | r.AttachItem) -> Attachment:
        """A record for who attaches, with nothing taken or installed yet; an older use of its number is over."""
        self.vacate(link, asked.attachment)
        attachment = Attachment(
            asked.subscriber, asked.attachment, link, asked.epoch, asked.version, self.queues.void
        )  # fmt: skip
        attachment.apply(asked.policy, self.host.config.limits, self.host.config.time_factor)
        self.records[asked.subscriber] = self.ports[link].attachments[attachment.id] = attachment
        return attachment

    def vacate(self, link: Link, attachment_id: int) -> None:
        """A client uses the number of an attachment again: the older one is over."""
        if (other := self.attached(link, attachment_id)) is not None:
            self.shut(other, "replaced", "its attachment number was used again")

    def take(self, attachment: Attachment, items: Iterable[r.SubscriptionItem], version: int) -> list[Numbered]:
        """Take subscriptions; what cannot be is refused one by one."""
        taken = []
        for item in items:
            try:
                taken.append(self.holdings.take(attachment, item))
            except ValueError as error:
                self.host.counters["subscriptions_refused"] += 1
                self.host.say(attachment.link, r.SubRefused(attachment.id, version, item.id, str(error)))
        return taken

    def install(self, taken: Mapping[Attachment, list[Numbered]], removes: Iterable[int] = ()) -> r.Cover:
        """Match and announce what was taken, in one numbered update, and promise it.

        Parts of the update but the last are said; that is returned.
        """
        for attachment, numbered in taken.items():
            self.holdings.install(attachment, numbered)
            attachment.is_covered = True
        *first, last = self.holdings.step([one for numbered in taken.values() for one in numbered], removes)
        for part in first:
            self.host.up(part)
        for attachment in taken:
            self.promises.ask(last.seq, attachment, attachment.version)
        return last

    # -- closing

    def close(self, attachment: Attachment) -> None:
        """No longer attached; its place stays until the head releases it, or its lease ends, if it has one."""
        if attachment.state is State.CLOSED:
            return
        self.cursor.leave(attachment)
        attachment.state, attachment.closed_at, attachment.out = State.CLOSED, self.host.now, self.queues.void
        attachment.clear()
        self.promises.forget(attachment)
        self.holdings.uninstall(attachment)
        if (port := self.ports.get(attachment.link)) is not None:
            port.queued.pop(attachment, None)
            if port.attachments.get(attachment.id) is attachment:
                del port.attachments[attachment.id]
        if not attachment.keeps_place:
            self.drop([attachment])

    def shut(self, attachment: Attachment, code: str, text: str) -> None:
        """Close an attachment from this side; the client sees it ahead of what was queued."""
        if attachment.state is not State.CLOSED:
            self.close(attachment)
            # A link whose connection is lost for now may come back, and the client believe in its attachment still.
            self.host.say(attachment.link, r.Shut(attachment.id, code, text))

    def drop(self, attachments: Iterable[Attachment]) -> None:
        """Forget records that are closed, and withdraw their cover in one step."""
        removes = []
        for attachment in attachments:
            if self.records.get(attachment.subscriber) is attachment:
                del self.records[attachment.subscriber]
                removes += self.holdings.uncover(attachment)
        self.withdraw(removes)

    def withdraw(self, removes: list[int]) -> None:
        """Take these numbers out of the cover."""
        for cover in self.holdings.shrink(removes) if removes else ():
            self.host.up(cover)

    def evict(self, attachments: Iterable[Attachment], code: str, text: str) -> None:
        """Shut and forget: nothing of these stays here."""
        gone = list(attachments)
        for attachment in gone:
            self.shut(attachment, code, text)
        self.drop(gone)
