"""The applications of a run: processes with the client machine in them, what they do and what they see.

An application writes into the journal what it asks for when it asks, and what it is told when it is told. A process
that is killed comes back as a new incarnation, which asks for the same again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from plimsoll.core import client as c
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.observations import Triple, Value
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.world.brokers import ObservationJournal, data_endpoint, id_maker
from plimsoll.simulator.world.workload import PlannedPublication, subscription_text

INCARNATIONS_PER_LIFE = 1000
"""Incarnations of processes are so far apart: a publisher that a head has forgotten takes the next one for itself."""


@dataclass(slots=True)
class SimulatedProcess:
    """One application process, through all its lives."""

    name: str
    head: str
    host: SimulatedHost
    publishers: list[str] = field(default_factory=list)
    subscribers: dict[str, list[tuple[Triple, ...]]] = field(default_factory=dict)
    policies: dict[str, msg.Policy] = field(default_factory=dict)
    lives: int = 0
    pending: dict[tuple[str, int], tuple[dict[str, Value], float]] = field(default_factory=dict)

    @property
    def incarnation(self) -> int:
        return self.lives * INCARNATIONS_PER_LIFE

    @property
    def client(self) -> c.Client | None:
        node = self.host.node
        return node if isinstance(node, c.Client) else None


def client_limits(links: LinkLimits) -> c.ClientLimits:
    """As impatient as the brokers of a run."""
    return c.ClientLimits(
        backoff_seconds=0.05,
        backoff_max_seconds=0.5,
        attach_seconds=1.0,
        failover_seconds=3.0,
        memory_seconds=20.0,
        idle_seconds=0.5,
        link=links,
    )


class SimulatedApplications:
    """All application processes of a run."""

    def __init__(
        self,
        schedule: EventQueue,
        network: SimulatedNetwork,
        journal: ObservationJournal,
        draw: random.Random,
        limits: c.ClientLimits,
    ) -> None:
        self.schedule, self.network, self.journal, self.draw, self.limits = schedule, network, journal, draw, limits
        self.processes: dict[str, SimulatedProcess] = {}
        self.of: dict[str, SimulatedProcess] = {}

    def add(self, name: str, head: str) -> SimulatedProcess:
        process = self.processes[name] = SimulatedProcess(name, head, SimulatedHost(name, self.schedule, self.network))
        return process

    # -- life

    def start(self, name: str) -> None:
        process = self.processes[name]
        process.lives += 1
        new_id = id_maker(self.draw)
        heads = [c.Address(data_endpoint(process.head))]
        client = c.Client(name, process.incarnation, new_id, heads, self.limits)
        process.host.start(lambda: client)
        process.host.keeper = lambda: self._keep(process, client)
        for publisher in process.publishers:
            client.publisher(publisher)
        for subscriber, rules in process.subscribers.items():
            client.subscriber(subscriber, policy=process.policies[subscriber])
            for rule in rules:
                self._subscribe(process, client, subscriber, rule)

    def crash(self, name: str) -> None:
        """SIGKILL: what the application has not been told by now, it will never be told."""
        process, client = self.processes[name], self.processes[name].client
        if client is None:
            return
        self._leave(process, client)
        process.host.crash()
        for subscriber in process.subscribers:
            self.journal.add(seen.IncarnationEndObserved(subscriber, process.incarnation, self.journal.now))

    def _leave(self, process: SimulatedProcess, client: c.Client) -> None:
        """Write down what was published and not answered."""
        for (name, number), (attributes, at) in process.pending.items():
            publisher = client.publishers.get(name)
            if publisher is not None:
                _, incarnation, seq = publisher.identity(number)
                self.journal.add(seen.PublicationObserved(name, incarnation, seq, attributes, at))
                self.journal.add(seen.IncarnationEndObserved(name, incarnation, self.journal.now))
        process.pending.clear()

    def restart(self, name: str) -> None:
        if self.processes[name].client is None:
            self.start(name)

    def names(self) -> list[str]:
        return [name for name, process in self.processes.items() if process.client is not None]

    def host(self, name: str) -> SimulatedHost:
        return self.processes[name].host

    def home(self, name: str) -> str:
        return self.of[name].name if name in self.of else ""

    # -- what applications do

    def _able(self, name: str) -> tuple[SimulatedProcess, c.Client] | None:
        """The process of a publisher or subscriber, if it runs."""
        process = self.of[name]
        client = process.client
        return None if client is None or process.host.is_paused else (process, client)

    def publish(self, saying: PlannedPublication, payload: bytes = b"") -> None:
        able = self._able(saying.publisher)
        if able is None:
            return
        process, client = able
        publisher = client.publishers[saying.publisher]
        now = self.schedule.now
        confirm: c.publisher.Confirm = "edges" if saying.confirm_edges else "head"
        try:
            number = publisher.publish(saying.attributes, payload, sent_us=int(now * 1e6), confirm=confirm)
        except c.BufferFullError:
            return  # as an application that drops what its client has no room for: it is not due to any subscriber
        process.pending[saying.publisher, number] = (saying.attributes, now)
        process.host.wake()

    def subscribe(self, subscriber: str, rule: tuple[Triple, ...]) -> None:
        able = self._able(subscriber)
        if able is not None and subscriber in able[1].subscribers:
            self._subscribe(*able, subscriber, rule)
            able[0].host.wake()

    def _subscribe(
        self, process: SimulatedProcess, client: c.Client, subscriber: str, rule: tuple[Triple, ...]
    ) -> None:
        number = client.subscribers[subscriber].subscribe(subscription_text(rule))
        self.journal.add(seen.SubscriptionObserved(subscriber, process.incarnation, number, rule, self.journal.now))

    def withdraw(self, subscriber: str) -> None:
        """Withdraw the oldest subscription, unless it is the only one."""
        able = self._able(subscriber)
        if able is None or subscriber not in able[1].subscribers:
            return
        process, client = able
        has = sorted(client.subscribers[subscriber].subscriptions)
        if len(has) > 1:
            client.subscribers[subscriber].unsubscribe(has[0])
            self.journal.add(seen.WithdrawalObserved(subscriber, process.incarnation, [has[0]], self.journal.now))
            process.host.wake()

    def hold(self, subscriber: str, hold: bool) -> None:
        """Let a subscriber take nothing, or go on."""
        able = self._able(subscriber)
        if able is not None and (one := able[1].subscribers.get(subscriber)) is not None:
            one.pause() if hold else one.resume()
            able[0].host.wake()

    def release(self) -> None:
        """Nobody is held any more."""
        for subscriber in sorted(self.of):
            self.hold(subscriber, False)

    # -- what applications see

    def _keep(self, process: SimulatedProcess, client: c.Client) -> None:
        for owner, events in client.take_events():
            for event in events:
                if isinstance(owner, c.ClientPublisher):
                    self._publisher_saw(process, owner.name, event)
                else:
                    self._subscriber_saw(process, owner.name, event)

    def _publisher_saw(self, process: SimulatedProcess, name: str, event: object) -> None:
        if isinstance(event, c.Answered):
            for number in range(event.first, event.last + 1):
                seq = event.first_seq + number - event.first
                attributes, at = process.pending.pop((name, number))
                self.journal.add(seen.PublicationObserved(name, event.incarnation, seq, attributes, at))
                self.journal.add(seen.AnswerObserved(name, event.incarnation, seq, event.answer, self.journal.now))
        elif isinstance(event, c.Failed):
            self.journal.add(seen.ResidueObserved(name, f"failure: {event.text}", 1, self.journal.now))
        self._say(name, event)

    def _subscriber_saw(self, process: SimulatedProcess, name: str, event: object) -> None:
        at, incarnation, see = self.journal.now, process.incarnation, self.journal.add
        if isinstance(event, c.Delivery):
            see(seen.DeliveryObserved(name, incarnation, event.identity, event.origin, at, event.token))
        elif isinstance(event, c.GapNotice):
            gap = event.gap
            see(
                seen.GapObserved(
                    name, incarnation, gap.head, gap.low_epoch, gap.low, gap.epoch, gap.high, gap.last, gap.reason, at
                )
            )  # fmt: skip
        elif isinstance(event, c.Acknowledged):
            see(seen.AcknowledgementObserved(name, incarnation, event.ids, event.head, event.unreached, at))
        elif isinstance(event, c.Forgotten):
            see(seen.RemovalObserved(name, incarnation, event.ids, at))
        elif isinstance(event, c.Attached):
            see(seen.AttachmentObserved(name, incarnation, event.edge, at))
        elif isinstance(event, c.Lapsed):
            see(seen.LeaseEndObserved(name, incarnation, at))
        elif isinstance(event, c.SubscriptionRefused):
            see(seen.ResidueObserved(name, f"refused subscription: {event.text}", 1, at))
        elif isinstance(event, c.Failed):
            see(seen.IncarnationEndObserved(name, incarnation, at))
            if event.code != "slow":
                see(seen.ResidueObserved(name, f"failure: {event.text}", 1, at))
        else:
            self._say(name, event)

    def _say(self, name: str, event: object) -> None:
        if self.journal.trace is not None:
            self.journal.trace(f"  {name} {event}")

    # -- the end

    def finish(self) -> None:
        """Write down what is unanswered, and what each application counts itself."""
        for process in self.processes.values():
            client = process.client
            if client is None:
                continue
            for (name, number), (attributes, at) in process.pending.items():
                _, incarnation, seq = client.publishers[name].identity(number)
                self.journal.add(seen.PublicationObserved(name, incarnation, seq, attributes, at))
            for name, subscriber in client.subscribers.items():
                told = subscriber.statistics()
                for what in ("delivered", "gaps"):
                    self.journal.add(
                        seen.CounterObserved(name, process.incarnation, what, told[what], self.journal.now)
                    )
