"""How a head goes on after a restart with the log of its earlier epochs: what edges, neighbours and publishers had.

A head that keeps its log in memory has no journal: then nothing here applies, and all of them get gaps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from plimsoll.core.head.confirmations import Confirmations
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.journal import LogJournal, exceptions_of
from plimsoll.core.head.durability.records import (
    Checkpoint,
    GroupKept,
    NeighborAsks,
    NeighborMet,
    NumberRefused,
    PlaceKept,
    SlicesKept,
)
from plimsoll.core.head.durability.store import UnreadableLogError
from plimsoll.core.head.durability.time_index import TimeIndex
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import LostRange, Outbox, UncertainRange
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import ReplayStart, Since, replay_start
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token


class PlacesOfHead(Protocol):
    """The places that a head keeps, and its index of times."""

    kept: dict[str, PlaceKept]
    times: TimeIndex


class GroupsOfHead(Protocol):
    """The consumer groups that a head serves."""

    by_name: dict[str, Any]


class KeysOfHead(Protocol):
    """Keys of a policy of which all units go to one edge."""

    @property
    def is_used(self) -> bool: ...


class DurableGroupsOfHead(Protocol):
    """The declared groups of a head, and how far their slices are."""

    def kept(self) -> list[GroupKept]: ...
    def slices(self) -> list[SlicesKept]: ...


class ContinuationContext(Protocol):
    """The parts of a head that outlast a restart."""

    now: float
    name: str
    epoch: int
    members: frozenset[str]
    log: Log
    journal: LogJournal | None
    routes: RoutingTable
    outboxes: Outboxes
    publishers: PublisherTable
    distributor: Distributor
    confirmations: Confirmations
    startup: StartupBarrier
    covers: CoverUpdates
    durable_places: PlacesOfHead
    groups: GroupsOfHead
    durable_groups: DurableGroupsOfHead

    @property
    def bundles(self) -> KeysOfHead: ...
    @property
    def topics(self) -> KeysOfHead: ...


class EpochContinuation:
    """What a head takes from its log when it starts, and where others go on in it."""

    def __init__(self, host: ContinuationContext) -> None:
        self.host = host

    @property
    def memory(self) -> int:
        """The epoch since which this head has forgotten nothing; its own if it keeps nothing."""
        journal = self.host.journal
        return journal.memory if journal is not None else self.host.epoch

    def restore(self) -> None:
        """Take over what the log says of publishers, neighbours and origins; say what may be missing."""
        host, journal = self.host, self.host.journal
        if journal is None:
            return
        host.publishers.journal = journal
        state = journal.state
        host.distributor.seen.update(state.seen())
        host.distributor.heard.update(state.neighbors)
        if journal.earlier and not journal.is_unsure:
            host.startup.recall({name: epoch for name, (epoch, _) in state.neighbors.items()})
            self._recall_covers()
        # Units that go to one edge stay there, so it must be known which edge that is.
        host.startup.needs_all = not journal.has_all or host.bundles.is_used or host.topics.is_used
        edges = sorted(host.members)
        for known in state.publishers.values():
            exceptions = exceptions_of(state.exceptions.get(known.name, ()), edges)
            host.publishers.restore(known, deque(exceptions))
        if journal.is_unsure:
            host.distributor.log_uncertainty("")  # behind all that is known of the earlier epochs

    def begin(self, journal: LogJournal) -> None:
        """Keep a journal from here on, in the epoch of a head that has had none: nothing has been forgotten yet."""
        host = self.host
        host.distributor.heard.update({name: at for name in host.routes.neighbors if (at := self.heard(name))[0]})
        journal.state.asks.update({name: {} for name in host.routes.neighbors if name in host.routes})
        host.journal = host.publishers.journal = journal

    def _recall_covers(self) -> None:
        """Route to neighbours by what they asked for: what was acknowledged to them is on the disk.

        Nothing is sent to one before it has reported how far it has had the log.
        """
        host = self.host
        if host.journal is None:
            return
        for name, cover in sorted(host.journal.state.asks.items()):
            if name in host.routes.neighbors and name in host.distributor.heard:
                items = [msg.CoverItem(number, text) for number, text in cover.items()]
                host.covers.change(name, msg.Cover(0, items, []))
                host.outboxes.recalled.add(name)
                host.startup.answered_for.add(name)

    def checkpoint(self) -> Checkpoint:
        """The state behind all that this head has written, for the beginning of a segment.

        Raises:
            RuntimeError: this head keeps no log on a disk.

        """
        host, journal = self.host, self.host.journal
        if journal is None:
            raise RuntimeError("a head without a journal has no checkpoint")
        distributor = host.distributor
        asks = journal.state.asks
        offsets = {**journal.state.offsets, **distributor.seen}
        if distributor.offset:
            offsets[host.name, host.epoch] = distributor.offset
        return Checkpoint(
            list(journal.epochs.epochs),
            [(*origin, offset) for origin, offset in sorted(offsets.items())],
            [each for _, each in sorted(host.publishers.remembered())],
            list(self._exceptions()),
            [(name, *at) for name, at in sorted(distributor.heard.items())],
            [place for _, place in sorted(host.durable_places.kept.items())],
            list(host.durable_places.times.marks),
            [NeighborAsks(name, host.routes.items(name), whole=True) for name in host.routes.neighbors if name in asks],
            host.durable_groups.kept(),
            host.durable_groups.slices(),
            sorted(host.groups.by_name),
        )

    def _exceptions(self) -> Iterator[NumberRefused]:
        for _, each in sorted(self.host.publishers.by_name.items()):
            for answer in each.singled_out:
                code, text = (answer.code, answer.text) if isinstance(answer, msg.Refused) else ("", "")
                yield NumberRefused(each.name, each.incarnation, answer.seq, code, text)
            for pending in each.pending:
                yield NumberRefused(each.name, each.incarnation, pending.seq, "", "")

    # -- where others go on

    def for_edge(self, report: msg.EdgeReport) -> int | None:
        """Where the stream of an edge goes on; None if it has to begin at the end of the log."""
        journal = self.host.journal
        if journal is None or not report.head_epoch:
            return None
        return journal.goes_on_from(report.head_epoch, report.position, self.host.log.last)

    def send_missed(self, outbox: Outbox, start: int) -> None:
        """Send an edge all that was logged behind this position: what it does not need it passes over."""
        last = self.host.log.last
        if start < last:
            self.host.outboxes.offer_again(outbox, range(start + 1, last + 1))

    def to_neighbor(self, outbox: Outbox, report: msg.NeighborReport) -> bool:
        """Send a neighbour what it has missed of earlier epochs; False if it is not known what that is.

        One that has forgotten what it had gets a gap over what earlier lives of this head may have sent it, or not.
        All of this life it is sent, as none of that has left yet.
        """
        host, journal = self.host, self.host.journal
        if journal is None or outbox.name in host.startup.given_up:
            return False
        start = journal.goes_on_from(report.head_epoch, report.position, host.log.last)
        in_doubt: list[int | LostRange] = []
        if self._has_forgotten(outbox.name, report):
            start = journal.began_behind
            in_doubt += [UncertainRange(1, start)] if start else []
        if start is None or start + 1 < host.log.first:
            return False
        try:
            missed = list(self._missed(journal, outbox.name, start))
        except UnreadableLogError:
            return False  # a gap over all of the log stands for it
        host.outboxes.offer_again(outbox, [*in_doubt, *missed])
        return True

    def _has_forgotten(self, neighbor: str, report: msg.NeighborReport) -> bool:
        """Whether a neighbour that the log knows has heard of this head in this life at the earliest."""
        host = self.host
        is_recalled = neighbor in host.outboxes.recalled and host.startup.has_forgotten(neighbor)
        return is_recalled and report.head_epoch in (0, host.epoch)

    def begins_for(self, neighbor: str) -> int:
        """The position behind which a neighbour is sent all that it asks for, if it has nothing of this log.

        That is the end of the log. But one whose cover is known from the disk alone has been offered nothing since this
        head started: if it has forgotten what it had, it goes on where this life of the head began.
        """
        journal = self.host.journal
        if journal is None or neighbor not in self.host.outboxes.recalled:
            return self.host.log.last
        return journal.began_behind

    def _missed(self, journal: LogJournal, neighbor: str, start: int) -> Iterable[int]:
        for position, logged in journal.records_after(start):
            if logged.source == neighbor:
                continue  # it came from there
            message = msg.to_edge.decode(logged.record)
            if not isinstance(message, msg.PubOpen) or neighbor in self.host.routes.match(message.body.attributes):
                yield position

    def meets(self, outbox: Outbox, report: msg.NeighborReport) -> None:
        """Note where the log of a neighbour begins to be of use here: of one that is met for the first time, or has
        lost what it had. A gap is logged for that loss; without the note each later start would take it for a new one.
        """
        host = self.host
        is_met = outbox.name in host.distributor.heard or outbox.name in host.distributor.relayed
        if is_met and not host.startup.has_forgotten(outbox.name):
            return
        epoch, position = outbox.link.incarnation, report.log_position
        if host.journal is None:
            host.distributor.relayed[outbox.name] = position
        else:
            host.distributor.heard[outbox.name] = (epoch, position)
            host.journal.pending.append(NeighborMet(outbox.name, epoch, position))

    def asks(self, neighbor: str, cover: msg.Cover, replaced: list[tuple[int, str]] | None = None) -> None:
        """Write down a change of what a neighbour asks for; its acknowledgement waits for the disk with the round.

        `replaced`: what its whole cover has replaced, which is nothing new where it is the same.
        """
        journal = self.host.journal
        if journal is None:
            return
        adds = [(item.id, item.text) for item in cover.adds]
        is_first = neighbor not in journal.state.asks
        if is_first or replaced is None or dict(adds) != dict(replaced):
            journal.state.asks.setdefault(neighbor, {})
            journal.pending.append(NeighborAsks(neighbor, adds, list(cover.removes), replaced is not None))

    def heard(self, neighbor: str) -> tuple[int, int]:
        """The epoch and the position up to which the log of a neighbour has come here; zeros if none has."""
        host = self.host
        if host.journal is None and neighbor in host.distributor.relayed:
            return host.startup.epoch_of(neighbor), host.distributor.relayed[neighbor]
        return host.distributor.heard.get(neighbor, (0, 0))

    def start_since(self, since: Token | float) -> ReplayStart:
        """Where a subscriber begins that wants what came since a time, or behind a position, whether it was covered."""
        host, journal = self.host, self.host.journal
        if not isinstance(since, tuple):
            at = host.durable_places.times.position_at(since)
            return replay_start((host.name, host.epoch, at), (0, 0), host.name, host.epoch, host.log)
        start = None
        if journal is not None and since[0] == host.name:
            start = journal.goes_on_from(since[1], since[2], host.log.last)
        token = since if start is None else (host.name, host.epoch, start)
        return replay_start(token, (0, 0), host.name, host.epoch, host.log)

    def replay_start(self, token: Token | None, since: Since) -> ReplayStart:
        """Where a subscriber goes on, as `ownership.replay_start`; tokens of epochs that the log knows are its own."""
        host, journal = self.host, self.host.journal
        if journal is None or token is None or token[0] != host.name:
            return replay_start(token, since, host.name, host.epoch, host.log)
        start = journal.goes_on_from(token[1], token[2], host.log.last)
        if start is None:
            return replay_start(token, since, host.name, host.epoch, host.log)
        # Without neighbours all that was ever due to a subscriber is in this log, whether or not it had a cover.
        if not journal.epochs.was_alone_since(token[1]) and (token[1], token[2]) < since:
            return replay_start(token, since, host.name, host.epoch, host.log)
        # Positions go on from one epoch to the next: the token is as good as one of the present epoch.
        return replay_start((host.name, host.epoch, start), (0, 0), host.name, host.epoch, host.log)
