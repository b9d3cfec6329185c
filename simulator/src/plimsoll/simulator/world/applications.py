"""The applications of a run: processes that run the client machine, publish and subscribe, and keep the journal.

An application records each request when it makes it, and each event when its client reports it. A process that is
killed comes back as a new incarnation, with the same publishers and the subscriptions that it started with. A consumer
of a group is a process of its own; one that has left does not come back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from plimsoll.core import client as c
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.client.subscriber import SubscriberPhase
from plimsoll.core.client.subscriber_unit import SubscriberUnit
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import subscriber_of_unit
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.observations import Triple, Value
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.world.brokers import ObservationJournal, data_endpoint, id_maker
from plimsoll.simulator.world.consumers import GroupConsumer, GroupLoad
from plimsoll.simulator.world.workload import PlannedPublication, subscription_text

INCARNATIONS_PER_LIFE = 1000
"""The distance between the incarnations of two lives: a publisher that its head has forgotten uses the next number."""

LAST_FRAMES_SECONDS = 0.2
"""How long a process that has left still sends what it has said."""


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
    consumer: GroupConsumer | None = None

    @property
    def incarnation(self) -> int:
        return self.lives * INCARNATIONS_PER_LIFE

    @property
    def client(self) -> c.Client | None:
        node = self.host.node
        return node if isinstance(node, c.Client) else None


def served_by_name(client: c.Client) -> dict[str, c.ClientSubscriber]:
    """What brokers serve: units, and each subscriber that asks for anything without a topic."""
    return {name: one for name, one in client.subscribers.items() if one.phase is not SubscriberPhase.IDLE}


def served_names(process: SimulatedProcess, name: str) -> list[str]:
    """The names under which brokers serve a subscriber."""
    served = {} if process.client is None else served_by_name(process.client)
    return [each for each in served if subscriber_of_unit(each) == name] or [name]


def client_limits(links: LinkLimits) -> c.ClientLimits:
    """Time-outs as short as those of the brokers of a run."""
    return c.ClientLimits(
        backoff_seconds=0.05,
        backoff_max_seconds=0.5,
        attach_seconds=1.0,
        failover_seconds=3.0,
        move_seconds=1.0,
        memory_seconds=20.0,
        idle_seconds=0.5,
        link=links,
    )


class SimulatedApplications:
    """All application processes of a run. `lease_seconds`: that all subscribers ask for; then none may lapse."""

    def __init__(
        self,
        schedule: EventQueue,
        network: SimulatedNetwork,
        journal: ObservationJournal,
        rng: random.Random,
        limits: c.ClientLimits,
        lease_seconds: float = 0.0,
    ) -> None:
        self.schedule, self.network, self.journal, self.rng, self.limits = schedule, network, journal, rng, limits
        self.lease_seconds = lease_seconds
        self.processes: dict[str, SimulatedProcess] = {}
        self.process_of: dict[str, SimulatedProcess] = {}
        """The process of each publisher and subscriber."""
        self.consumers: dict[str, GroupConsumer] = {}
        """All consumers of the run, also those that have left."""

    def add(self, name: str, head: str) -> SimulatedProcess:
        process = self.processes[name] = SimulatedProcess(name, head, SimulatedHost(name, self.schedule, self.network))
        return process

    def add_consumer(self, name: str, head: str, load: GroupLoad, rng: random.Random) -> None:
        process = self.add(name, head)
        self.consumers[name] = process.consumer = GroupConsumer(
            name, load, rng.uniform(*load.work_seconds), rng.randint(1, load.in_hand), rng.random() < 0.5,
            process.host, self.journal.add,
        )  # fmt: skip

    # -- life

    def start(self, name: str) -> None:
        process = self.processes[name]
        process.lives += 1
        new_id = id_maker(self.rng)
        heads = [c.Address(data_endpoint(process.head))]
        client = c.Client(name, process.incarnation, new_id, heads, self.limits)
        process.host.start(lambda: client)
        process.host.after_poll = lambda: self._record_events(process, client)
        for publisher in process.publishers:
            client.publisher(publisher)
        for subscriber, rules in process.subscribers.items():
            policy = process.policies[subscriber]
            client.subscriber(subscriber, policy=policy, lease_seconds=self.lease_seconds)
            for rule in rules:
                self._subscribe(process, client, subscriber, rule)
        if process.consumer is not None:
            process.consumer.start(client)

    def leave(self, consumer: str) -> None:
        """Ask a consumer to leave its group; its process ends then, or does not come back if it is down."""
        self.consumers[consumer].leave()
        process = self.processes[consumer]
        if process.client is None:
            del self.processes[consumer]
        process.host.wake()

    def _end(self, process: SimulatedProcess) -> None:
        """End a process that has left its group."""
        process.host.crash()
        self.processes.pop(process.name, None)

    def crash(self, name: str) -> None:
        """SIGKILL: an answer that the application has not received by now never reaches it."""
        process, client = self.processes[name], self.processes[name].client
        if client is None:
            return
        self._end_pending(process, client)
        process.host.crash()
        if process.consumer is not None:
            process.consumer.crash()
            if process.consumer.is_leaving:
                del self.processes[name]
        for subscriber in process.subscribers:
            self.journal.add(seen.IncarnationEndObserved(subscriber, process.incarnation, self.journal.now))

    def _end_pending(self, process: SimulatedProcess, client: c.Client) -> None:
        """Record the publications that were not answered, and the end of their publishers' incarnations."""
        for (name, number), (attributes, at) in process.pending.items():
            publisher = client.publishers.get(name)
            if publisher is not None:
                incarnation, seq = publisher.incarnation, number - publisher.buffer.base
                self.journal.add(seen.PublicationObserved(name, incarnation, seq, attributes, at))
                self.journal.add(seen.IncarnationEndObserved(name, incarnation, self.journal.now))
        process.pending.clear()

    def restart(self, name: str) -> None:
        if name in self.processes and self.processes[name].client is None:
            self.start(name)

    def names(self) -> list[str]:
        """Processes that are up."""
        return [name for name, process in self.processes.items() if process.client is not None]

    def host(self, name: str) -> SimulatedHost:
        return self.processes[name].host

    def process_name(self, name: str) -> str:
        return self.process_of[name].name if name in self.process_of else ""

    # -- requests

    def _running(self, name: str) -> tuple[SimulatedProcess, c.Client] | None:
        """The process and client of a publisher or subscriber, unless it is down or paused."""
        process = self.process_of[name]
        client = process.client
        return None if client is None or process.host.is_paused else (process, client)

    def publish(self, publication: PlannedPublication, payload: bytes = b"") -> None:
        running = self._running(publication.publisher)
        if running is None:
            return
        process, client = running
        publisher = client.publishers[publication.publisher]
        now = self.schedule.now
        confirm: c.publisher.Confirm = "edges" if publication.confirm_edges else "head"
        try:
            number = publisher.publish(publication.attributes, payload, sent_us=int(now * 1e6), confirm=confirm)
        except (c.BufferFullError, c.StalledError):
            return  # like an application that drops what its client has no room for: it is not due to any subscriber
        process.pending[publication.publisher, number] = (publication.attributes, now)
        process.host.wake()

    def subscribe(self, subscriber: str, rule: tuple[Triple, ...]) -> None:
        running = self._running(subscriber)
        if running is not None and subscriber in running[1].subscribers:
            self._subscribe(*running, subscriber, rule)
            running[0].host.wake()

    def _subscribe(
        self, process: SimulatedProcess, client: c.Client, subscriber: str, rule: tuple[Triple, ...]
    ) -> None:
        number = client.subscribers[subscriber].subscribe(subscription_text(rule))
        self.journal.add(seen.SubscriptionObserved(subscriber, process.incarnation, number, rule, self.journal.now))

    def withdraw(self, subscriber: str) -> None:
        """Withdraw the oldest subscription, unless it is the only one."""
        running = self._running(subscriber)
        if running is None or subscriber not in running[1].subscribers:
            return
        process, client = running
        numbers = sorted(client.subscribers[subscriber].subscriptions)
        if len(numbers) > 1:
            client.subscribers[subscriber].unsubscribe(numbers[0])
            self.journal.add(seen.WithdrawalObserved(subscriber, process.incarnation, [numbers[0]], self.journal.now))
            process.host.wake()

    def set_paused(self, subscriber: str, is_paused: bool) -> None:
        """Let a subscriber pause its deliveries, or resume them."""
        running = self._running(subscriber)
        if running is not None and (one := running[1].subscribers.get(subscriber)) is not None:
            one.pause() if is_paused else one.resume()
            running[0].host.wake()

    def resume_all(self) -> None:
        """Let all subscribers take deliveries again."""
        for subscriber in sorted(self.process_of):
            self.set_paused(subscriber, False)

    # -- events

    def _record_events(self, process: SimulatedProcess, client: c.Client) -> None:
        for owner, events in client.take_events():
            for event in events:
                if isinstance(owner, c.ClientPublisher):
                    self._record_publisher_event(process, owner.name, event)
                elif isinstance(owner, c.ClientSubscriber):
                    self._record_subscriber_event(process, owner.name, event)
                elif process.consumer is not None:
                    process.consumer.take_event(event)
        if process.consumer is not None:
            self._work(process, process.consumer, client)

    def _work(self, process: SimulatedProcess, consumer: GroupConsumer, client: c.Client) -> None:
        client.now = self.schedule.now
        consumer.note_edges(self.schedule.now)
        consumer.work(self.schedule.now)
        if consumer.has_left and consumer.member is not None:
            consumer.member = None
            client.leave(self.schedule.now)
            self.schedule.after(LAST_FRAMES_SECONDS, self._end, process)

    def _record_publisher_event(self, process: SimulatedProcess, name: str, event: object) -> None:
        if isinstance(event, c.Answered):
            for number in range(event.first, event.last + 1):
                seq = event.first_seq + number - event.first
                attributes, at = process.pending.pop((name, number))
                self.journal.add(seen.PublicationObserved(name, event.incarnation, seq, attributes, at))
                self.journal.add(seen.AnswerObserved(name, event.incarnation, seq, event.answer, self.journal.now))
        elif isinstance(event, c.Failed):
            self.journal.add(seen.ResidueObserved(name, f"failure: {event.text}", 1, self.journal.now))
        self._trace(name, event)

    def _record_subscriber_event(self, process: SimulatedProcess, name: str, event: object) -> None:
        at, incarnation, observe = self.journal.now, process.incarnation, self.journal.add
        if isinstance(event, c.Delivery):
            observe(seen.DeliveryObserved(name, incarnation, event.identity, event.origin, at, event.token))
        elif isinstance(event, c.GapNotice):
            gap = event.gap
            observe(
                seen.GapObserved(
                    name, incarnation, gap.head, gap.low_epoch, gap.low, gap.epoch, gap.high, gap.last, gap.reason, at
                )
            )  # fmt: skip
        elif isinstance(event, c.Acknowledged):
            observe(seen.AcknowledgementObserved(name, incarnation, event.ids, event.head, event.unreached, at))
        elif isinstance(event, c.Forgotten):
            observe(seen.RemovalObserved(name, incarnation, event.ids, at))
        elif isinstance(event, c.Attached):
            for served in served_names(process, name):
                observe(seen.AttachmentObserved(served, incarnation, event.edge, at))
        elif isinstance(event, c.Lapsed):
            observe(seen.LeaseEndObserved(name, incarnation, at))
            if self.lease_seconds:
                observe(seen.ResidueObserved(name, f"lapsed within its lease of {self.lease_seconds:g} s", 1, at))
        elif isinstance(event, c.SubscriptionRefused):
            observe(seen.ResidueObserved(name, f"refused subscription: {event.text}", 1, at))
        elif isinstance(event, c.Failed):
            observe(seen.IncarnationEndObserved(name, incarnation, at))
            if event.code != "slow":
                observe(seen.ResidueObserved(name, f"failure: {event.text}", 1, at))
        else:
            self._trace(name, event)

    def _trace(self, name: str, event: object) -> None:
        if self.journal.trace is not None:
            self.journal.trace(f"  {name} {event}")

    # -- the end of a run

    def finish(self) -> None:
        """Record the publications that are unanswered, and the counters of each subscriber."""
        for process in self.processes.values():
            client = process.client
            if client is None:
                continue
            for (name, number), (attributes, at) in process.pending.items():
                publisher = client.publishers[name]
                seq = number - publisher.buffer.base
                self.journal.add(seen.PublicationObserved(name, publisher.incarnation, seq, attributes, at))
            for name, subscriber in client.subscribers.items():
                if isinstance(subscriber, SubscriberUnit | SliceSubscriber):
                    continue  # the counters of its subscriber have its own; items of a slice are journalled as such
                counters = subscriber.statistics()
                for counter in ("delivered", "gaps"):
                    self.journal.add(
                        seen.CounterObserved(name, process.incarnation, counter, counters[counter], self.journal.now)
                    )
