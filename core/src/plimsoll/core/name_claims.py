"""Whose a name is in the whole fleet, as far as one broker knows: claims, which heads tell one another and their edges.

`tests/exploration/name_claims.py` shows that each rule is needed:
- Of two identities with the same name the one that had it first wins; `since` never changes while the claim is known.
- A claim in use is repeated once a lease. It counts for ten leases after its last use. It is forgotten after two more:
  until then no newcomer gets the name here, since it may be in use elsewhere, but one that has got it elsewhere wins.
- A claim that is over is forgotten at once, and remembered as over: what was told of it before changes nothing any
  more. Who uses the name all the same says so again, with the next `since`: that is still before all others.
- What a broker has been told changes what it tells others only if that is news to them.
- No identity has more than its share of what is kept. A claim that does not fit is kept only where its name is used.

No clock and no link here: time is an argument, and what is to be told is asked for.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from plimsoll.core.protocol.messages import NameClaim, NameClaims
from plimsoll.core.protocol.wire import COUNT_AT_MOST

KEPT_LEASES: Final = 10
FORGOTTEN_LEASES: Final = KEPT_LEASES + 2
CLAIMS_AT_MOST: Final = 200_000
CLAIMS_OF_IDENTITY_AT_MOST: Final = 20_000
ENDS_AT_MOST: Final = 50_000
"""Claims that are remembered as over; the oldest are forgotten first."""
RECORD_CLAIMS: Final = 256
"""Claims per record: however long their names are, it fits into a frame."""
HERE: Final = ""
"""The source of a claim that is made here."""


@dataclass(slots=True)
class KnownClaim:
    """`since`: in milliseconds since 1970, by the clock of the head that made it. `used`: when last, as heard of here.

    `told`: the same as others have been told. `is_over`: no newcomer has the name yet, since its identity may use it
    elsewhere, and is about to say so.
    """

    identity: str
    since: int
    used: float
    told: float = float("-inf")
    is_over: bool = False


class ClaimEnd(NamedTuple):
    """Claims of an identity to a name, up to this `since`, are over. `at`: when the last one ended."""

    since: int
    at: float


class ClaimTable:
    """The claims to names of one kind, by name. `dropped`: claims for which there was no room.

    `reserve_seconds`: for how long no newcomer gets a name of which a claim is over.
    """

    def __init__(
        self,
        lease_seconds: float,
        wall_clock: Callable[[float], float] = lambda now: now,
        most: int = CLAIMS_AT_MOST,
        most_of_identity: int = CLAIMS_OF_IDENTITY_AT_MOST,
        reserve_seconds: float = 0.0,
    ) -> None:
        self.lease_seconds, self.wall_clock, self.reserve_seconds = lease_seconds, wall_clock, reserve_seconds
        self.most, self.most_of_identity = most, most_of_identity
        self.by_name: dict[str, KnownClaim] = {}
        self.dropped = 0
        self._of_identity: Counter[str] = Counter()
        self._changed: dict[str, str] = {}
        self._ends: OrderedDict[tuple[str, str], ClaimEnd] = OrderedDict()
        self._ended: dict[tuple[str, str], str] = {}
        self._reserved: OrderedDict[str, float] = OrderedDict()
        self._expires_at = 0.0

    def __len__(self) -> int:
        return len(self.by_name)

    def whose(self, name: str) -> str:
        """The identity that has a name; empty if none is known to."""
        claim = self.by_name.get(name)
        return claim.identity if claim is not None else ""

    def since(self, name: str, identity: str, now: float, known: int = 0) -> int:
        """Since when this identity has the name: from now on if it has not had it yet. `known`: as it was last said."""
        claim, end = self.by_name.get(name), self._ends.get((name, identity))
        if not known and claim is not None and claim.identity == identity:
            known = claim.since
        found = known or min(max(0, int(self.wall_clock(now) * 1000)), COUNT_AT_MOST)
        return found if end is None else min(max(found, end.since + 1), COUNT_AT_MOST)

    # -- what is claimed

    def use(self, name: str, identity: str, since: int, now: float) -> str:
        """Note that an identity uses the name here; returns the one that has it."""
        return self.hear(NameClaim(name, identity, since), HERE, now)

    def end(self, name: str, identity: str, since: int, now: float) -> None:
        """Note that an identity uses the name here no more. `since`: as it was said, in case it is not known."""
        claim = self.by_name.get(name)
        if claim is not None and claim.identity == identity:
            since = max(since, claim.since)
        if since:
            self.hear(NameClaim(name, identity, since, is_over=True), HERE, now)

    def hear(self, said: NameClaim, source: str, now: float, unkept: KnownClaim | None = None) -> str:
        """Take a claim in; returns the identity that has the name now.

        `unkept`: the claim of who uses the name here, in case there was no room for that.
        """
        if said.is_over:
            self._hear_end(said, source, now)
            return self.whose(said.name)
        if (end := self._ends.get((said.name, said.identity))) is not None and said.since <= end.since:
            return self.whose(said.name)
        used = now - said.age_ms / 1000
        mine = self.by_name.get(said.name)
        if mine is not None and mine.is_over:
            self._forget(said.name)
            mine = None
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

    def _hear_end(self, said: NameClaim, source: str, now: float) -> None:
        key, at = (said.name, said.identity), now - said.age_ms / 1000
        known, claim = self._ends.get(key), self.by_name.get(said.name)
        if (known is not None and known.since >= said.since) or now - at > FORGOTTEN_LEASES * self.lease_seconds:
            return
        self._ends[key] = ClaimEnd(said.since, at)
        self._ends.move_to_end(key)
        if len(self._ends) > ENDS_AT_MOST:
            self._ends.popitem(last=False)
        self._ended[key] = source if self._ended.get(key, source) == source else HERE
        if claim is None or claim.identity != said.identity or claim.since > said.since:
            return
        if self.reserve_seconds:
            claim.is_over = True
            self._reserved[said.name] = now + self.reserve_seconds
            self._reserved.move_to_end(said.name)
        else:
            self._forget(said.name)

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
        """Forget what is over, and what has not been used for long; for that it looks every quarter of a lease."""
        while self._reserved and next(iter(self._reserved.values())) <= now:
            name, _ = self._reserved.popitem(last=False)
            if (claim := self.by_name.get(name)) is not None and claim.is_over:
                self._forget(name)
        if now < self._expires_at:
            return
        self._expires_at = now + self.lease_seconds / 4
        until = now - FORGOTTEN_LEASES * self.lease_seconds
        for name in [name for name, claim in self.by_name.items() if claim.used < until]:
            self._forget(name)
        for key in [key for key, end in self._ends.items() if end.at < until]:
            del self._ends[key]

    # -- what others are told

    @property
    def has_news(self) -> bool:
        return bool(self._changed or self._ended)

    def take_news(self, now: float) -> list[tuple[str, NameClaim]]:
        """What has changed since the last call: the source that is not to be told, and the claim. Ends go first."""
        changed, self._changed = self._changed, {}
        ended, self._ended = self._ended, {}
        ends, known = self._ends, self.by_name
        over = [(source, _over(key, ends[key], now)) for key, source in ended.items() if key in ends]
        return over + [
            (source, _said(name, known[name], now))
            for name, source in changed.items()
            if name in known and not known[name].is_over
        ]

    def all(self, now: float) -> Iterator[NameClaim]:
        """All that is known, for a broker that may know nothing."""
        return chain(
            (_over(key, end, now) for key, end in self._ends.items()),
            (_said(name, claim, now) for name, claim in self.by_name.items() if not claim.is_over),
        )


def in_records(publishers: Iterable[NameClaim], subscribers: Iterable[NameClaim] = ()) -> Iterator[NameClaims]:
    """The claims in as few records as they fit into, those to names of publishers first."""
    left = iter(publishers)
    while some := list(islice(left, RECORD_CLAIMS)):
        yield NameClaims(some)
    left = iter(subscribers)
    while some := list(islice(left, RECORD_CLAIMS)):
        yield NameClaims([], some)


def _said(name: str, claim: KnownClaim, now: float) -> NameClaim:
    return NameClaim(name, claim.identity, claim.since, _age_ms(claim.used, now))


def _over(key: tuple[str, str], end: ClaimEnd, now: float) -> NameClaim:
    return NameClaim(*key, end.since, _age_ms(end.at, now), is_over=True)


def _age_ms(at: float, now: float) -> int:
    return min(max(0, int((now - at) * 1000)), COUNT_AT_MOST)
