"""The topics of an edge of the model, as its load reports show them: the product's meter, fed with the model's counts.

An output that is first come, first served has no queues of its own for subscribers: what waits for each is found from
the publications that have not left yet.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from plimsoll.core.edge.attachment import SERVED, EdgeAttachment
from plimsoll.core.edge.topic_meter import EdgeTimes, TopicMeter
from plimsoll.core.protocol import messages as msg


class LeavingWorld(Protocol):
    """How far apart brokers and clients are, in seconds."""

    @property
    def link_seconds(self) -> float: ...
    @property
    def client_seconds(self) -> float: ...


class TopicLoads:
    """`meter`: of the product's edge. Subscribers are known by their bits."""

    def __init__(self, meter: TopicMeter, world: LeavingWorld) -> None:
        self.meter, self.world = meter, world
        self._served: dict[int, EdgeAttachment] = {}
        self._leaving: deque[tuple[float, int]] = deque()

    def serve(self, bit: int, attachment: EdgeAttachment) -> None:
        """From here on this subscriber is served."""
        self._served[bit] = attachment

    def stop_serving(self, bit: int) -> None:
        """This subscriber is served no longer."""
        self._served.pop(bit, None)

    def note(self, opened: msg.PubOpen, size_bytes: int, matched: int) -> None:
        """A publication has been matched; `matched`: its subscribers here."""
        self.meter.note(opened, size_bytes, matched.bit_count())
        while matched:
            bit = matched & -matched
            if (found := self._served.get(bit)) is not None:
                found.matched += 1
            matched ^= bit

    def leaves(self, at: float, mask: int) -> None:
        """Deliveries to these subscribers leave an output without queues of their own. Times ascend."""
        self._leaving.append((at, mask))

    def report(
        self, waiting: Mapping[int, int], last: Mapping[str, Any], output_bytes_per_second: float | None, now: float
    ) -> dict[str, Any]:
        """The field of a load report. `waiting`: messages that wait, by bit; `last`: the last report."""
        while self._leaving and self._leaving[0][0] <= now:
            self._leaving.popleft()
        queued = Counter(waiting)
        for _, mask in self._leaving:
            queued.update(_bits(mask))
        served = {bit: each for bit, each in self._served.items() if each.state in SERVED}
        for each in served.values():
            each.link.round_trip.seconds = 2 * self.world.client_seconds
        buffered = {each: queued[bit] for bit, each in served.items() if queued[bit] > 0}
        times = EdgeTimes(
            self.world.link_seconds,
            last.get("input_queue_delay_seconds", 0.0) + last.get("match_delay_seconds", 0.0),
            output_bytes_per_second,
            max(last.get("input_utilization", 0.0), last.get("output_utilization", 0.0)),
        )
        return self.meter.report(served.values(), buffered, times, now)


def _bits(mask: int) -> Iterable[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit
