"""Whose a name is in the whole fleet, as far as one broker knows: claims, which heads tell one another and their edges.

`tests/exploration/name_claims.py` shows that each rule is needed:
- Of two identities with the same name the one that had it first wins; `since` never changes while the claim is known.
- A claim in use is repeated once a lease. It counts for ten leases after its last use. It is forgotten after two more:
  until then no newcomer gets the name here, since it may be in use elsewhere, but one that has got it elsewhere wins.
- What a broker has been told changes what it tells others only if that is news to them.
- No identity has more than its share of what is kept. A claim that does not fit is kept only where its name is used.

No clock and no link here: time is an argument, and what is to be told is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from plimsoll.core.protocol.messages import NameClaim, NameClaims
from plimsoll.core.protocol.wire import COUNT_AT_MOST

KEPT_LEASES: Final = 10
FORGOTTEN_LEASES: Final = KEPT_LEASES + 2
CLAIMS_AT_MOST: Final = 200_000
CLAIMS_OF_IDENTITY_AT_MOST: Final = 20_000
RECORD_CLAIMS: Final = 256
"""Claims per record: however long their names are, it fits into a frame."""
HERE: Final = ""
"""The source of a claim that is made here."""


@dataclass(slots=True)
class KnownClaim:
    """`since`: in milliseconds since 1970, by the clock of the head that made it. `used`: when last, as heard of here.

    `told`: the same as others have been told.
    """

    identity: str
    since: int
    used: float
    told: float = float("-inf")


class ClaimTable:
    """The claims to names of one kind, by name. `dropped`: claims for which there was no room."""

    def __init__(
        self,
        lease_seconds: float,
        wall_clock: Callable[[float], float] = lambda now: now,
        most: int = CLAIMS_AT_MOST,
        most_of_identity: int = CLAIMS_OF_IDENTITY_AT_MOST,
    ) -> None:
        self.lease_seconds, self.wall_clock = lease_seconds, wall_clock
        self.most, self.most_of_identity = most, most_of_identity
        self.by_name: dict[str, KnownClaim] = {}
        self.dropped = 0
        self._of_identity: Counter[str] = Counter()
        self._changed: dict[str, str] = {}
        self._expires_at = 0.0

    def __len__(self) -> int:
        return len(self.by_name)

    def whose(self, name: str) -> str:
        """The identity that has a name; empty if none is known to."""
        claim = self.by_name.get(name)
        return claim.identity if claim is not None else ""

    def since(self, name: str, identity: str, now: float) -> int:
        """Since when this identity has the name: from now on if it has not had it yet."""
        claim = self.by_name.get(name)
        if claim is not None and claim.identity == identity:
            return claim.since
        return min(max(0, int(self.wall_clock(now) * 1000)), COUNT_AT_MOST)

    # -- what is claimed

    def use(self, name: str, identity: str, since: int, now: float) -> None:
        """Note that an identity uses a free name here."""
        self.hear(NameClaim(name, identity, since), HERE, now)

    def hear(self, said: NameClaim, source: str, now: float, unkept: KnownClaim | None = None) -> str:
        """Take a claim in; returns the identity that has the name now.

        `unkept`: the claim of who uses the name here, in case there was no room for that.
        """
        used = now - said.age_ms / 1000
        mine = self.by_name.get(said.name)
        if mine is None and unkept is not None and unkept.identity != said.identity:
            self.use(said.name, unkept.identity, unkept.since, now)  # there may be room by now
            mine = self.by_name.get(said.name)
            if mine is None and not self._yields(unkept, said, used, now):
                return unkept.identity
        if mine is not None and mine.identity == said.identity:
            is_older = said.since < mine.since
            mine.since, mine.used = min(mine.since, said.since), max(mine.used, used)
            if is_older or mine.used - mine.told > self.lease_seconds / 2:
                self._change(said.name, mine, source)
            return mine.identity
        if now - used > FORGOTTEN_LEASES * self.lease_seconds:
            return mine.identity if mine is not None else ""
        if mine is not None and not self._yields(mine, said, used, now):
            return mine.identity
        if mine is not None:
            self._forget(said.name)
        if len(self.by_name) >= self.most or self._of_identity[said.identity] >= self.most_of_identity:
            self.dropped += 1
            return said.identity
        self._of_identity[said.identity] += 1
        claim = self.by_name[said.name] = KnownClaim(said.identity, said.since, used)
        self._change(said.name, claim, source)
        return said.identity

    def _yields(self, mine: KnownClaim, said: NameClaim, used: float, now: float) -> bool:
        kept_seconds = KEPT_LEASES * self.lease_seconds
        has_faded = now - mine.used > kept_seconds
        if has_faded != (now - used > kept_seconds):
            return has_faded
        return (said.since, said.identity) < (mine.since, mine.identity)

    def _change(self, name: str, claim: KnownClaim, source: str) -> None:
        claim.told = claim.used
        # Told by several, it goes to all of them: none has had it as it is now.
        self._changed[name] = source if self._changed.get(name, source) == source else HERE

    def _forget(self, name: str) -> None:
        identity = self.by_name.pop(name).identity
        self._of_identity[identity] -= 1
        if not self._of_identity[identity]:
            del self._of_identity[identity]

    def expire(self, now: float) -> None:
        """Forget what has not been used for long; looked at every quarter of a lease."""
        if now < self._expires_at:
            return
        self._expires_at = now + self.lease_seconds / 4
        until = now - FORGOTTEN_LEASES * self.lease_seconds
        for name in [name for name, claim in self.by_name.items() if claim.used < until]:
            self._forget(name)

    # -- what others are told

    @property
    def has_news(self) -> bool:
        return bool(self._changed)

    def take_news(self, now: float) -> list[tuple[str, NameClaim]]:
        """What has changed since the last call: the source that is not to be told, and the claim."""
        changed, self._changed = self._changed, {}
        known = self.by_name
        return [(source, _said(name, known[name], now)) for name, source in changed.items() if name in known]

    def all(self, now: float) -> Iterator[NameClaim]:
        """All that is known, for a broker that may know nothing."""
        return (_said(name, claim, now) for name, claim in self.by_name.items())


def in_records(claims: Iterable[NameClaim]) -> Iterator[NameClaims]:
    """The claims in as few records as they fit into."""
    left = iter(claims)
    while some := list(islice(left, RECORD_CLAIMS)):
        yield NameClaims(some)


def _said(name: str, claim: KnownClaim, now: float) -> NameClaim:
    age_ms = min(max(0, int((now - claim.used) * 1000)), COUNT_AT_MOST)
    return NameClaim(name, claim.identity, claim.since, age_ms)
