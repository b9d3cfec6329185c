"""Listings of subscribers and of publishers, which heads send page by page; each is for one session or batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plimsoll.core.protocol.messages import ListPublishers, ListSubscribers, PublisherListPage, SubscriberPage
from plimsoll.core.session.context.command_outbox import CommandOutbox


@dataclass(slots=True)
class SubscriberListing:
    """The subscribers of an edge, or the publishers of a head, sorted, from the pages so far. `query_id` is 0 while no
    page is awaited."""

    head: str
    head_epoch: int = 0
    names: list[str] = field(default_factory=list)
    query_id: int = 0
    is_complete: bool = False

    @property
    def last(self) -> str:
        return self.names[-1] if self.names else ""

    def add(self, head_epoch: int, found: Iterable[str], *, more: bool) -> None:
        """Add a page. A head that restarted between two pages has another list: this one begins again."""
        self.query_id = 0
        if self.names and head_epoch != self.head_epoch:
            self.names.clear()
            return
        self.head_epoch = head_epoch
        before = self.last
        new = [name for name in sorted(found) if name > before]
        self.names.extend(new)
        self.is_complete = not more or not new


class SubscriberListings:
    """Listings by session or batch, and by edge. Each continues after the last name received."""

    def __init__(self, outbox: CommandOutbox) -> None:
        self._outbox = outbox
        self._listings: dict[tuple[str, str], SubscriberListing] = {}

    def of(self, uid: str, edge: str, head: str) -> list[str] | None:
        """The subscribers of an edge, sorted; None until the listing is complete."""
        listing = self._listings.setdefault((uid, edge), SubscriberListing(head))
        if listing.is_complete:
            return listing.names
        if not listing.query_id:
            listing.query_id = self._outbox.next_query_id()
        if self._outbox.is_due(f"serving/{listing.query_id}", self._outbox.timings.repeat):
            self._outbox.send(listing.head, ListSubscribers(listing.query_id, edge, listing.last))
        return None

    def of_all(self, uid: str, edges: Iterable[tuple[str, str]]) -> dict[str, list[str]] | None:
        """The subscribers of several edges, each given with its head; None until all listings are complete."""
        known = {edge: self.of(uid, edge, head) for edge, head in edges}
        complete = {edge: names for edge, names in known.items() if names is not None}
        return complete if len(complete) == len(known) else None

    def forget(self, uid: str) -> None:
        """Drop the listings of a session or batch; the next question begins new ones."""
        self._listings = {key: listing for key, listing in self._listings.items() if key[0] != uid}

    def receive(self, head: str, page: SubscriberPage) -> None:
        """Add a page."""
        for (_, edge), listing in self._listings.items():
            if listing.query_id == page.id and edge == page.edge and listing.head == head:
                listing.add(page.head_epoch, page.subscribers, more=page.more and bool(page.subscribers))
                return


class PublisherListings:
    """Listings of the publishers of heads, by session."""

    def __init__(self, outbox: CommandOutbox) -> None:
        self._outbox = outbox
        self._listings: dict[str, SubscriberListing] = {}

    def of(self, uid: str, head: str) -> list[str] | None:
        """The open publishers of a head, sorted; None until the listing is complete."""
        listing = self._listings.setdefault(uid, SubscriberListing(head))
        if listing.is_complete:
            return listing.names
        if not listing.query_id:
            listing.query_id = self._outbox.next_query_id()
        if self._outbox.is_due(f"publishers/{listing.query_id}", self._outbox.timings.repeat):
            self._outbox.send(head, ListPublishers(listing.query_id, listing.last))
        return None

    def forget(self, uid: str) -> None:
        self._listings.pop(uid, None)

    def receive(self, head: str, page: PublisherListPage) -> None:
        """Add a page."""
        for listing in self._listings.values():
            if listing.query_id == page.id and listing.head == head:
                listing.add(page.head_epoch, (each.publisher for each in page.publishers), more=page.more)
                return
