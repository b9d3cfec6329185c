"""A head takes another key under load: links are made again, and nothing is lost, repeated or out of order."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.local.traffic import Traffic
from tests.operator.brokers import HEAD, Brokers

from plimsoll import client
from plimsoll.operator.security.keys import make_key_pair

TWO = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: quotes}
spec: {timeScalePercent: 40}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec: {head: {profile: small}, edges: [{name: a, profile: small}], neighbors: [{name: west}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec: {head: {profile: small}, edges: [{name: b, profile: small}]}
"""
ONCE_MORE = "reloaded authorized keys"


def until(what: str, holds: Callable[[], bool], seconds: float = 300.0) -> float:
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < seconds, what
        time.sleep(0.02)
    return time.monotonic() - begun


def read_by_all(brokers: Brokers, times: int) -> Callable[[], bool]:
    return lambda: all(brokers.said(name).count(ONCE_MORE) >= times for name in brokers.configs)


def test_a_heads_key_is_replaced_while_it_serves(tmp_path: Path):
    server = tmp_path / "east.key"
    with Brokers(tmp_path) as brokers:
        server.write_text(brokers.public_key(HEAD))
        way = replace(brokers.entry, server=str(server))
        with Traffic(way, 9, per_second=100.0) as traffic:
            old, new = brokers.public_key(HEAD), make_key_pair()
            edges = sorted(traffic.edges.values())
            brokers.authorize(old, new.public)
            server.write_text(f"{old}\n{new.public}\n")
            until("all to have read the next key", read_by_all(brokers, 1))
            brokers.rekey(HEAD, new)
            until("the head to take it", lambda: "reloaded this broker's key" in brokers.said(HEAD))
            sent = traffic.sent
            took = until("deliveries to go on", lambda: min(traffic.last.values()) > sent)
            print(f"deliveries go on {took:.2f} s after the head has another key")
            brokers.authorize(new.public)
            server.write_text(new.public)
            until("all to have read that the old one is over", read_by_all(brokers, 2))
            later = traffic.sent
            until("deliveries to go on without the old one", lambda: min(traffic.last.values()) > later + 100)
            assert sorted(traffic.edges.values()) == edges, "no subscriber had to move"
            verdict = traffic.verdict()
            assert verdict.ok, verdict
            assert (verdict.lost, verdict.duplicated, verdict.reordered, verdict.gaps) == (0, 0, 0, 0)


@pytest.mark.sweep
@pytest.mark.parametrize("head", ["east-head", "west-head"])
def test_a_link_between_clusters_goes_on_whichever_end_takes_another_key(tmp_path: Path, head: str):
    """East dials west. A publisher is in the west, its subscriber in the east; the file of each has both keys."""
    seen: list[int] = []
    gaps: list[object] = []
    stop = threading.Event()

    def take(items: Sequence[object]) -> None:
        for item in items:
            seen.append(int(item.attributes["n"])) if isinstance(item, client.Delivery) else gaps.append(item)

    with Brokers(tmp_path, TWO) as brokers:

        def connect(to: str) -> client.Connection:
            way, file = brokers.way_to(to), tmp_path / f"{to}.public"
            file.write_text(way.server)
            assert way.secret_key_file is not None
            return client.Connection(way.endpoint, security=client.Curve(secret=way.secret_key_file, server=file))

        east, west = connect("east-head"), connect("west-head")
        subscriber = client.Subscriber(east, name="s", on_batch=take)
        subscriber.subscribe("[class,=,'STOCK']", wait=False)
        subscriber.wait_acknowledged()
        publisher = client.Publisher(west, name="quotes")
        sent: list[int] = []

        def publish() -> None:
            while not stop.wait(0.01):
                sent.append(len(sent) + 1)
                publisher.publish({"class": "STOCK", "n": sent[-1]})

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            until("deliveries", lambda: len(seen) > 50)
            old, new = brokers.public_key(head), make_key_pair()
            brokers.authorize(old, new.public, head=head)
            (tmp_path / f"{head}.public").write_text(f"{old}\n{new.public}\n")
            until("all to have read the next key", read_by_all(brokers, 1))
            brokers.rekey(head, new)
            until("the head to take it", lambda: "reloaded this broker's key" in brokers.said(head))
            later = len(sent)
            print(
                f"deliveries go on {until('deliveries to go on', lambda: bool(seen) and seen[-1] > later):.2f} s after"
            )
            brokers.authorize(new.public, head=head)
            until("all to have read that the old one is over", read_by_all(brokers, 2))
            later = len(sent)
            until("deliveries to go on without the old one", lambda: seen[-1] > later + 100)
        finally:
            stop.set()
            thread.join(300)
        publisher.flush(60)
        until("the last one to come", lambda: bool(seen) and seen[-1] == sent[-1])
        for connection in (east, west):
            connection.close()
    assert (seen, gaps) == (sent, [])
