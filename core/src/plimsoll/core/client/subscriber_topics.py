"""The topics of a subscriber in a cluster that has bundles: which of its subscriptions its units ask for.

Rules of the place:
- A subscription whose values of the topic attribute can be listed is asked for by units, one for each hash. The others
  are asked for by the subscriber itself, the rest, which has no edge as long as there are none of them.
- The application sees one list, one stream and one state: ids are the subscriber's, and a subscription counts when all
  units that ask for it have it.
- A unit ends when its last subscription has been withdrawn, as its edge has confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from plimsoll.core.client.events import (
    Acknowledged,
    Delivery,
    Failed,
    Forgotten,
    GapNotice,
    Lapsed,
    SubscriberEvent,
    SubscriptionRefused,
)
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.client.subscriber import ClientSubscriber, SubscriberPhase, UnitMark
from plimsoll.core.client.subscriber_unit import SubscriberUnit
from plimsoll.core.client.topic_overlap import TopicOverlap
from plimsoll.core.client.topic_parts import topic_parts
from plimsoll.core.predicates import Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.protocol.wire import Scalar, Token

SUMMED = ("delivered", "duplicates_suppressed", "gaps", "gaps_known", "reconnects", "redirects", "moves", "pauses")


class UnitFactory(Protocol):
    def check_name(self, subscriber: str, topic: int) -> None:
        """ValueError if a new unit may not have its name."""

    def unit(self, topics: SubscriberTopics, topic: int, token: Token | None) -> SubscriberUnit:
        """A new unit, which looks for an edge."""


class SubscriberTopics:
    """`items`: subscriptions of units by id. `marks`: of an earlier life, until their units are made."""

    def __init__(
        self,
        root: ClientSubscriber,
        attribute: str,
        factory: UnitFactory,
        token: Token | None,
        marks: Iterable[UnitMark],
    ) -> None:
        self.root, self.attribute, self._factory = root, attribute, factory
        self.units: dict[int, SubscriberUnit] = {}
        self.items: dict[int, msg.SubscriptionItem] = {}
        self.overlap = TopicOverlap()
        self._token, self._marks = token, list(marks)
        self._asked: dict[int, set[tuple[int, int]]] = {}
        self._ids: dict[tuple[int, int], int] = {}
        self._waiting: dict[int, set[tuple[int, int]]] = {}
        self._leaving: dict[int, set[tuple[int, int]]] = {}

    # -- subscriptions

    def topics(self, subscription: Subscription) -> list[tuple[int, str]]:
        """The hashes of its topics, each with the text that its unit asks for; empty if the rest asks for it.

        Raises:
            ValueError: the application uses the name of a new unit for another subscriber.

        """
        parts = topic_parts(subscription, self.attribute)
        for topic, _ in parts:
            if topic not in self.units:
                self._factory.check_name(self.root.name, topic)
        return parts

    def subscribe(self, item: msg.SubscriptionItem, topics: list[tuple[int, str]]) -> None:
        """Let the units of these topics ask for a subscription, each for its part."""
        self.items[item.id] = item
        parts: set[tuple[int, int]] = set()
        for topic, text in topics:
            unit = self._unit(topic)
            parts.add((topic, unit.subscribe(text, item.options)))
        self._asked[item.id], self._waiting[item.id] = parts, set(parts)
        self._ids.update(dict.fromkeys(parts, item.id))

    def unsubscribe(self, subscription_id: int) -> None:
        """Withdraw a subscription of units."""
        del self.items[subscription_id]
        self._waiting.pop(subscription_id, None)
        parts = self._asked.pop(subscription_id)
        self._leaving[subscription_id] = set(parts)
        for topic, part in sorted(parts):
            self.units[topic].unsubscribe(part)

    def _unit(self, topic: int) -> SubscriberUnit:
        unit = self.units.get(topic)
        if unit is None:
            unit = self.units[topic] = self._factory.unit(self, topic, self._token)
            own = [mark[:3] for mark in self._marks if mark[3] == topic]
            unit.stream.start_from(own or self.root.stream.marks())  # of an earlier life, or of the whole subscriber
            unit.stream.overlap = self.is_new
        return unit

    @property
    def is_acknowledged(self) -> bool:
        """Whether every change has been acknowledged at every unit."""
        return not self._waiting and not self._leaving

    # -- what happens to units

    def on_event(self, unit: SubscriberUnit, event: SubscriberEvent) -> None:
        """Pass an event of a unit on as one of the subscriber, with its ids."""
        match event:
            case Acknowledged():
                self._acknowledged(unit, event)
            case Forgotten():
                self._forgotten(unit, event)
            case SubscriptionRefused():
                self._refused(unit, event)
            case Lapsed():
                self.root.tell(event)
                self.lapsed(unit)
            case Failed():
                self.units.pop(unit.topic, None)
                self.root.close()
                self.root.fail(event.code, event.text)
            case GapNotice():
                self.root.tell(replace(event, topic=unit.topic))
            case _:
                self.root.tell(event)

    def lapsed(self, unit: ClientSubscriber) -> None:
        """One unit, or the rest, has lapsed: of all subscriptions, those that others ask for count as before."""
        own = {i for (topic, part), i in self._ids.items() if self.units.get(topic) is unit}
        for subscription in own & self._asked.keys():
            parts = {each for each in self._asked[subscription] if self.units.get(each[0]) is unit}
            self._waiting.setdefault(subscription, set()).update(parts)
        counting = sorted(self._asked.keys() - self._waiting.keys())
        if unit is not self.root:
            mine = self.root.subscription_list
            counting += sorted(mine.items.keys() - mine.unacked.keys())
        if counting:
            self.root.tell(Acknowledged(tuple(counting), (unit.stream.origin or ("", 0))[0], ()))

    def _acknowledged(self, unit: SubscriberUnit, event: Acknowledged) -> None:
        counting = []
        for each in event.ids:
            subscription = self._ids.get((unit.topic, each))
            waiting = self._waiting.get(subscription, set()) if subscription is not None else set()
            waiting.discard((unit.topic, each))
            if subscription is not None and subscription in self._asked and not waiting:
                self._waiting.pop(subscription, None)
                counting.append(subscription)
        if counting:
            self.root.tell(Acknowledged(tuple(counting), event.head, event.unreached))

    def _forgotten(self, unit: SubscriberUnit, event: Forgotten) -> None:
        gone = []
        for each in event.ids:
            subscription = self._ids.pop((unit.topic, each), None)
            if subscription is not None and subscription in self._leaving:
                self._leaving[subscription].discard((unit.topic, each))
                if not self._leaving[subscription]:
                    del self._leaving[subscription]
                    gone.append(subscription)
        if gone:
            self.root.tell(Forgotten(tuple(gone)))
        if not unit.subscriptions and unit.is_acknowledged:
            del self.units[unit.topic]
            unit.close()

    def _refused(self, unit: SubscriberUnit, event: SubscriptionRefused) -> None:
        """A part of a subscription is refused: so is all of it."""
        subscription = self._ids.pop((unit.topic, event.id), None)
        if subscription is None or self.items.pop(subscription, None) is None:
            return
        self._waiting.pop(subscription, None)
        for topic, part in sorted(self._asked.pop(subscription)):
            if (topic, part) != (unit.topic, event.id):
                self._ids.pop((topic, part), None)
                self.units[topic].unsubscribe(part)
        self.root.tell(SubscriptionRefused(subscription, event.text))

    # -- deliveries

    def is_new(self, stream: SubscriberStream, item: msg.PubOpen) -> bool:
        rest = self.root.stream
        if stream is not rest:
            return self.root.phase is SubscriberPhase.IDLE or self.overlap.is_new(item, stream, rest)
        unit = self.unit_of(item)
        return unit is None or self.overlap.is_new(item, stream, unit.stream)

    def unit_of(self, item: msg.PubOpen | Delivery) -> SubscriberUnit | None:
        """The unit that asks for the topic of a publication."""
        attributes: Mapping[str, Scalar] = item.attributes if isinstance(item, Delivery) else item.body.attributes
        topic = attributes.get(self.attribute)
        return None if topic is None else self.units.get(topic_hash(topic))

    # -- all units

    def each(self, do: Callable[[SubscriberUnit], None]) -> None:
        """Do the same with every unit."""
        for unit in list(self.units.values()):
            do(unit)

    def token(self, own: Token | None) -> Token | None:
        """The lowest token of all units and the rest (`own`), since a later life has only one.

        Tokens of several heads cannot be compared: the first one counts, and the others go on behind a gap.
        """
        known = [token for token in (own, *(unit.token for unit in self.units.values())) if token is not None]
        same = [token for token in known if token[:2] == known[0][:2]]
        return min(same, key=lambda token: token[2], default=None)

    def statistics(self, own: dict[str, Any]) -> dict[str, Any]:
        """Those of the subscriber, with the counts of its units added. `edges`: where units are served."""
        each = [unit.statistics() for unit in self.units.values()]
        sums = {name: own[name] + sum(one[name] for one in each) for name in SUMMED}
        rtts = [own["rtt_seconds"], *(one["rtt_seconds"] for one in each)]
        edges = sorted({one["edge"] for one in (own, *each)} - {""})
        return {
            **own, **sums, "token": self.root.token, "rtt_seconds": max(rtts), "units": len(each), "edges": edges,
            "overlaps": self.overlap.suppressed,
        }  # fmt: skip

    def marks(self) -> list[UnitMark]:
        """The watermarks of all units."""
        return [(*mark, topic) for topic, unit in self.units.items() for mark in unit.stream.marks()]
