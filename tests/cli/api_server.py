"""A server that answers like an API server, as a test says, and a backend that asks it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes import client

from plimsoll.cli.kubernetes_backend import KubernetesBackend

Answer = Callable[[BaseHTTPRequestHandler], None]


def there(port: int) -> KubernetesBackend:
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = 0
    return KubernetesBackend("ns", client.ApiClient(configuration))


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
