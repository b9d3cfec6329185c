"""Listings of edges' subscribers, which heads send page by page; each is for one session or batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plimsoll.core.protocol.messages import ListSubscribers, SubscriberPage
from plimsoll.core.session.context.command_outbox import CommandOutbox


@dataclass(slots=True)
class SubscriberListing:
    """The subscribers of an edge, sorted, from the pages so far. `query_id` is 0 while no page is awaited."""

    head: str
    head_epoch: int = 0
    names: list[str] = field(default_factory=list)
    query_id: int = 0
    is_complete: bool = False


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
            after = listing.names[-1] if listing.names else ""
            self._outbox.send(listing.head, ListSubscribers(listing.query_id, edge, after))
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
        """Add a page. A head that restarted between two pages may have lost subscribers: its listing begins again."""
        for (_, edge), listing in self._listings.items():
            if listing.query_id != page.id or edge != page.edge or listing.head != head:
                continue
            listing.query_id = 0
            if listing.names and page.head_epoch != listing.head_epoch:
                listing.names.clear()
                return
            listing.head_epoch = page.head_epoch
            last = listing.names[-1] if listing.names else ""
            listing.names.extend(name for name in sorted(page.subscribers) if name > last)
            listing.is_complete = not page.more or not page.subscribers
            return
