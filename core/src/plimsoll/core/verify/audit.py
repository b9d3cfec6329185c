"""Taking observations in: the audit keeps what the laws ask for, in little space, and asks them at the end."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.handovers import Handover, Handovers
from plimsoll.core.verify.laws import Findings, check_claims, check_counters, check_publications
from plimsoll.core.verify.oracle import Filters
from plimsoll.core.verify.records import FOREVER, Life, Publications, Reader, Streams, Told, Tree
from plimsoll.core.verify.streams import StreamAudit
from plimsoll.core.verify.verdict import Verdict

_T = TypeVar("_T", bound=seen.Observation)
_TAKERS: dict[type[seen.Observation], Callable[[Audit, Any], None]] = {}


def _takes(kind: type[_T]) -> Callable[[Callable[[Audit, _T], None]], Callable[[Audit, _T], None]]:
    """The method below takes this kind of observation."""

    def known(method: Callable[[Audit, _T], None]) -> Callable[[Audit, _T], None]:
        _TAKERS[kind] = method
        return method

    return known


class Audit:
    """One audit over one journal.

    `take` each observation: in the order in which one process wrote them; the order between processes does not matter.
    """

    def __init__(self) -> None:
        self.publications = Publications()
        self.filters = Filters()
        self.readers: dict[tuple[str, int], Reader] = {}
        self.tree = Tree()
        self.streams = Streams()
        self.owners: dict[tuple[str, tuple[int, int]], set[str]] = {}
        self.ended: dict[tuple[str, int], float] = {}
        self.heads_ended: dict[tuple[str, int], float] = {}
        self.logging: set[str] = set()
        self.logged: dict[seen.Origin, set[seen.Identity]] = {}
        self.sessions: dict[str, tuple[float, float]] = {}
        self.session_ends: dict[str, float] = {}
        self.handovers = Handovers()
        self.claims: list[seen.Undisturbed] = []
        self.counters: list[seen.Counter] = []
        self.found = Findings()

    def reader(self, name: str, incarnation: int) -> Reader:
        key = (name, incarnation)
        if key not in self.readers:
            self.readers[key] = Reader(name, incarnation)
        return self.readers[key]

    def take_all(self, observations: Iterable[seen.Observation]) -> None:
        for one in observations:
            self.take(one)

    def take(self, one: seen.Observation) -> None:
        """Take one observation of any kind."""
        if (taker := _TAKERS.get(type(one))) is None:
            raise TypeError(f"not an observation: {one!r}")
        taker(self, one)

    @_takes(seen.Fleet)
    def _(self, one: seen.Fleet) -> None:
        self.tree.take(one)

    # -- publishers and heads ------------------------------------------------------------------------------------------

    @_takes(seen.Published)
    def _(self, one: seen.Published) -> None:
        self.publications.published(one)

    @_takes(seen.Answered)
    def _(self, one: seen.Answered) -> None:
        publication = self.publications.of((one.publisher, one.incarnation, one.seq))
        publication.answer, publication.answered_at = one.answer, one.at
        publication.answers += 1

    @_takes(seen.Logged)
    def _(self, one: seen.Logged) -> None:
        publication = self.publications.logged(one)
        self.logging.add(one.head)
        self._origin(publication.identity, one.origin)

    def _origin(self, identity: seen.Identity, origin: seen.Origin) -> None:
        publication = self.publications.of(identity)
        if publication.origin is None:
            publication.origin = origin
            self.logged.setdefault(origin, set()).add(identity)
        elif publication.origin != origin:
            self.logged.setdefault(origin, set()).add(identity)
            publication.other_origins.add(origin)

    @_takes(seen.HeadEnded)
    def _(self, one: seen.HeadEnded) -> None:
        self.heads_ended[one.head, one.epoch] = one.at

    @_takes(seen.Owned)
    def _(self, one: seen.Owned) -> None:
        self.handovers.owned(one)
        if one.cause == "guest":
            return
        self.owners.setdefault((one.subscriber, one.epoch), set()).add(one.edge)
        if len(self.owners[one.subscriber, one.epoch]) > 1:
            edges = " and ".join(sorted(self.owners[one.subscriber, one.epoch]))
            self.found.add("I4", f"subscriber {one.subscriber}", f"owner epoch {one.epoch} belongs to {edges}", one.at)

    # -- subscribers ---------------------------------------------------------------------------------------------------

    @_takes(seen.Subscribed)
    def _(self, one: seen.Subscribed) -> None:
        lives = self.reader(one.subscriber, one.incarnation).lives.setdefault(one.id, [])
        lives.append(Life(self.filters.number(one.predicates), one.at))

    def _lives(self, one: seen.Acknowledged | seen.Withdrawn | seen.Forgotten) -> list[Life]:
        reader = self.reader(one.subscriber, one.incarnation)
        unknown = [number for number in one.ids if number not in reader.lives]
        if unknown:
            self.found.add("I8", reader.subject, f"{type(one).__name__} names {unknown}, never subscribed", one.at)
        return [reader.lives[number][-1] for number in one.ids if number in reader.lives]

    @_takes(seen.Acknowledged)
    def _(self, one: seen.Acknowledged) -> None:
        self.reader(one.subscriber, one.incarnation).heads.add(one.head)
        for life in self._lives(one):
            life.acknowledged.append((one.at, one.head, tuple(one.unreached)))

    @_takes(seen.Withdrawn)
    def _(self, one: seen.Withdrawn) -> None:
        for life in self._lives(one):
            life.withdrawn_at = min(life.withdrawn_at, one.at)

    @_takes(seen.Forgotten)
    def _(self, one: seen.Forgotten) -> None:
        for life in self._lives(one):
            life.withdrawn_at = min(life.withdrawn_at, one.at)
            life.forgotten_at = min(life.forgotten_at, one.at)

    @_takes(seen.Lapsed)
    def _(self, one: seen.Lapsed) -> None:
        for lives in self.reader(one.subscriber, one.incarnation).lives.values():
            lives[-1].void_at.append(one.at)

    @_takes(seen.Delivered)
    def _(self, one: seen.Delivered) -> None:
        reader = self.reader(one.subscriber, one.incarnation)
        self._origin(one.publication, one.origin)
        if one.place is not None:
            head, epoch, position = one.place
            self.publications.of(one.publication).positions.setdefault((head, epoch), position)
        reader.streams.append(self.streams.number(one.place))
        reader.positions.append(one.place[2] if one.place is not None else 0)
        reader.items.append(self.publications.number(one.publication))
        reader.times.append(one.at)

    @_takes(seen.GapTold)
    def _(self, one: seen.GapTold) -> None:
        reader = self.reader(one.subscriber, one.incarnation)
        reader.gaps.append(Told(one, len(reader.items)))

    @_takes(seen.Ended)
    def _(self, one: seen.Ended) -> None:
        self.ended[one.name, one.incarnation] = one.at

    # -- sessions, bounds, claims --------------------------------------------------------------------------------------

    @_takes(seen.SessionBegan)
    def _(self, one: seen.SessionBegan) -> None:
        self.sessions[one.uid] = (one.at, one.deadline)

    @_takes(seen.SessionEnded)
    def _(self, one: seen.SessionEnded) -> None:
        self.session_ends[one.uid] = one.at

    @_takes(seen.HandoverBegan)
    def _(self, one: seen.HandoverBegan) -> None:
        self.handovers.all.setdefault(one.session, Handover(one))

    @_takes(seen.HandoverTold)
    def _(self, one: seen.HandoverTold) -> None:
        if (session := self.handovers.all.get(one.session)) is None:
            self.found.add("I8", f"hand-over {one.session}", "is told to have ended, and nobody asked for it", one.at)
        else:
            session.told.append(one)

    @_takes(seen.Attached)
    def _(self, one: seen.Attached) -> None:
        self.handovers.attached.setdefault(one.subscriber, []).append((one.at, one.edge))

    @_takes(seen.Serving)
    def _(self, one: seen.Serving) -> None:
        self.handovers.serving(self.found, one)

    @_takes(seen.Steady)
    def _(self, one: seen.Steady) -> None:
        self.handovers.steady = one

    @_takes(seen.Residue)
    def _(self, one: seen.Residue) -> None:
        if one.count:
            self.found.add("I5", one.where, f"{one.count} {one.what} left over", one.at)

    @_takes(seen.Mark)
    def _(self, one: seen.Mark) -> None:
        if one.value > one.bound:
            self.found.add("I6", one.where, f"{one.what} is {one.value:g}, bounded by {one.bound:g}", one.at)

    @_takes(seen.Undisturbed)
    def _(self, one: seen.Undisturbed) -> None:
        self.claims.append(one)

    @_takes(seen.Counter)
    def _(self, one: seen.Counter) -> None:
        self.counters.append(one)

    # -- judging -------------------------------------------------------------------------------------------------------

    def _matched(self) -> list[array[int]]:
        """For each filter, the numbers of the publications that it matches, ascending."""
        matched = [array("l") for _ in range(len(self.filters))]
        for number, publication in enumerate(self.publications.all):
            if publication.attributes is not None:
                for one in self.filters.matching(publication.attributes):
                    matched[one].append(number)
        return matched

    def verdict(self, settled_until: float = FOREVER) -> Verdict:
        """Ask every law, once. What was published after `settled_until` may still be under way."""
        found, everything = self.found, self.publications.all
        check_publications(found, everything, self.logged, self.ended, settled_until)
        check_claims(found, self.sessions, self.session_ends, settled_until)
        self.handovers.check(found)
        self.handovers.check_gaps(found, [told.gap for reader in self.readers.values() for told in reader.gaps])
        matched = self._matched()
        for key in sorted(self.readers):
            reader = self.readers[key]
            reader.ended_at = self.ended.get(key, FOREVER)
            StreamAudit(reader, self, matched, settled_until).run()
        check_counters(found, self.counters, everything, self.readers)
        return found.verdict()


def audit(observations: Iterable[seen.Observation], settled_until: float = FOREVER) -> Verdict:
    """The verdict over a journal that has ended; see `Audit.verdict` for `settled_until`."""
    one = Audit()
    one.take_all(observations)
    return one.verdict(settled_until)
