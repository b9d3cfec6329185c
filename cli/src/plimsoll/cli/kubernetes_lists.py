"""The objects of a namespace by kind: lists, and the changes since a list, whatever becomes of the watches."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from kubernetes import watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ProtocolError

from plimsoll.cli.exit_codes import FAILED, CommandError
from plimsoll.cli.kubernetes_errors import HTTP_GONE, api_errors, api_message
from plimsoll.core.spec import API_VERSION, KINDS
from plimsoll.core.spec.kinds import GROUP, VERSION
from plimsoll.local.storage.object_store import Object, ObjectChange

REQUEST_SECONDS = 30.0
WATCH_SECONDS = 300
WATCH_RETRY_SECONDS, IDLE_SECONDS = 1.0, 10.0
STOP_SECONDS, STOP_AGAIN_SECONDS = 5.0, 0.05


class _Watcher(threading.Thread):
    """The thread that watches one kind. `pass_on`: what it does until it is stopped."""

    def __init__(self, pass_on: Callable[[_Watcher], None]) -> None:
        super().__init__(daemon=True)
        self.watch = watch.Watch()  # type: ignore[no-untyped-call]  # the client has no types there
        self.stopping = threading.Event()
        self._pass_on = pass_on

    def run(self) -> None:
        self._pass_on(self)

    def stop(self) -> None:
        """End the thread. A request that just begins does not see that its watch is stopped: so stop it again."""
        self.stopping.set()
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_alive() and time.monotonic() < deadline:
            self.watch.stop()  # type: ignore[no-untyped-call]  # the client has no types there
            self.join(STOP_AGAIN_SECONDS)


class ObjectLists:
    """`title`: of the namespace, in errors."""

    def __init__(self, objects: Any, namespace: str, title: str) -> None:
        self._objects, self._namespace, self._title = objects, namespace, title

    def of(self, kind: str, name: str = "") -> tuple[str, list[Object]]:
        """The version of a list, and all objects of a kind, or just the one of this name if it exists."""
        with api_errors(f"list {kind} in {self._title}"):
            answer = self._objects.list_namespaced_custom_object(
                GROUP,
                VERSION,
                self._namespace,
                KINDS[kind].plural,
                _request_timeout=REQUEST_SECONDS,
                **_name_selector(name),
            )
        items = [{"apiVersion": API_VERSION, "kind": kind, **item} for item in answer["items"]]
        return str(answer["metadata"]["resourceVersion"]), sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def changes(
        self, lists: Mapping[str, tuple[str, list[Object]]], name: str = ""
    ) -> Generator[list[ObjectChange], None, None]:
        """Changes since these lists were made, until it is closed; an empty list now and then if nothing happens."""
        received: queue.Queue[ObjectChange | BaseException] = queue.Queue()
        watchers: list[_Watcher] = []
        try:
            for kind, (version, items) in lists.items():
                watchers.append(_Watcher(partial(self._watch_kind, kind, name, version, items, received)))
                watchers[-1].start()
            while True:
                try:
                    said = received.get(timeout=IDLE_SECONDS)
                except queue.Empty:
                    yield []
                    continue
                if isinstance(said, BaseException):
                    raise said
                yield [said]
        finally:
            for watcher in watchers:
                watcher.stop()

    def _watch_kind(
        self,
        kind: str,
        name: str,
        version: str,
        items: list[Object],
        received: queue.Queue[ObjectChange | BaseException],
        watcher: _Watcher,
    ) -> None:
        """Pass on changes until stopped. A watch ends by itself now and then; once its version has expired, list."""
        known = {str(item["metadata"]["name"]): item for item in items}
        try:
            while not watcher.stopping.is_set():
                try:
                    for change in self._watch_events(watcher, kind, version, name):
                        version = change.object["metadata"]["resourceVersion"]
                        known[change.name] = change.object
                        if change.type == "DELETED":
                            del known[change.name]
                        received.put(change)
                except ProtocolError:  # the connection broke: continue from the last version
                    watcher.stopping.wait(WATCH_RETRY_SECONDS)
                except ApiException as error:
                    if error.status != HTTP_GONE:
                        raise CommandError(
                            FAILED, f"cannot watch {kind} in {self._title}: {api_message(error)}"
                        ) from error
                    version, items = self.of(kind, name)
                    there = {str(item["metadata"]["name"]): item for item in items}
                    for gone in known.keys() - there.keys():  # deleted while no watch ran
                        received.put(ObjectChange(0, "DELETED", kind, gone, known[gone]))
                    for each, item in there.items():
                        received.put(ObjectChange(0, "MODIFIED", kind, each, item))
                    known = there
                    watcher.stopping.wait(WATCH_RETRY_SECONDS)
        except HTTPError as error:
            received.put(CommandError(FAILED, f"cannot watch {kind} in {self._title}: no answer: {error}"))
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            received.put(error)

    def _watch_events(self, watcher: _Watcher, kind: str, version: str, name: str) -> Iterator[ObjectChange]:
        stream = watcher.watch.stream(  # type: ignore[no-untyped-call]  # the client has no types there
            self._objects.list_namespaced_custom_object, GROUP, VERSION, self._namespace, KINDS[kind].plural,
            resource_version=version, timeout_seconds=WATCH_SECONDS, **_name_selector(name),
        )  # fmt: skip
        for event in stream:
            yield ObjectChange(0, event["type"], kind, event["object"]["metadata"]["name"], event["object"])


def _name_selector(name: str) -> dict[str, str]:
    return {"field_selector": f"metadata.name={name}"} if name else {}
