"""How far publishers are: by topic those of this head, by head all others. Edges that defend deadlines need to know.
With it goes what is published at each side of the tree, by which correlated topics are known.

Heads tell their neighbours, and each adds its link and its own time: the tree has one path, so what comes from a
neighbour is true of that path, and never comes back. A head without such a policy of its own takes part as long as a
neighbour wants to know. Edges add what is theirs. Tao, Poslad, Bigham 2013, IV.B.

Memory is bounded whatever applications publish: of a few short topics the farthest publisher is remembered, of all
others together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.head.topic_rates import heard_rates, summed, told_rates
from plimsoll.core.predicates import Attributes, Value
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.transport.link import Link, Peer
from plimsoll.core.transport.load_reporter import LoadReporter

REMEMBERED_TOPICS: Final = 1024
REMEMBERED_CHARACTERS: Final = 64
"""Topics whose farthest publishers are known apart from those of others."""

TOLD_TOPICS: Final = 256
"""Of one head in one message: those whose publishers are nearest, compared with the farthest of that head."""

TOLD_ORIGINS: Final = 256
WORTH_TELLING_SECONDS: Final = 0.001

REMEMBERED_SECONDS: Final = 30.0
"""A publisher counts for this long after its last publication, and at most twice as long."""

FRESH_REPORTS: Final = 4.0
"""Report intervals for which what a neighbour has said counts."""


class FarthestPublishers:
    """One way from the farthest publisher of each topic, of the present period and the last one."""

    def __init__(self) -> None:
        self._now: dict[Value, float] = {}
        self._before: dict[Value, float] = {}
        self._slowest = self._slowest_before = 0.0
        self._since = -math.inf

    def note(self, topic: Value | None, round_trip_seconds: float) -> None:
        """Hot path: a publication of this topic has come on a link with this round trip."""
        if round_trip_seconds > self._slowest:
            self._slowest = round_trip_seconds
        known = self._now.get(topic, -1.0) if topic is not None else math.inf
        if round_trip_seconds > known:
            self._raise(topic, round_trip_seconds)

    def _raise(self, topic: Value | None, seconds: float) -> None:
        short = not isinstance(topic, str) or len(topic) <= REMEMBERED_CHARACTERS
        if topic is not None and short and (topic in self._now or len(self._now) < REMEMBERED_TOPICS):
            # A boolean and 0 or 1 share a place: the farther of them counts for both.
            self._now[topic] = seconds

    def turn(self, now: float) -> None:
        """Forget what is older than a period, if one is over."""
        if now - self._since >= REMEMBERED_SECONDS:
            self._since = now
            self._before, self._now = self._now, {}
            self._slowest_before, self._slowest = self._slowest, 0.0

    def told(self) -> tuple[float, list[tuple[int, float]]]:
        """One way from the farthest of all, and by topic where it is less, nearest first."""
        farthest = max(self._slowest, self._slowest_before)
        by_topic: dict[int, float] = {}
        for topic, seconds in (*self._before.items(), *self._now.items()):
            topics = (topic_hash(int(topic)), topic_hash(bool(topic))) if topic in (0, 1) else (topic_hash(topic),)
            for each in topics:
                by_topic[each] = max(seconds, by_topic.get(each, 0.0))
        nearer = sorted((s, topic) for topic, s in by_topic.items() if (farthest - s) / 2 > WORTH_TELLING_SECONDS)
        return farthest / 2, [(topic, seconds / 2) for seconds, topic in nearer[:TOLD_TOPICS]]


class PathsContext(Protocol):
    """What the paths need of their head."""

    now: float
    name: str
    reporter: LoadReporter
    outboxes: Outboxes
    topics: TopicOwners
    routes: RoutingTable

    @property
    def edges(self) -> Iterable[str]: ...
    def say_control(self, peer: Peer, *said: msg.PublisherPaths) -> None: ...


class PathExchange(HeadPart):
    """`attribute`: whose values the topics are, of this cluster's policy or of a neighbour that wants to know."""

    def __init__(self, host: PathsContext, report_seconds: float) -> None:
        self.host, self._fresh_seconds = host, FRESH_REPORTS * report_seconds
        self.attribute = self.own
        self._farthest = FarthestPublishers()
        self._heard: dict[str, tuple[float, msg.PublisherPaths]] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.PublisherPaths, lambda outbox, said: self.receive(outbox.name, said))

    @property
    def own(self) -> str:
        """The topic attribute of this cluster's policy, empty if it defends no deadlines."""
        return self.host.topics.attribute

    def _name(self) -> None:
        asked = sorted(said.attribute for _, said in self._heard.values() if said.is_wanted)
        attribute = self.own or (asked[0] if asked else "")
        if attribute != self.attribute:
            self.attribute, self._farthest = attribute, FarthestPublishers()

    @property
    def is_wanted(self) -> bool:
        """Whether publications are to be noted."""
        return bool(self.attribute)

    def note(self, link: Link, attributes: Attributes) -> None:
        """Hot path: a publication has been accepted from this link."""
        self._farthest.note(attributes.get(self.attribute), link.rtt_seconds)

    def receive(self, neighbor: str, said: msg.PublisherPaths) -> None:
        """What a neighbour says replaces what it has said before; paths that cannot be are left out."""
        possible = [path for path in said.origins[:TOLD_ORIGINS] if path.is_possible]
        rates = list(heard_rates(said.rates).items())
        self._heard[neighbor] = (self.host.now, msg.PublisherPaths(said.attribute, possible, said.is_wanted, rates))
        self._name()

    def tell(self, report: Mapping[str, Any], output_bytes_per_second: float | None) -> None:
        """Once in a report interval: tell edges and neighbours. `report`: this head's last load report."""
        now = self.host.now
        self._heard = {name: heard for name, heard in self._heard.items() if now - heard[0] <= self._fresh_seconds}
        self._name()
        if not self.attribute:
            return
        self._farthest.turn(now)
        here = seconds_here(report, output_bytes_per_second)
        neighbors = self.host.outboxes.synced_neighbors(self.host.routes.synced_neighbors())
        links = {outbox.name: outbox.link for outbox in neighbors}
        self.host.topics.rates.elsewhere = self._rates_but("")
        asking = {name for name, (_, said) in self._heard.items() if said.is_wanted}
        for outbox in neighbors:
            is_wanted = bool(self.own) or bool(asking - {outbox.name})
            # Behind a full link it would be old when it comes; the next one says the same, and more.
            if (is_wanted or outbox.name in asking) and outbox.link.open and not outbox.backlog:
                paths = self._paths(here, links, outbox.name)
                rates = told_rates(summed([self._own_rates(), self._rates_but(outbox.name)]))
                self.host.outboxes.send(outbox, msg.PublisherPaths(self.attribute, paths, is_wanted, rates))
        if self.own:
            said = msg.PublisherPaths(self.attribute, self._paths(here, links, ""))
            for edge in self.host.edges:
                if (peer := self.host.reporter.brokers.get(edge)) is not None:
                    self.host.say_control(peer, said)

    def _own_rates(self) -> Mapping[int, float]:
        """What is published here, if it is counted by the topics that are told of."""
        return self.host.topics.rates.own if self.attribute == self.own else {}

    def _rates_but(self, but: str) -> dict[int, float]:
        """What is published behind all neighbours but one, by topics of the same attribute."""
        return summed(
            dict(said.rates) for name, (_, said) in sorted(self._heard.items())
            if name != but and said.attribute == self.attribute
        )  # fmt: skip

    def _paths(self, here: float, links: Mapping[str, Link], but: str) -> list[msg.OriginPath]:
        """The own publishers, and those behind all neighbours but one."""
        farthest, topics = self._farthest.told()
        found = [msg.OriginPath(self.host.name, farthest, 0.0, here, topics)]
        for name, (_, said) in sorted(self._heard.items()):
            if name == but or name not in links:
                continue
            way = links[name].rtt_seconds / 2
            same = said.attribute == self.attribute
            found += [
                msg.OriginPath(
                    path.head, path.publisher_seconds, path.links_seconds + way, path.brokers_seconds + here,
                    path.topics if same else [],
                )
                for path in said.origins
            ]  # fmt: skip
        return found[:TOLD_ORIGINS]


def seconds_here(report: Mapping[str, Any], output_bytes_per_second: float | None) -> float:
    """What a publication takes in this head: arrival, matching, departure, and the waits between them."""
    names = ("input_queue_delay_seconds", "match_delay_seconds", "output_queue_delay_seconds")
    waits = sum(float(report.get(name, 0.0)) for name in names)
    sent, rate = float(report.get("output_bytes_per_second", 0.0)), float(report.get("output_rate", 0.0))
    size = sent / rate if rate else 0.0
    return waits + (size / output_bytes_per_second if output_bytes_per_second else 0.0)
