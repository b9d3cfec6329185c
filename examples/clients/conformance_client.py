"""The client library as `plimsoll conformance` drives it: orders on standard input, reports on standard output.

`plimsoll conformance -- python examples/clients/conformance_client.py`. The convention is in docs/conformance.md.
With a connection file as its argument it does the same in a fleet: `python conformance_client.py app.json`.
"""

import json
import os
import queue
import sys
import threading
from functools import partial
from typing import Any

from plimsoll.client import Connection, GapNotice, GroupSubscriber, Publisher, Subscriber
from plimsoll.core.client import Acknowledged, Answered

publishers: dict[str, Publisher] = {}
subscribers: dict[str, Subscriber] = {}
texts: dict[tuple[str, int], str] = {}
writing = threading.Lock()
acknowledged: queue.SimpleQueue[None] = queue.SimpleQueue()


def report(event: str, **fields: Any) -> None:
    with writing:
        print(json.dumps({"event": event, **fields}), flush=True)


def on_batch(name: str, items: list[Any]) -> None:
    for item in items:
        if isinstance(item, GapNotice):
            report("gap", subscriber=name, reason=item.reason)
        else:
            identity = {"publisher": item.publisher, "incarnation": item.incarnation, "seq": item.seq}
            report("delivery", subscriber=name, **identity)


def on_state(name: str, event: object) -> None:
    if isinstance(event, Acknowledged):
        for each in event.ids:
            report("counts", subscriber=name, subscription=texts[name, each])


def on_answer(name: str, answers: list[Answered]) -> None:
    for answer in answers:
        for number in range(answer.first, answer.last + 1):
            report("answer", publisher=name, number=number, answer=answer.answer)


def subscribe(connection: Connection, order: dict[str, Any]) -> None:
    name, text = order["subscriber"], order["subscription"]
    subscriber = subscribers.get(name)
    if subscriber is None:
        token = tuple(order["token"]) if order.get("token") else None
        marks = [tuple(mark) for mark in order.get("watermarks", [])]
        subscriber = subscribers[name] = Subscriber(
            connection, name=name, token=token, watermarks=marks,  # type: ignore[arg-type]  # JSON has lists for tuples
            on_batch=partial(on_batch, name), on_state=partial(on_state, name),
        )  # fmt: skip
    texts[name, subscriber.subscribe(text, wait=False, latency_seconds=order.get("latency")).id] = text


def publish(connection: Connection, order: dict[str, Any]) -> None:
    name = order["publisher"]
    if name not in publishers:
        publishers[name] = Publisher(connection, name=name, on_answer=partial(on_answer, name))
    publishers[name].publish(order["attributes"])


def take_items(member: GroupSubscriber, group: str) -> None:
    """Take an item when the last one is acknowledged; a slice that goes takes with it what was not taken."""
    for item in member:
        if not item.is_gap:
            of = item.delivery
            identity = {"publisher": of.publisher, "incarnation": of.incarnation, "seq": of.seq}
            report("item", group=group, slice=item.slice, redelivered=item.is_redelivered, **identity)
        acknowledged.get()
        item.ack()


def join(connection: Connection, order: dict[str, Any]) -> None:
    group = order["group"]
    member = connection.group(group).subscribe(name=order["member"], manual_ack=True, wait=False)
    threading.Thread(target=take_items, args=(member, group), daemon=True).start()


def connect() -> Connection:
    """To the scripted head that `plimsoll conformance` names, or as a connection file says."""
    if len(sys.argv) > 1:
        return Connection.from_file(sys.argv[1])
    return Connection(os.environ["PLIMSOLL_HEAD"], security="plain")


def main() -> None:
    with connect() as connection:
        for line in sys.stdin:
            order = json.loads(line)
            match order["do"]:
                case "subscribe":
                    subscribe(connection, order)
                case "publish":
                    publish(connection, order)
                case "join":
                    join(connection, order)
                case "acknowledge":
                    acknowledged.put(None)
                case "close":
                    subscribers.pop(order["subscriber"]).close(withdraw=order["withdraw"])
                case "pause":
                    subscribers[order["subscriber"]].pause()
                case "continue":
                    subscribers[order["subscriber"]].resume()
                case "stop":
                    return


if __name__ == "__main__":
    main()
