"""What groups that another client has made cost a publisher and its subscriber, who have nothing to do with them.

The maker asks for many groups of one slice, with the longest names and a filter that all publications match, and goes.
Publications are then paced, so that the delay is that of an idle fleet, and the head's processor time counts.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

from bench.groups.fleet import BenchFleet

from plimsoll import client
from plimsoll.client import Connection, Delivery, Publisher, Subscriber

GROUPS: Final = 250
PACE_SECONDS: Final = 0.002
LARGEST: Final[dict[str, str | int]] = {"class": "other", "n": 1, "text": "x" * 16_363}
"""Its names and strings are as long as they may be together."""


def make_groups(head: str, count: int) -> int:
    """Ask for this many groups, and go; returns how many there are."""
    made = 0
    with Connection(head, security="plain", name="bench-maker") as connection:
        for number in range(count):
            group = connection.group(
                f"{'a' * 59}{number:04}", slices=1, filter="[class,exists]", function="Modulo", by="n"
            )
            try:
                group.subscribe(name="maker", timeout=60.0)
            except client.errors.FailedError:
                break  # it has as many as it may
            made += 1
    return made


def beside_groups(count: int, publications: int) -> dict[str, Any]:
    """Microseconds of the head by publication, and the median delay in milliseconds, beside this many groups."""
    fleet = BenchFleet()
    try:
        with Connection(fleet.endpoint, security="plain", name="bench-others") as connection:
            subscriber = Subscriber(connection, name="s")
            subscriber.subscribe("[class,=,'other']")
            made = make_groups(fleet.endpoint, count)
            publisher = Publisher(connection, name="p")
            publisher.publish({"class": "other", "n": 0})
            publisher.flush(10.0)
            subscriber.receive(10.0)
            time.sleep(1.5)  # by then its client is told of all groups
            found = _paced(fleet, publisher, subscriber, publications)
            return {"asked": count, "made": made, **found, **_largest(publisher, subscriber)}
    finally:
        fleet.end()


def _paced(fleet: BenchFleet, publisher: Publisher, subscriber: Subscriber, publications: int) -> dict[str, Any]:
    delays, foreign, before = [], 0, fleet.cpu()["head"]
    for number in range(publications):
        began = time.perf_counter()
        publisher.publish({"class": "other", "n": number})
        item = subscriber.receive(10.0)
        delays.append(time.perf_counter() - began)
        foreign += not isinstance(item, Delivery) or item.attributes != {"class": "other", "n": number}
        time.sleep(PACE_SECONDS)
    used = fleet.cpu()["head"] - before
    return {
        "head_us": used / publications * 1e6,
        "delay_ms": statistics.median(delays) * 1e3,
        "with_foreign_attributes": foreign,
    }


def _largest(publisher: Publisher, subscriber: Subscriber) -> dict[str, Any]:
    """Whether the largest publication is taken."""
    try:
        publisher.publish(LARGEST)
        publisher.flush(10.0)
    except client.errors.PublicationError as error:
        return {"largest": str(error)}
    item = subscriber.receive(10.0)
    return {"largest": "delivered" if isinstance(item, Delivery) and item.attributes == LARGEST else "changed"}
