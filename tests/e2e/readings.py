"""Runs in pods: `feed` publishes readings and writes down what consumers say; `consume` is a consumer of their group.

A consumer says what it has finished before it takes the next item, so what it said is what it has processed. The feed
judges that by the laws of slices. `POST /rate` sets the publications per second, `POST /done` takes what was finished,
`GET /progress` and `GET /verdict` answer as JSON; a verdict ends the publishing.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from plimsoll import client
from plimsoll.core.verify.slice_laws import GivenItem, judge_slices

PORT = 9000
PUBLISHER = "feed"


def connection() -> client.Connection:
    return client.Connection.from_file("/etc/plimsoll/client", cluster="east")


class Feed:
    """`given`: what consumers have said, as it came."""

    def __init__(self) -> None:
        self.rate = 0.0
        self.sent = 0
        self.given: list[GivenItem] = []
        self.left: list[str] = []
        self._ended = threading.Event()
        self._publishing = threading.Thread(target=self._publish)
        self._publishing.start()

    def _publish(self) -> None:
        with connection() as connected, client.Publisher(connected, name=PUBLISHER) as publisher:
            due = time.monotonic()
            while not self._ended.is_set():
                if not self.rate:
                    time.sleep(0.05)  # until there is a rate
                    due = time.monotonic()
                    continue
                publisher.publish({"class": "READING", "sensor": self.sent % 997, "n": self.sent + 1})
                self.sent += 1
                due += 1 / self.rate
                time.sleep(max(0.0, due - time.monotonic()))
            publisher.flush(60)

    def take(self, said: dict[str, Any]) -> None:
        if "left" in said:
            self.left.append(said["left"])
        else:
            self.given.append(GivenItem(**said))

    def progress(self) -> dict[str, Any]:
        given = list(self.given)
        return {
            "sent": self.sent, "finished": len({each.item for each in given}), "left": sorted(self.left),
            "consumers": sorted({each.consumer for each in given}),
        }  # fmt: skip

    def verdict(self) -> dict[str, Any]:
        """Stop, wait until all is finished, and judge."""
        self._ended.set()
        self._publishing.join()
        deadline = time.monotonic() + 60
        while self.progress()["finished"] < self.sent and time.monotonic() < deadline:
            time.sleep(0.1)
        found = asdict(judge_slices(list(self.given), {PUBLISHER: range(1, self.sent + 1)}))
        return {**found, **self.progress()}


class Answers(BaseHTTPRequestHandler):
    """Of the feed that `server` has."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # the name that the server looks for
        said, feed = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self._feed
        if self.path == "/rate":
            feed.rate = float(said)
        else:
            feed.take(said)
        self._answer({})

    def do_GET(self) -> None:  # the name that the server looks for
        self._answer(self._feed.verdict() if self.path == "/verdict" else self._feed.progress())

    @property
    def _feed(self) -> Feed:
        return self.server.feed  # type: ignore[attr-defined]  # set by `main`

    def _answer(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the base
        """Print nothing: the output is for faults."""


def consume(name: str, work_seconds: float, host: str) -> None:
    """Process items until SIGTERM, then leave the group."""
    feed = http.client.HTTPConnection(host, PORT, timeout=30)

    def say(**said: Any) -> None:
        feed.request("POST", "/done", json.dumps(said))
        feed.getresponse().read()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with connection() as connected, connected.group("readings").subscribe(name=name, timeout=120) as member:
        signal.signal(signal.SIGTERM, lambda *_: member.stop())
        for item in member:
            at = time.time()
            time.sleep(work_seconds)  # stands for the work
            say(
                slice=item.slice, publisher=item.delivery.publisher, item=item.attributes["n"], consumer=name, at=at,
                until=time.time(), is_redelivered=item.is_redelivered,
            )  # fmt: skip
    say(left=name)


def main() -> None:
    if sys.argv[1] == "consume":
        environment = os.environ
        consume(environment["MEMBER"], float(environment["WORK_SECONDS"]), environment["FEED"])
        return
    server = ThreadingHTTPServer(("", PORT), Answers)
    server.feed = Feed()  # type: ignore[attr-defined]  # for its answers
    server.serve_forever()


if __name__ == "__main__":
    main()
