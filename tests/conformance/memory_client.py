"""The project's own client machine as a client under test: in memory, in virtual time, orders and reports as dicts.

It does what examples/clients/conformance_client.py does with the library. Connections break in silence, as those of
ZeroMQ do: the next frame comes on a new one, and what was under way is lost.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.conformance.client_under_test import ClientInput, ReceivedFrame, Report
from plimsoll.core import client as core
from plimsoll.core.client import Address, Client, ClientLimits
from plimsoll.core.protocol.subscription_options import with_latency
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.transport.overlay_node import Dial

STOPPED_SECONDS = 1.0


class MemoryClient:
    """One client in virtual time. `make`: a client of other behaviour, for mutants."""

    def __init__(self, make: type[Client] = Client) -> None:
        self._now = 100.0
        self._ids = itertools.count(1)
        self._connections = itertools.count(1)
        limits = ClientLimits(link=LinkLimits(dead_seconds=5.0))
        self.machine = make("app", 7, lambda: next(self._ids) * 7919 % 2**31, [Address("mem://h")], limits)
        self._peers: dict[str, tuple[str, bytes]] = {}
        self._reports: list[Report] = []
        self._ended: int | None = None
        self._texts: dict[tuple[str, int], str] = {}
        self._member: core.GroupMember | None = None
        self._in_hand: core.HandedItem | None = None
        self.machine.poll(self._now)

    def now(self) -> float:
        return self._now

    def endpoint(self, broker: str) -> str:
        return f"mem://{broker}"

    # -- the brokers' side

    def poll(self, seconds: float) -> ClientInput:
        until = self._now + seconds
        while True:
            self.machine.poll(self._now)
            self._dial()
            frames = [ReceivedFrame(*self._peers[str(peer)], data) for peer, data in self._sent()]
            self._take_events()
            self._take_item()
            reports, self._reports = self._reports, []
            if frames or reports or self._ended is not None:
                return ClientInput(frames, reports, self._ended)
            if self._now >= until:
                return ClientInput()
            self._now = min(until, max(self.machine.next_poll_at(), self._now + 0.001))

    def _sent(self) -> list[tuple[object, bytes]]:
        return [(peer, data) for peer, data in self.machine.data_to_send() if str(peer) in self._peers]

    def _dial(self) -> None:
        for each in self.machine.dials_to_make():
            # One that is hung up stays: its last frames are still to be sent, and its name is never used again.
            if isinstance(each, Dial):
                self._peers[each.peer] = (each.endpoint.removeprefix("mem://"), self._connection())

    def _connection(self) -> bytes:
        return b"%d" % next(self._connections)

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes]) -> None:
        for name, place in self._peers.items():
            if place == (broker, peer) and name in self.machine.links:
                self.machine.receive(name, list(frames), self._now)

    def cut(self, broker: str) -> None:
        for name, (at, _) in list(self._peers.items()):
            if at == broker:
                self._peers[name] = (at, self._connection())

    def close(self) -> None:
        pass

    # -- the application's side

    def order(self, order: Mapping[str, Any]) -> None:
        order = json.loads(json.dumps(order))
        machine, what = self.machine, order["do"]
        if what == "publish":
            name = order["publisher"]
            publisher = machine.publishers.get(name) or machine.publisher(name)
            publisher.publish(order["attributes"], sent_us=1)
        elif what == "subscribe":
            self._subscribe(order)
        elif what == "join":
            self._member = machine.group_member(order["group"], order["member"], None)
        elif what == "acknowledge":
            if self._member is not None and self._in_hand is not None:
                machine.now = self._now
                self._member.items.finish(self._in_hand)
            self._in_hand = None
        elif what == "stop":
            machine.close_all(self._now)
            machine.poll(self._now)
            machine.leave(self._now)
            self._ended = 0
        elif (subscriber := machine.subscribers.get(order["subscriber"])) is not None:
            if what == "close":
                subscriber.close(withdraw=order["withdraw"])
            elif what == "pause":
                subscriber.pause()
            elif what == "continue":
                subscriber.resume()

    def _subscribe(self, order: Mapping[str, Any]) -> None:
        name, token = order["subscriber"], order.get("token")
        subscriber = self.machine.subscribers.get(name)
        if subscriber is None:
            marks = [tuple(mark) for mark in order.get("watermarks", [])]
            subscriber = self.machine.subscriber(name, token=tuple(token) if token else None, watermarks=marks)
        options = with_latency(None, order.get("latency"))
        self._texts[name, subscriber.subscribe(order["subscription"], options)] = order["subscription"]

    def _take_item(self) -> None:
        """The application takes the next item once it has finished the last."""
        if self._member is None or self._in_hand is not None:
            return
        self.machine.now = self._now
        for handed in self._member.items.take(1):
            self._in_hand, item = handed, handed.item
            if isinstance(item, core.Delivery):
                fields = {"publisher": item.publisher, "incarnation": item.incarnation, "seq": item.seq}
                self._reports.append({
                    "event": "item", "group": self._member.group, "slice": handed.owned.slice,
                    "redelivered": handed.is_redelivered, **fields,
                })  # fmt: skip

    def _take_events(self) -> None:
        for owner, events in self.machine.take_events():
            for event in events:
                self._reports += self._describe(owner.name, event)

    def _describe(self, name: str, event: object) -> list[Report]:
        if isinstance(event, core.Delivery):
            fields = {"publisher": event.publisher, "incarnation": event.incarnation, "seq": event.seq}
            return [{"event": "delivery", "subscriber": name, **fields}]
        if isinstance(event, core.GapNotice):
            return [{"event": "gap", "subscriber": name, "reason": event.reason}]
        if isinstance(event, core.Acknowledged):
            texts = [self._texts[name, each] for each in event.ids]
            return [{"event": "counts", "subscriber": name, "subscription": text} for text in texts]
        if isinstance(event, core.Answered):
            return [
                {"event": "answer", "publisher": name, "number": number, "answer": event.answer}
                for number in range(event.first, event.last + 1)
            ]
        return []
