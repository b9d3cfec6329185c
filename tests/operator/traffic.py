"""Applications in a pod: one publisher and many subscribers to everything, and a verdict in the pod's log.

Runs in the brokers' image, alone: `python traffic.py COUNT PER_SECOND`. It publishes until the file `/told/stop` is not
empty, waits until everything has arrived, and writes one line of JSON.
"""

import json
import sys
import threading
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from plimsoll import client

COUNT, PER_SECOND = int(sys.argv[1]), float(sys.argv[2])
HEADS = json.loads(Path("/identities/publisher/heads.json").read_text())
CLUSTER, HEAD = next(iter(HEADS.items()))
STOP = Path("/told/stop")


def connect(identity: str) -> client.Connection:
    keys = f"/identities/{identity}"
    security = client.Curve(secret=f"{keys}/secret.key", server=f"{keys}/{CLUSTER}-head.key")
    return client.Connection(HEAD["endpoint"], name=identity, security=security)


def main() -> None:
    lock = threading.Lock()
    seen: dict[str, list[int]] = {f"s{number:03}": [] for number in range(COUNT)}
    gaps: list[str] = []
    edges: dict[str, str] = {}

    def take(name: str, items: Iterable[client.Delivery | client.GapNotice]) -> None:
        with lock:
            for item in items:
                if isinstance(item, client.Delivery):
                    seen[name].append(int(item.attributes["n"]))
                else:
                    gaps.append(f"{name}: {item.reason}")

    def state(name: str, told: object) -> None:
        edge = getattr(told, "edge", "")
        if edge:
            edges[name] = edge

    reading, writing = connect("subscriber"), connect("publisher")
    subscribers = [
        client.Subscriber(
            reading,
            name=name,
            on_batch=lambda items, name=name: take(name, items),
            on_state=lambda told, name=name: state(name, told),
        )
        for name in seen
    ]
    for one in subscribers:
        one.subscribe("[class,=,'STOCK']", wait=False)
    for one in subscribers:
        one.wait_acknowledged()
    publisher = client.Publisher(writing, name="quotes")
    print(json.dumps({"begun": True}), flush=True)
    sent, due = 0, time.monotonic()
    while not STOP.read_text().strip():
        time.sleep(max(0.0, due - time.monotonic()))  # the pace of the load
        due += 1.0 / PER_SECOND
        sent += 1
        publisher.publish({"class": "STOCK", "n": sent})
    publisher.flush(60)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with lock:
            if all(each and each[-1] == sent for each in seen.values()):
                break
        time.sleep(0.1)
    with lock:
        wanted = list(range(1, sent + 1))
        verdict = {
            "sent": sent,
            "delivered": sum(len(each) for each in seen.values()),
            "lost": sum(len(set(wanted) - set(each)) for each in seen.values()),
            "repeated": sum(len(each) - len(set(each)) for each in seen.values()),
            "reordered": sum(sum(b < a for a, b in pairwise(each)) for each in seen.values()),
            "gaps": gaps[:10],
            "edges": sorted(set(edges.values())),
        }
        if verdict["lost"]:
            ends = {name: each[-1] if each else 0 for name, each in seen.items()}
            verdict["missed"] = {"client": reading.status(), "up to": ends, "at": edges}
    print(json.dumps(verdict), flush=True)
    reading.close()
    writing.close()


main()
