"""Whose a name is, decided by two heads and an edge that tell one another: a model whose every state is visited.

Identity a has a publisher open at head H1, whose edge is E; H2 is the head of another cluster. Identity b asks for the
same name at either head, whenever it likes. Heads crash and forget all; the link between them is cut and comes back; a
goes away and comes back. Each of the three keeps one claim: the identity, since when, and when it was last used. Time
passes in leases; a record takes less than one. Rules are switched off by name (`without`), to show that the search
finds the violation.

Names of subscribers have claims of the same kind, and two things more: a may come to H2 while its place at H1 is still
kept (`moves`), and a place ends (`ends`), which is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from tests.exploration.channel_world import ChannelWorld, Message
from tests.exploration.search import STATES_AT_MOST, Result, ViolationError, search, visit

LINKS = {"H1": ("H2", "E"), "H2": ("H1",), "E": ("H1",)}
KEPT = 2
"""Leases for which a claim counts after its last use."""
FREE = 4
"""Leases after which it is forgotten. Between the two no newcomer gets the name, but one that has it keeps it."""
STEP = 10
"""Between times of claims: who goes on after an end takes a time just behind the one before, ahead of all others."""


class Config(NamedTuple):
    """How often heads crash, the link is cut, a goes away, b asks; how many leases pass. `spread`: all know of a.

    How often a comes to H2, and a place of a ends.
    """

    crashes: int = 1
    cuts: int = 0
    leaves: int = 0
    asks: int = 2
    leases: int = 0
    spread: bool = True
    moves: int = 0
    ends: int = 0
    without: tuple[str, ...] = ()


class Claim(NamedTuple):
    """Whose the name is, since when, and when this was last heard to be used. `is_over`: it is not any more."""

    identity: str
    since: int
    used: int
    is_over: bool = False


@dataclass(frozen=True)
class Broker:
    """`open`: the identity whose publisher is open here. `missing`: brokers that have to report before any may open.

    `over`: claims of a up to this time are over. `is_reserved`: that has just been said, so b does not get the name.
    """

    claim: Claim | None = None
    open: str = ""
    missing: tuple[str, ...] = ()
    over: int = 0
    is_reserved: bool = False


@dataclass(frozen=True)
class ClaimState(ChannelWorld):
    """`used`: when a last used its name. `ended`: identities that were refused what they had. `is_parted`: some may not
    have been told of a. `is_lost`: its edge was not when the head crashed, or a has been away for too long.
    """

    config: Config
    brokers: tuple[tuple[str, Broker], ...] = ()
    is_linked: bool = True
    time: int = 0
    stamp: int = 1
    used: int = 0
    is_away: bool = False
    ended: tuple[str, ...] = ()
    is_parted: bool = False
    is_lost: bool = False
    crashes: int = 0
    cuts: int = 0
    leaves: int = 0
    asks: int = 0
    places: tuple[str, ...] = ("H1",)
    is_given: bool = False
    moves: int = 0
    ends: int = 0

    def at(self, name: str) -> Broker:
        return dict(self.brokers)[name]

    def having(self, name: str, **changes: Any) -> Self:
        brokers = tuple((n, replace(b, **changes) if n == name else b) for n, b in self.brokers)
        return replace(self, brokers=brokers)

    def links(self, name: str) -> tuple[str, ...]:
        return tuple(other for other in LINKS[name] if self.is_linked or "E" in (name, other))

    def known(self, name: str) -> Claim | None:
        """The claim of a broker, unless it is forgotten by now."""
        claim = self.at(name).claim
        return claim if claim is not None and self.time - claim.used <= FREE else None


class ClaimRules(ClaimState):
    """What a broker does with a claim."""

    def _is_faded(self, claim: Claim) -> bool:
        return self.time - claim.used > KEPT and not self.is_off("what-has-faded-yields")

    def merged(self, mine: Claim | None, theirs: Claim) -> Claim:
        if mine is None:
            return theirs
        if mine.identity == theirs.identity:
            return Claim(mine.identity, min(mine.since, theirs.since), max(mine.used, theirs.used))
        if self._is_faded(mine) != self._is_faded(theirs):
            return theirs if self._is_faded(mine) else mine
        if self.is_off("the-older-wins"):
            return theirs
        return min(mine, theirs, key=lambda each: (each.since, each.identity))

    def tell(self, name: str, to: tuple[str, ...]) -> Self:
        w, claim = self, self.known(name)
        for other in to:
            w = w if claim is None else w.send(name, other, "CLAIM", claim)
        return w

    def broker_on_claim(self, name: str, source: str, theirs: Claim) -> Self:
        if self.time - theirs.used > FREE or (name == "E" and self.is_off("edges-keep-claims")):
            return self
        if theirs.is_over:
            return self.on_end(name, source, theirs.since)
        if theirs.identity == "a" and theirs.since <= self.at(name).over:
            return self
        mine = self.known(name)
        claim = self.merged(mine, theirs)
        w = self.having(name, claim=claim)
        here = self.at(name).open
        if here and claim.identity != here and not self.is_off("a-loser-is-refused"):
            if self.is_given and not self.places and not self.is_parted:
                raise ViolationError("who has got an ended name keeps it: b has lost it")
            w = replace(w.having(name, open=""), ended=(*w.ended, here))
        if mine is None or claim != mine:
            w = w.tell(name, tuple(other for other in self.links(name) if other != source and name != "E"))
        return w

    def on_end(self, name: str, source: str, since: int) -> Self:
        """A claim of a is over: one that still has a place here says again that it uses the name."""
        broker, is_kept = self.at(name), not self.is_off("ends-are-remembered")
        was_known = broker.claim is not None and broker.claim.identity == "a" and broker.claim.since <= since
        if broker.over >= since or not (is_kept or was_known):
            return self
        w = self.having(name, over=since if is_kept else 0)
        if was_known:
            w = w.having(name, claim=None, is_reserved=not self.is_off("an-ended-name-is-reserved"))
        w = w.tell_end(name, since, tuple(other for other in self.links(name) if other != source and name != "E"))
        if broker.open == "a" and not self.is_off("who-goes-on-says-so"):
            again = self.stamp + STEP if self.is_off("who-goes-on-is-first") else since + 1
            w = w.having(name, claim=Claim("a", again, self.time), is_reserved=False).tell(name, self.links(name))
        return w

    def tell_end(self, name: str, since: int, to: tuple[str, ...]) -> Self:
        w = self
        for other in to if since else ():
            w = w.send(name, other, "CLAIM", Claim("a", since, self.time, is_over=True))
        return w

    def report(self, name: str, to: str) -> Self:
        told = self.tell_end(name, self.at(name).over, (to,))
        if self.is_off("claims-go-ahead-of-reports"):
            return told.send(name, to, "REPORT").tell(name, (to,))
        return told.tell(name, (to,)).send(name, to, "REPORT")

    def broker_on_report(self, name: str, source: str) -> Self:
        before = self.at(name).missing
        w = self.having(name, missing=tuple(other for other in before if other != source))
        if name == "H1" and source == "E" and "E" in before and self.is_linked:
            w = w.report("H1", "H2")  # what it reports depends on its edge
        return w


class World(ClaimRules):
    """The steps and faults, and the laws that each state keeps."""

    def steps(self) -> list[Message]:
        found: list[Message] = [("deliver", *pair) for pair, _ in self.channels]
        h1 = self.at("H1")
        if "a" not in self.ended:
            found += [("open", "a", n) for n in self.places if self.at(n).open != "a" and self._is_ready(n)]
            if self.places == ("H1",) and self.moves < self.config.moves and self._is_ready("H2"):
                found.append(("move",))
            if self.ends < self.config.ends:
                found += [("end", n) for n in self.places if self.at(n).open == "a"]
        if h1.open == "a" and self.leaves < self.config.leaves:
            found.append(("leave",))
        if self.asks < self.config.asks:
            found += [("open", "b", name) for name in ("H1", "H2") if self._is_ready(name) and not self._is_b(name)]
        found += [("refresh", name) for name in ("H1", "H2") if self._may_refresh(name)]
        if not self.channels and self.time < self.config.leases and not any(map(self._is_behind, ("H1", "H2"))):
            found.append(("lease",))
        if not self.is_linked:
            found.append(("link",))
            found += [("give_up", n) for n, o in (("H1", "H2"), ("H2", "H1")) if self.at(n).missing == (o,)]
        if self.crashes < self.config.crashes:
            found += [("fault", "H1"), ("fault", "H2")]
        if self.is_linked and self.cuts < self.config.cuts:
            found.append(("fault", "link"))
        return found

    def _is_ready(self, name: str) -> bool:
        return not self.at(name).missing or self.is_off("opens-wait-for-reports")

    def _is_b(self, name: str) -> bool:
        return self.at(name).open == "b"

    def _may_refresh(self, name: str) -> bool:
        broker = self.at(name)
        return bool(broker.open and broker.claim is not None and broker.claim.used < self.time)

    def _is_behind(self, name: str) -> bool:
        """Whether a broker has to say that a name is in use before another lease passes."""
        broker = self.at(name)
        is_behind = broker.open and broker.claim is not None and broker.claim.used < self.time - 1
        return bool(is_behind) and not self.is_off("claims-in-use-are-repeated")

    def do_deliver(self, src: str, dst: str) -> Self:
        (kind, *rest), w = self.taken(src, dst)
        w = w.heard("broker", kind, dst, src, *rest)
        if not w.channels:  # a name is reserved for longer than a record takes
            w = replace(w, brokers=tuple((n, replace(b, is_reserved=False)) for n, b in w.brokers))
        return w

    def do_open(self, identity: str, name: str) -> Self:
        claim, broker = self.known(name), self.at(name)
        w = replace(self, asks=self.asks + 1) if identity == "b" else self
        if claim is not None and claim.identity != identity:
            return replace(w, ended=(*w.ended, "a")) if identity == "a" else w
        if identity == "b" and broker.is_reserved:
            return w
        since = broker.over + 1 if broker.is_reserved else self.stamp + STEP
        if claim is not None and not self.is_off("since-outlasts-a-restart"):
            since = claim.since
        w = replace(w, stamp=since) if since > self.stamp else w
        is_told = not self.is_parted and (not self._is_spreading() or bool(self.config.moves))
        if identity == "b" and self.places and is_told and self.time - self._used() <= KEPT:
            raise ViolationError("a name in use is no other's: b has it as well")
        if identity == "b" and not self.places:
            w = replace(w, is_given=True)
        if identity == "a":
            w = replace(w, is_lost=w.is_lost or self.time - self._used() > KEPT, is_away=False, used=self.time)
        w = w.having(name, open=identity, claim=Claim(identity, since, self.time), is_reserved=False)
        return w.tell(name, self.links(name))

    def _is_spreading(self) -> bool:
        return any(message[0] == "CLAIM" for _, sent in self.channels for message in sent)

    def _used(self) -> int:
        return self.used if self.is_away else self.time

    def do_leave(self) -> Self:
        w = replace(self, is_away=True, used=self.time, leaves=self.leaves + 1)
        claim = self.at("H1").claim
        return w.having("H1", open="", claim=claim and claim._replace(used=self.time))

    def do_move(self) -> Self:
        return replace(self, places=("H1", "H2"), moves=self.moves + 1).do_open("a", "H2")

    def do_end(self, name: str) -> Self:
        """The place of a at this head ends."""
        claim = self.at(name).claim
        w = replace(self, places=tuple(n for n in self.places if n != name), ends=self.ends + 1).having(name, open="")
        if claim is None or self.is_off("ends-are-told"):
            return w
        over = 0 if self.is_off("ends-are-remembered") else claim.since
        is_reserved = not self.is_off("an-ended-name-is-reserved")
        w = w.having(name, claim=None, over=over, is_reserved=is_reserved and bool(self.links(name)))
        return w.tell_end(name, claim.since, self.links(name))

    def do_refresh(self, name: str) -> Self:
        claim = self.at(name).claim
        return self.having(name, claim=claim and claim._replace(used=self.time)).tell(name, self.links(name))

    def do_lease(self) -> Self:
        return replace(self, time=self.time + 1)

    def do_fault(self, what: str) -> Self:
        if what == "link":
            w = replace(self, is_linked=False, is_parted=True, cuts=self.cuts + 1)
            return w.losing(lambda pair: set(pair) == {"H1", "H2"})
        w = replace(self, crashes=self.crashes + 1).losing(lambda pair: what in pair)
        # What a head has not told yet goes with it.
        knows = [n for n, broker in self.brokers if n != what and broker.claim and broker.claim.identity == "a"]
        is_lost = not knows or ("CLAIM" in [message[0] for message in dict(self.channels).get(("H1", "E"), ())])
        w = replace(w, is_parted=w.is_parted or self._is_spreading(), is_lost=w.is_lost or is_lost)
        w = w.having(what, claim=None, open="", missing=LINKS[what], over=0, is_reserved=False)
        for other in w.links(what):
            lacks = set(w.at(other).missing) - {what}
            w = w if lacks else w.report(other, what)
        return w

    def do_link(self) -> Self:
        w = replace(self, is_linked=True)
        for name, other in (("H1", "H2"), ("H2", "H1")):
            w = w if set(w.at(name).missing) - {other} else w.report(name, other)
        return w

    def do_give_up(self, name: str) -> Self:
        """The lease of what it waits for has passed."""
        return self.having(name, missing=())

    def check(self) -> None:
        if "a" in self.ended and not self.is_lost and self.time - self._used() <= KEPT:
            raise ViolationError("the owner keeps its name: a, which had it first, is refused")

        if "b" in self.ended and self.is_away and self.time - self.used > FREE:
            raise ViolationError("a forgotten name can be had again: b has lost it to one that is away")

    def check_end(self) -> None:
        opened = {broker.open for _, broker in self.brokers if broker.open}
        if len(opened) > 1:
            raise ViolationError("one identity has the name: both have it, and nothing is on its way")
        if not self.places:
            held = [name for name, broker in self.brokers if broker.claim and broker.claim.identity == "a"]
            if held:
                raise ViolationError(f"an ended name is free: {' '.join(held)} still keeps it for a")
        if self.is_away and self.time - self.used > FREE and self.asks == 0:
            held = [name for name in ("H1", "H2") if self.known(name) is not None]
            if held:
                raise ViolationError(f"a forgotten name can be had again: {' '.join(held)} still keeps it")

    def outcomes(self) -> Iterator[str]:
        yield from sorted({broker.open for _, broker in self.brokers if broker.open}) or ["free"]


def explore(config: Config, most: int = STATES_AT_MOST) -> Result:
    """Visit every reachable state once, breadth first."""
    claim = Claim("a", 1, 0)
    others = Broker(claim if config.spread else None)
    edge = Broker() if "edges-keep-claims" in config.without else others
    w = World(config, (("E", edge), ("H1", Broker(claim, "a")), ("H2", others)), is_parted=not config.spread)
    return search(w if config.spread else w.tell("H1", ("H2", "E")), visit, most=most)
