"""Runs in a pod: subscribes to a channel, publishes reports once `go` exists, and after `stop` judges the results.

Writes files below /tmp: `progress.json` once a second, `verdict.json` after `stop`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from plimsoll import client
from plimsoll.client.connection_file import read_connection_file

FILES = Path("/tmp")
KEYS = Path("/etc/plimsoll/client")
KINDS = ("fire", "flood")
INTERVAL_SECONDS = 0.05
LAST_SECONDS = 240.0
"""How long the last result may take: a driver that was killed starts Spark again."""


class ChannelReader:
    """Asks the channel for reports of the first kind; reports of all kinds are published, numbered from 1."""

    def __init__(self, channel: str) -> None:
        settings = read_connection_file(KEYS)
        self._connection = client.Connection(settings.heads, security=settings.security)
        self._publisher = client.Publisher(self._connection)
        self._subscriber = client.Subscriber(self._connection)
        self._subscriber.subscribe(f"[channel,=,'{channel}'],[kind,=,'{KINDS[0]}']", timeout=120)
        self.sent = self.gaps = 0
        self.seen = Counter[int]()
        self.identities = Counter[tuple[Any, ...]]()

    def publish(self) -> None:
        self.sent += 1
        self._publisher.publish({"class": "REPORT", "kind": KINDS[self.sent % len(KINDS)], "number": self.sent})

    def receive(self, seconds: float) -> None:
        try:
            items = self._subscriber.receive_many(1000, seconds)
        except client.errors.WaitTimeoutError:
            return  # nothing has come meanwhile
        for item in items:
            if isinstance(item, client.Delivery):
                self.seen[int(item.attributes["number"])] += 1
                self.identities[item.attributes["batch"], item.attributes["batch_row"]] += 1
            else:
                self.gaps += 1

    @property
    def due(self) -> set[int]:
        return {number for number in range(1, self.sent + 1) if KINDS[number % len(KINDS)] == KINDS[0]}

    def verdict(self) -> dict[str, Any]:
        self._publisher.flush(60)
        until = time.monotonic() + LAST_SECONDS
        while self.due - self.seen.keys() and time.monotonic() < until:
            self.receive(0.5)
        self.receive(2.0)  # what comes twice comes late
        return {
            "sent": self.sent, "due": len(self.due), "missing": sorted(self.due - self.seen.keys())[:20],
            "wrong": sorted(self.seen.keys() - self.due)[:20], "gaps": self.gaps,
            "repeated": sum(count - 1 for counts in (self.seen, self.identities) for count in counts.values()),
        }  # fmt: skip


def write(name: str, content: dict[str, Any]) -> None:
    """In one step, so that a reader finds all of it or the previous contents."""
    partial = FILES / f"{name}.new"
    partial.write_text(json.dumps(content))
    partial.replace(FILES / name)


def main() -> None:
    reader = ChannelReader(os.environ["CHANNEL"])
    until, told_at = time.monotonic() + 1800.0, 0.0
    while not (FILES / "stop").exists() and time.monotonic() < until:
        if (FILES / "go").exists():
            reader.publish()
        reader.receive(INTERVAL_SECONDS)
        if time.monotonic() >= told_at:
            told_at = time.monotonic() + 1.0
            write("progress.json", {"sent": reader.sent, "results": sum(reader.seen.values()), "gaps": reader.gaps})
    found = reader.verdict()
    write("verdict.json", found)
    print(json.dumps(found), flush=True)
    while time.monotonic() < until:
        time.sleep(1.0)  # until its pod is deleted


if __name__ == "__main__":
    main()
