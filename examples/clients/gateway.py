"""A thousand subscribers on one connection, without a thread for each: `python gateway.py app.json`."""

import sys
import threading

from plimsoll.client import Connection, Publisher, Subscriber

delivered = threading.Semaphore(0)
with Connection.from_file(sys.argv[1]) as connection:
    subscribers = [Subscriber(connection, on_batch=lambda items: delivered.release(len(items))) for _ in range(1000)]
    for i, subscriber in enumerate(subscribers):
        subscriber.subscribe(f"[n,=,{i}]", wait=False)
    for subscriber in subscribers:
        subscriber.wait_acknowledged()
    with Publisher(connection) as publisher:
        for i in range(1000):
            publisher.publish({"n": i})
    print(sum(delivered.acquire(timeout=10) for _ in range(1000)), "delivered")
