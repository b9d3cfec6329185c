"""What leaves an edge of the queueing model: first come, first served, as in the product, or shared fairly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.wire import DATA_HEAD_BYTES
from plimsoll.simulator.queueing.fair_output import FairOutput, Left
from plimsoll.simulator.queueing.output_queue import OutputQueue
from plimsoll.simulator.queueing.publications import Content, Publication
from plimsoll.simulator.queueing.topic_loads import TopicLoads

DELAY_PARTS = 4
"""Deliveries of one publication leave one after the other: their delays are counted in this many parts."""


class OutputWorld(Protocol):
    """What an output needs of its world."""

    @property
    def now(self) -> float: ...
    def at(self, at: float, action: Any, /, *args: object) -> None: ...
    def delivered(self, at: float, delay_seconds: float, count: int, content: Content, /) -> None: ...
    def frames_for(self, count: int, /) -> float:
        """In how many frames this many deliveries of one publication leave."""

    def bit(self, subscriber: str, /) -> int: ...


class EdgeOutput:
    """`serve` lets the edge serve what is due by a time. `topic_loads`: of an edge that counts topics.

    `is_fair`: its output is shared fairly. `is_by_topic`: by topics, not by subscribers, and it saves nothing up, as in
    texts about queues.
    """

    def __init__(
        self, world: OutputWorld, config: BrokerConfig, meter: LoadMeter, serve: Callable[[float], None], *,
        topic_loads: TopicLoads | None, is_fair: bool, is_by_topic: bool,
    ) -> None:  # fmt: skip
        self.world, self.meter, self._serve, self._is_by_topic = world, meter, serve, is_by_topic
        self.first_come, self.topic_loads = OutputQueue(config), topic_loads
        self.fair = FairOutput[Publication](config, self._left, saves_up=not is_by_topic) if is_fair else None

    def send(self, pub: Publication, mask: int, now: float) -> None:
        """Take deliveries of one publication, and count them with their delays."""
        count = mask.bit_count()
        self.meter.deliveries += count
        heads = self.world.frames_for(count) * DATA_HEAD_BYTES
        size_bytes = count * (pub.content.size_bytes + PREFIX_BYTES) + heads
        if self.fair is not None:
            self._send_fairly(self.fair, pub, mask, size_bytes, now)
            return
        first, last = self.first_come.send(size_bytes, now)
        if self.topic_loads is not None:
            self.topic_loads.leaves(last, mask)
        self.meter.output_wait_seconds += first - now
        self.meter.output_waits += 1
        if last - first < 1e-6 or count == 1:
            self.world.delivered(last, last - pub.sent_at, count, pub.content)
            return
        parts = min(count, DELAY_PARTS)
        for part in range(parts):
            at = first + (part + 0.5) / parts * (last - first)
            share = count * (part + 1) // parts - count * part // parts
            self.world.delivered(at, at - pub.sent_at, share, pub.content)

    def _send_fairly(
        self, fair: FairOutput[Publication], pub: Publication, mask: int, size_bytes: float, now: float
    ) -> None:
        """One queue for each subscriber, or unit; or for each topic."""
        fair.advance(now)
        count = mask.bit_count()
        if fair.leaves_at_once(size_bytes, now):
            self.meter.output_waits += count
            self.world.delivered(now, now - pub.sent_at, count, pub.content)
            return
        each, queue = size_bytes / count, pub.content.queue if self._is_by_topic else None
        while mask:
            bit = mask & -mask
            fair.put(bit, each, now, pub, queue)
            mask ^= bit
        fair.advance(now)

    def _left(self, one: Left[Publication]) -> None:
        self.meter.output_wait_seconds += one.first - one.given_at
        self.meter.output_waits += 1
        self.world.delivered(one.last, one.last - one.item.sent_at, 1, one.item.content)

    def advance(self, until: float) -> None:
        """Let what is due by this time leave."""
        if self.fair is not None:
            self.fair.advance(until)

    def departed_bytes(self, now: float) -> float:
        """What has left since this was asked last."""
        return (self.first_come if self.fair is None else self.fair).departed_bytes(now)

    def waiting_bytes(self, now: float) -> float:
        """What waits."""
        return (self.first_come if self.fair is None else self.fair).waiting_bytes(now)

    def waiting_items(self) -> Mapping[int, int]:
        """How many deliveries wait for each subscriber, where that is known."""
        return {} if self.fair is None else self.fair.waiting()

    # -- the end of what has been given so far

    def when_sent(self, subscribers: Iterable[str], later: float, action: Any, /, *args: object) -> None:
        """Do something `later` seconds after all has left that these subscribers have been given so far."""
        if self.fair is None:
            self.world.at(max(self.world.now, self.first_come.free_at) + later, action, *args)
            return
        bits = [self.world.bit(each) for each in subscribers]
        given = {bit: self.fair.given[bit] for bit in bits}
        self.world.at(self.world.now, self._look_again, self.fair, given, later, action, args)

    def _look_again(
        self, fair: FairOutput[Publication], given: Mapping[int, int], later: float, action: Any, args: Sequence[object]
    ) -> None:
        """When a queue is empty follows from what others get: look at the earliest time, and again if it is not."""
        self._serve(self.world.now)
        fair.advance(self.world.now)
        at = fair.earliest_left(given, self.world.now)
        if at <= self.world.now:
            self.world.at(self.world.now + later, action, *args)
        else:
            self.world.at(at, self._look_again, fair, given, later, action, args)
