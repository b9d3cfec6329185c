"""What the command line reads and writes at an API server: logs, Secrets, sessions, and plans that are approved."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from tests.cli.api_server import say, served, there

from plimsoll.cli import kubernetes_backend as at_server
from plimsoll.cli.exit_codes import OK
from plimsoll.cli.kubernetes_backend import KubernetesBackend
from plimsoll.cli.session_wait import wait_for_session
from plimsoll.local.storage.object_store import ObjectConflictError, ObjectMissingError
from plimsoll.mediator.spec_edits import EditRefusedError


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
    leases = [path for path in asked if "/leases" in path]
    assert len(leases) == 1, "whether an operator writes at all"
    asked.remove(leases[0])
    assert all("/loadbalancingsessions?" in path and "fieldSelector=metadata.name%3Done" in path for path in asked)
    assert sum("watch=" not in path for path in asked) == 1


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
