"""The head's table of owners, which alone decides which edge serves a subscriber.

An entry is (link key, owner epoch, since). Epochs are (incarnation, n), compared in that order; a lower one is
refused, even after the entry has gone. `since` is where the cover of the subscriber began: before it nothing is
promised.

A name belongs to the identity that made it, until its entry goes. Epochs are compared within an identity.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Set
from typing import NamedTuple

from plimsoll.core.head.log import Log
from plimsoll.core.protocol.messages import Gap
from plimsoll.core.protocol.wire import OwnerEpoch, Token

Since = tuple[int, int]
REMEMBERED_EPOCHS = 100_000
"""Owner epochs kept of subscribers that have gone, for one lease: what was under way then has arrived or is lost."""


AWAY_KEY = "#away"
"""The key of an owner entry of a subscriber that is away, and whose place the head itself keeps: of no link."""


class OwnerEntry(NamedTuple):
    """`is_again`: the cover began with a subscriber that came back after its earlier cover had lapsed.

    `claimed`: since when its identity has the name in the whole fleet, as others were told; 0: not yet.
    """

    key: str
    epoch: OwnerEpoch
    since: Since
    is_again: bool = False
    identity: str = ""
    claimed: int = 0

    @property
    def edge(self) -> str:
        """The name of the edge whose link this is, or was."""
        return self.key.partition("#")[0]

    def is_of(self, identity: str) -> bool:
        """Whether the subscriber is this identity's, as far as both are known."""
        return not (self.identity and identity) or self.identity == identity

    def has_lapsed(self, head: str, token: Token | None) -> bool:
        """Whether a token that is no older than the cover has lapsed all the same.

        A head without a cover is not sent what other heads publish, so its log may stand still meanwhile: a subscriber
        that resumes at exactly the last position may have missed something, too.
        """
        return self.is_again and token == (head, *self.since)


class ReplayStart(NamedTuple):
    """Where a resumed subscriber goes on: from `start` in this head's log, after a gap if there is one."""

    start: int
    gap: Gap | None
    lapsed: bool


class PastEpoch(NamedTuple):
    """The last owner epoch of a subscriber that has gone, whose it was, and when it went."""

    epoch: OwnerEpoch
    identity: str
    at: float


class OwnershipTable:
    """Owner entries by subscriber."""

    def __init__(self) -> None:
        self.entries: dict[str, OwnerEntry] = {}
        self._forgotten: list[str] = []
        self._taken: dict[str, None] = {}
        self._ended: dict[str, OwnerEntry] = {}
        self._past: OrderedDict[str, PastEpoch] = OrderedDict()
        self._counts: Counter[str] = Counter()

    def newest(self, subscriber: str, identity: str = "") -> OwnerEpoch:
        """The highest epoch that this identity is known to have used for a subscriber; (0, 0) if there is none."""
        entry, past = self.entries.get(subscriber), self._past.get(subscriber)
        is_own = past is not None and (not (identity and past.identity) or past.identity == identity)
        known = past.epoch if past is not None and is_own else (0, 0)
        return max(entry.epoch, known) if entry is not None and entry.is_of(identity) else known

    def swap(
        self,
        subscriber: str,
        key: str,
        epoch: OwnerEpoch,
        now_at: Since,
        is_again: bool = False,
        identity: str = "",
    ) -> OwnerEntry | None:
        """Compare and swap: make `key` the owner if this epoch is newer. Returns the old entry; see `newest` first.

        Without an old entry the cover has never been, or has lapsed (`is_again`), and begins at `now_at`. So it does
        where the old entry is of another identity.
        """
        old = self.entries.get(subscriber)
        began = OwnerEntry(key, epoch, now_at, is_again, identity)
        goes_on = old is not None and old.is_of(identity)
        new = old._replace(key=key, epoch=epoch, identity=identity or old.identity) if old and goes_on else began
        self._put(subscriber, new)
        return old

    def _put(self, subscriber: str, owner: OwnerEntry) -> None:
        old = self.entries.get(subscriber)
        self._left(old)
        if old is None or old.identity != owner.identity:
            self._taken[subscriber] = None
        self.entries[subscriber] = owner
        self._counts[owner.key] += 1

    def _left(self, owner: OwnerEntry | None) -> None:
        if owner is not None:
            self._counts[owner.key] -= 1
            if not self._counts[owner.key]:
                del self._counts[owner.key]

    def adopt(self, subscriber: str, reported: OwnerEntry) -> OwnerEntry | None:
        """Take an owner over from an edge's report: the highest epoch wins. Returns the entry that lost, or None.

        The loser may be the one that reports. Of two identities the one that had the name first wins: the other may
        have come while the head did not know of the first yet.
        """
        old, epoch, identity = self.entries.get(subscriber), reported.epoch, reported.identity
        if old is not None and old.is_of(identity):
            reported = reported._replace(claimed=old.claimed)
        if old is not None and old.key == AWAY_KEY and old.is_of(identity) and old.epoch == epoch:
            self._put(subscriber, reported)  # the head has recovered, and the edge has been serving it all along
            return None
        if old is not None and (old.epoch >= epoch if old.is_of(identity) else old.since <= reported.since):
            return None if old.key == reported.key else reported
        self._put(subscriber, reported)
        return old

    def keep(self, subscriber: str) -> None:
        """The link that owned a subscriber serves it no more; the head keeps the entry itself."""
        self._put(subscriber, self.entries[subscriber]._replace(key=AWAY_KEY))

    def claimed(self, subscriber: str, since: int) -> None:
        """Note since when the identity of an entry has the name."""
        self.entries[subscriber] = self.entries[subscriber]._replace(claimed=since)

    def forget(self, subscriber: str, now: float = 0.0, *, ends_name: bool = False) -> None:
        """Remove an entry; its epoch stays for a while, for an older RESUME may be on its way.

        `ends_name`: its subscriber has ended, and is not at another head.
        """
        gone = self.entries.pop(subscriber)
        self._forgotten.append(subscriber)
        if ends_name:
            self._ended[subscriber] = gone
        self._left(gone)
        self._past[subscriber] = PastEpoch(gone.epoch, gone.identity, now)
        self._past.move_to_end(subscriber)
        if len(self._past) > REMEMBERED_EPOCHS:
            self._past.popitem(last=False)

    def take_forgotten(self) -> list[str]:
        """The subscribers whose entries were removed since the last call."""
        forgotten, self._forgotten = self._forgotten, []
        return forgotten

    @property
    def has_names(self) -> bool:
        """Whether there is something for `take_ended` or `take_taken`."""
        return bool(self._taken or self._ended)

    def take_ended(self) -> dict[str, OwnerEntry]:
        """The entries of subscribers that have ended since the last call."""
        ended, self._ended = self._ended, {}
        return ended

    def take_taken(self) -> list[str]:
        """The subscribers of which an identity has become the owner since the last call."""
        taken, self._taken = self._taken, {}
        return list(taken)

    def forget_past(self, until: float) -> None:
        """Forget the epochs of subscribers that went before this time: their names are free."""
        while self._past and next(iter(self._past.values())).at < until:
            self._past.popitem(last=False)

    def of(self, key: str) -> list[str]:
        """The subscribers that a link owns."""
        return [subscriber for subscriber, entry in self.entries.items() if entry.key == key]

    def keys(self) -> Set[str]:
        """The links that own a subscriber; asked at every RESUME while the cover of a dead edge is kept."""
        return self._counts.keys()


def replay_start(token: Token | None, since: Since, head: str, epoch: int, log: Log) -> ReplayStart:
    """From a token to a place in the log, and the gap between them.

    docs/handover.md, Resume: a position older than the log's oldest entry is a gap, which watermarks alone cannot see.
    A token of another epoch is an open gap, and so is one beyond the end; a token before `since` has lapsed.
    """
    if token is None:
        return ReplayStart(log.last, None, False)
    token_head, low_epoch, at = token
    here = token_head == head
    low, reason, lapsed = at + 1, "", (low_epoch if here else 0, at) < since
    if not here:
        low_epoch, low, at, reason = 0, 0, 0, "elsewhere"
    elif low_epoch != epoch:
        at, reason = 0, "restart"
    if lapsed:
        at, reason = max(at, since[1]) if since[0] == epoch else at, reason or "lapsed"
    if at + 1 < log.first:
        reason, at = reason or "log", log.first - 1
    if at > log.last:  # no token of this log, which has never come so far in this epoch
        low_epoch, low, at, reason = 0, 0, log.last, reason or "elsewhere"
    if not reason:
        return ReplayStart(at, None, False)
    last = [(origin[0], origin[1], offset) for origin, offset in sorted(log.gone.items())]
    return ReplayStart(at, Gap(head, low_epoch, low, epoch, at, last, reason), lapsed)
