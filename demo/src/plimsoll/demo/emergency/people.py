"""The people of a run as subscribers: they join, ask, move about, and note what comes to them and when."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from plimsoll.client import Connection, Delivery, Subscriber, Subscription
from plimsoll.core.client.events import Item
from plimsoll.demo.emergency.oracle import HeldSubscription, Received
from plimsoll.demo.emergency.plan import CHANNELS, Person, Want, area_of

OVERLAP_SECONDS: Final = 10.0
"""A person who has moved keeps the subscriptions of the old area at least for so long, and until the channels have
consumed what was published before: results of what was there still come, however slow this machine is."""
NEVER: Final = float("inf")
OBSERVER: Final = "observer"


@dataclass
class _Asking:
    """A subscription under way. Times are seconds of the run."""

    want: Want
    values: dict[str, int]
    subscription: Subscription
    asked: float
    acknowledged: float = NEVER
    left: float = NEVER
    withdrawn: float = NEVER
    published: int = 0
    """The reports that were published when it was left."""


@dataclass
class _Attendee:
    """A person who has joined."""

    person: Person
    subscriber: Subscriber
    area: int
    askings: list[_Asking] = field(default_factory=list)


class People:
    """All people of a plan, on one connection, and an observer who gets every result. `began`: monotonic seconds."""

    def __init__(self, connection: Connection, began: float) -> None:
        self._connection, self._began = connection, began
        self._joined: dict[str, _Attendee] = {}
        self._pending: list[_Asking] = []
        self._items: list[tuple[str, Item, float]] = []
        self._observer = self._subscriber(OBSERVER, None)
        for channel in CHANNELS:
            self._observer.subscribe(f"[channel,=,'{channel.name}']")

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def _subscriber(self, name: str, place: tuple[float, float] | None) -> Subscriber:
        def on_batch(items: list[Item]) -> None:
            at = self.now
            self._items += [(name, item, at) for item in items]

        return Subscriber(self._connection, name=name, location=place, on_batch=on_batch)

    def join(self, person: Person) -> None:
        """Join at the first place, and ask for all that the person wants there."""
        place = person.places[0][1]
        attendee = _Attendee(person, self._subscriber(person.name, place), area_of(place))
        self._joined[person.name] = attendee
        for want in person.wants:
            self._ask(attendee, want)

    def _ask(self, attendee: _Attendee, want: Want) -> None:
        values = want.values(attendee.area)
        text = ",".join([f"[channel,=,'{want.channel}']", *(f"[{name},=,{value}]" for name, value in values.items())])
        asking = _Asking(want, values, attendee.subscriber.subscribe(text, wait=False), self.now)
        attendee.askings.append(asking)
        self._pending.append(asking)

    def move(self, person: Person, area: int, published: int) -> None:
        """Ask for the new area; what was asked for the old one is left, and withdrawn later.

        `published`: how many reports have been published by now.
        """
        attendee = self._joined[person.name]
        if attendee.area == area:
            return
        attendee.area, at = area, self.now
        for asking in [each for each in attendee.askings if "area" in each.values and each.left == NEVER]:
            asking.left, asking.published = at, published
            self._ask(attendee, asking.want)

    def step(self, consumed: int) -> None:
        """Notice what is acknowledged, and withdraw what was left long enough ago.

        `consumed`: how many reports all channels have consumed, some seconds ago.
        """
        at = self.now
        for asking in self._pending:
            if asking.subscription.is_settled:
                asking.acknowledged = at
        self._pending = [each for each in self._pending if each.acknowledged == NEVER]
        for attendee in self._joined.values():
            for asking in attendee.askings:
                is_over = asking.left + OVERLAP_SECONDS < at and asking.published <= consumed
                if is_over and asking.withdrawn == NEVER and asking.acknowledged < NEVER:
                    attendee.subscriber.unsubscribe(asking.subscription)
                    asking.withdrawn = self.now

    @property
    def last_item_at(self) -> float:
        """When the last result came."""
        return self._items[-1][2] if self._items else 0.0

    @property
    def is_settled(self) -> bool:
        """Whether everything that was asked for is acknowledged."""
        return not self._pending

    def held(self) -> list[HeldSubscription]:
        """All that people asked for."""
        return [
            HeldSubscription(
                name, each.want.channel, each.values, each.asked, each.acknowledged, each.left, each.withdrawn
            )
            for name, attendee in self._joined.items()
            for each in attendee.askings
        ]

    def received(self, *, observed: bool = False) -> Iterator[Received]:
        """What came to people, or to the observer."""
        for name, item, at in self._items:
            if isinstance(item, Delivery) and (name == OBSERVER) is observed:
                yield received_result(name, item, at)

    @property
    def gaps(self) -> int:
        return sum(not isinstance(item, Delivery) for _, item, _ in self._items)

    def close(self) -> None:
        for attendee in self._joined.values():
            attendee.subscriber.close()
        self._observer.close()


def received_result(name: str, item: Delivery, at: float) -> Received:
    """A delivery as the oracle takes it."""
    found = item.attributes
    values = {key: int(found[key]) for key in ("event", "location", "area") if key in found}
    return Received(
        name, str(found["channel"]), values, int(found["batch"]), int(found["batch_row"]), int(found["report"]),
        item.payload.decode(), str(found.get("shelters", "")), at,
    )  # fmt: skip
