"""An API server that does not answer, breaks off, or does not know the kinds: an error says so, no command hangs."""

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

from plimsoll.cli import kubernetes_backend as at_server
from plimsoll.cli.exit_codes import FAILED, OK, CommandError
from plimsoll.cli.kubernetes_backend import KubernetesBackend
from plimsoll.cli.session_wait import wait_for_session
from plimsoll.local.storage.object_store import ObjectConflictError, ObjectMissingError
from plimsoll.mediator.spec_edits import EditRefusedError

Answer = Callable[[BaseHTTPRequestHandler], None]


def there(port: int) -> KubernetesBackend:
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = 0
    return KubernetesBackend("ns", client.ApiClient(configuration))


def test_the_log_of_a_pod_comes_line_by_line():
    asked: list[str] = []

    def log(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        text = b"one\ntwo \xff\nthree"
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    with served(log) as port:
        assert list(there(port).log_lines("edge-0", 5, 90.4, follow=False)) == ["one", "two \ufffd", "three"]
    assert asked[0].startswith("/api/v1/namespaces/ns/pods/edge-0-0/log?")
    assert "tailLines=5" in asked[0]
    assert "sinceSeconds=90" in asked[0]


def test_a_line_without_end_comes_in_parts():
    most = at_server.LONGEST_LINE_BYTES
    assert [len(line) for line in at_server.whole_lines([b"x" * most, b"y", b"z\n", b""])] == [most + 1, 1]


def test_a_pod_and_a_secret_that_are_not_there():
    with served(lambda handler: say(handler, 404, {"message": "not found"})) as port:
        with pytest.raises(ObjectMissingError, match='there is no pod "edge-0-0" in namespace ns'):
            list(there(port).log_lines("edge-0", None, None, follow=False))
        with pytest.raises(ObjectMissingError, match='there is no Secret "keys" in namespace ns'):
            there(port).secret_data("keys")


def test_the_data_of_a_secret():
    with served(lambda handler: say(handler, 200, {"data": {"secret.key": "eA=="}})) as port:
        assert there(port).secret_data("keys") == {"secret.key": "eA=="}


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


def test_undefined_kinds_are_no_missing_object():
    with (
        served(lambda handler: say(handler, 404, {"message": "could not find the requested resource"})) as port,
        pytest.raises(CommandError, match="cannot list EdgeBroker in namespace ns: could not find"),
    ):
        there(port).objects("EdgeBroker")


def test_a_watch_that_breaks_off_goes_on_and_one_that_cannot_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.cli.kubernetes_lists.WATCH_RETRY_SECONDS", 0.01)
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


def session(version: int, **status: Any) -> dict[str, Any]:
    metadata = {"name": "one", "resourceVersion": str(version), "generation": 1}
    return {"metadata": metadata, "spec": {}, "status": status}


def ended(version: int) -> dict[str, Any]:
    condition = {"type": "Succeeded", "status": "True", "reason": "Moved", "message": ""}
    return session(version, phase="Succeeded", endedAt="now", conditions=[condition], reason="Moved", message="")


def test_who_waits_for_a_session_watches_that_one_and_asks_for_nothing_else(capsys: pytest.CaptureFixture[str]):
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        if "watch=" not in handler.path:
            return say(handler, 200, {"metadata": {"resourceVersion": "1"}, "items": [session(1)]})
        told = [{"type": "MODIFIED", "object": item} for item in (session(2, phase="Draining"), ended(3))]
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"".join(json.dumps(each).encode() + b"\n" for each in told))
        return None

    with served(answer) as port:
        assert wait_for_session(there(port), "one") == OK
    lines = [line.split()[2] for line in capsys.readouterr().out.splitlines()]
    assert (lines[0], lines[-1]) == ("Requested", "Succeeded")
    assert all("/loadbalancingsessions?" in path and "fieldSelector=metadata.name%3Done" in path for path in asked)
    assert sum("watch=" not in path for path in asked) == 1


def test_what_went_while_a_watch_was_too_old_is_told_of():
    lists: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=" in handler.path:
            return say(handler, 410, {"message": "too old"})
        lists.append(handler.path)
        items = [edge(1), edge(2)] if len(lists) == 1 else [edge(2)]
        return say(handler, 200, {"metadata": {"resourceVersion": "1"}, "items": items})

    with served(answer) as port:
        before, changes = there(port).watch("EdgeBroker")
        assert [item["metadata"]["name"] for item in before] == ["e-1", "e-2"]
        [first], [second] = next(changes), next(changes)
        assert (first.type, first.name, second.type, second.name) == ("DELETED", "e-1", "MODIFIED", "e-2")


def test_the_end_of_an_object_is_the_end_of_its_states():
    items = [[edge(1)], []]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=" in handler.path:
            return say(handler, 410, {"message": "too old"})
        return say(handler, 200, {"metadata": {"resourceVersion": "1"}, "items": items.pop(0) if items else []})

    with served(answer) as port:
        states = there(port).watch_object("EdgeBroker", "e-1")
        assert next(states)["metadata"]["name"] == "e-1"
        with pytest.raises(ObjectMissingError, match='EdgeBroker "e-1" in namespace ns was deleted'):
            next(states)
        with pytest.raises(ObjectMissingError, match='there is no EdgeBroker "e-1"'):
            next(there(port).watch_object("EdgeBroker", "e-1"))


def test_while_nothing_happens_it_is_said_so_now_and_then(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.cli.kubernetes_lists.IDLE_SECONDS", 0.01)
    quiet = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=" in handler.path:
            quiet.wait(20)
        say(handler, 200, {"metadata": {"resourceVersion": "1"}, "items": [edge(1)]})

    with served(answer) as port:
        states = there(port).watch_object("EdgeBroker", "e-1")
        assert [next(states)["metadata"]["name"] for _ in range(3)] == ["e-1"] * 3
        quiet.set()


class Changing(KubernetesBackend):
    """A session whose plan is another one when it is read again, since another writer was quicker the first time."""

    def __init__(self, *hashes: str) -> None:
        self.title, self.namespace, self._hashes = "namespace ns", "ns", list(hashes)
        self._objects = self
        self.approved: list[str] = []

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return session(1, phase="Planned", planHash=self._hashes[0])

    def replace_namespaced_custom_object(self, *given: Any, **_: Any) -> None:
        if len(self._hashes) > 1:
            self._hashes.pop(0)
            raise ObjectConflictError("another writer was quicker")
        self.approved.append(given[-1]["spec"]["approval"]["planHash"])


def test_the_plan_that_was_read_first_is_approved_or_nothing():
    same = Changing("aaaaaaaa", "aaaaaaaa")
    assert same.approve_session("one", "") == "aaaaaaaa"
    assert same.approved == ["aaaaaaaa"]
    other = Changing("aaaaaaaa", "bbbbbbbb")
    with pytest.raises(EditRefusedError, match="the plan of session one is bbbbbbbb, not aaaaaaaa: look at it again"):
        other.approve_session("one", "")
    assert other.approved == []
