"""Lists and watches that break off, are too old, or tell nothing: no change is missed, and no command hangs."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

import pytest
from tests.cli.api_server import edge, say, served, there

from plimsoll.cli.exit_codes import CommandError
from plimsoll.local.storage.object_store import ObjectMissingError


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
