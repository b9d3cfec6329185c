"""A head takes another key under load: links are made anew, and nothing is lost, repeated or out of order."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.local.traffic import Traffic
from tests.operator.brokers import HEAD, Brokers

from plimsoll.operator.keys import make

ONCE_MORE = "authorised keys read again"


def until(what: str, holds: Callable[[], bool], seconds: float = 60.0) -> float:
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
        server.write_text(brokers.head_key)
        way = replace(brokers.entry, server=str(server))
        with Traffic(way, 9, per_second=100.0) as traffic:
            old, new = brokers.head_key, make()
            edges = sorted(traffic.edges.values())
            brokers.authorize(old, new.public)
            server.write_text(f"{old}\n{new.public}\n")
            until("all to have read the next key", read_by_all(brokers, 1))
            brokers.rekey_head(new)
            until("the head to take it", lambda: "this broker has another key" in brokers.said(HEAD))
            sent = traffic.sent
            took = until("deliveries to go on", lambda: min(traffic.last.values()) > sent)
            print(f"deliveries go on {took:.2f} s after the head has another key")
            brokers.authorize(new.public)
            server.write_text(new.public)
            until("all to have read that the old one is over", read_by_all(brokers, 2))
            later = traffic.sent
            until("deliveries to go on without the old one", lambda: min(traffic.last.values()) > later + 100)
            assert sorted(traffic.edges.values()) == edges, "nobody had to go elsewhere"
            verdict = traffic.verdict()
            assert verdict.ok, verdict
            assert (verdict.lost, verdict.duplicated, verdict.reordered, verdict.gaps) == (0, 0, 0, 0)
