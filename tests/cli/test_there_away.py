"""An API server that does not answer, breaks off, or does not know the kinds: it is said, and nobody waits for good."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes import client

from plimsoll.cli.codes import FAILED, CommandError
from plimsoll.cli.there import There

Answer = Callable[[BaseHTTPRequestHandler], None]


def there(port: int) -> There:
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = 0
    return There("ns", client.ApiClient(configuration))


@contextmanager
def served(answer: Answer) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def say(handler: BaseHTTPRequestHandler, code: int, said: dict[str, Any], *, breaks_off: bool = False) -> None:
    data = json.dumps(said).encode() + b"\n"
    handler.send_response(code)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Connection", "close")
    if breaks_off:  # after the first of several chunks
        handler.send_header("Transfer-Encoding", "chunked")
        data = b"%x\r\n%s\r\n" % (len(data), data)
    else:
        handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def edge(version: int) -> dict[str, Any]:
    return {"metadata": {"name": f"e-{version}", "resourceVersion": str(version)}}


def test_who_does_not_answer_is_said_to():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CommandError, match="the API server does not answer") as told:
        there(port).objects("EdgeBroker")
    assert told.value.code == FAILED


def test_kinds_that_nobody_has_defined_are_no_missing_object():
    with (
        served(lambda handler: say(handler, 404, {"message": "could not find the requested resource"})) as port,
        pytest.raises(CommandError, match="cannot list EdgeBroker in namespace ns: could not find"),
    ):
        there(port).objects("EdgeBroker")


def test_a_watch_that_breaks_off_goes_on_and_one_that_cannot_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.cli.there.PAUSE_SECONDS", 0.01)
    versions: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=" not in handler.path:
            if versions:
                return say(handler, 503, {"message": "not now"})
            return say(handler, 200, {"metadata": {"resourceVersion": "1"}, "items": []})
        version = int(handler.path.partition("resourceVersion=")[2].partition("&")[0])
        versions.append(str(version))
        if version < 3:
            told = {"type": "ADDED", "object": edge(version + 1)}
            return say(handler, 200, told, breaks_off=True)
        return say(handler, 410, {"message": "too old"})

    with served(answer) as port:
        _, changes = there(port).watch("EdgeBroker")
        assert [next(changes)[0].name for _ in range(2)] == ["e-2", "e-3"]
        with pytest.raises(CommandError, match="cannot list EdgeBroker in namespace ns: not now"):
            next(changes)
    assert versions == ["1", "2", "3"]
