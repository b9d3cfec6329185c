"""The parameters of channels that an edge's subscriptions give values to, counted, and each change of them.

A subscription that names a channel is counted under its equalities: `[channel,=,'near'],[kind,=,'fire']` and
`[channel,=,'near'],[kind,=,'fire'],[severity,>,3]` count as one. Covers hide some of them, so a head cannot tell. A
reader asks for what has changed since a revision, so it costs an edge no more than the changes. Memory: one entry for
each distinct list, of which there are at most as many as subscriptions, and a bounded number for lists that are gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import Final

from plimsoll.core.predicates import Exactly, OneOf, Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.types.channel import CHANNEL_ATTRIBUTE

PARAMETERS_PER_PAGE: Final = 1000
PAGE_BYTES: Final = 256 * 1024
"""Of texts; a page has at least one, however long."""
GONE_AT_MOST: Final = 4096
"""Lists that no subscription has any more; who asks for older changes gets everything."""


class ParametersInForce:
    """Counts by text, and their changes by revision."""

    def __init__(self) -> None:
        self.revision = 0
        self._counts: dict[str, int] = {}
        self._gone: dict[str, None] = {}
        self._latest: dict[str, int] = {}  # the revision of each that is counted or gone
        self._changes: list[tuple[int, str]] = []  # in the order of revisions; outdated where it is not the latest
        self._forgotten = 0  # the revision of the newest one that was gone, and is not remembered

    def __len__(self) -> int:
        return len(self._counts)

    def change(self, added: Iterable[Subscription], removed: Iterable[Subscription]) -> None:
        """Count these in, and those out, which were counted in before."""
        for subscription in added:
            if text := parameters_of(subscription):
                self._set(text, self._counts.get(text, 0) + 1)
        for subscription in removed:
            if text := parameters_of(subscription):
                self._set(text, self._counts[text] - 1)

    def _set(self, text: str, count: int) -> None:
        self.revision += 1
        self._latest[text] = self.revision
        self._changes.append((self.revision, text))
        self._gone.pop(text, None)
        if count:
            self._counts[text] = count
        else:
            self._counts.pop(text, None)
            self._gone[text] = None
        if len(self._gone) > GONE_AT_MOST:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._forgotten = self._latest.pop(oldest)
        if len(self._changes) > 2 * len(self._latest) + GONE_AT_MOST:
            self._changes = [each for each in self._changes if self._latest.get(each[1]) == each[0]]

    def page(self, request: msg.ListParameters, epoch: int) -> msg.ParameterPage:
        """The changes behind a revision, as far as they fit into a page."""
        known = request.epoch == epoch and self._forgotten <= request.revision <= self.revision
        since = request.revision if known else 0
        found: list[msg.ParameterItem] = []
        size, through = 0, since
        start = bisect_right(self._changes, since, key=lambda change: change[0])
        for revision, text in islice(self._changes, start, None):
            if self._latest.get(text) != revision or (not known and text in self._gone):
                continue
            size += len(text.encode())
            if found and (len(found) == PARAMETERS_PER_PAGE or size > PAGE_BYTES):
                return msg.ParameterPage(request.id, epoch, through, found, not known, more=True)
            found.append(msg.ParameterItem(text, self._counts.get(text, 0)))
            through = revision
        return msg.ParameterPage(request.id, epoch, self.revision, found, not known)


def parameters_of(subscription: Subscription) -> str:
    """Its equalities in canonical form, lists of values included; empty if it names no channel."""
    if not any(name == CHANNEL_ATTRIBUTE for name, _ in subscription.constraints):
        return ""
    equalities = tuple(pair for pair in subscription.constraints if isinstance(pair[1], Exactly | OneOf))
    if not any(name == CHANNEL_ATTRIBUTE for name, _ in equalities):
        return ""
    return str(Subscription(equalities))
