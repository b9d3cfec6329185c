"""The objects of a namespace by kind: lists, and the changes since a list, whatever becomes of the watches."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
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

    def changes(self, lists: Mapping[str, tuple[str, list[Object]]], name: str = "") -> Iterator[list[ObjectChange]]:
        """Changes since these lists were made, without end; an empty list now and then if nothing happens."""
        received: queue.Queue[ObjectChange | BaseException] = queue.Queue()
        for kind, (version, items) in lists.items():
            threading.Thread(target=self._watch_kind, args=(kind, name, version, items, received), daemon=True).start()
        while True:
            try:
                said = received.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                yield []
                continue
            if isinstance(said, BaseException):
                raise said
            yield [said]

    def _watch_kind(
        self,
        kind: str,
        name: str,
        version: str,
        items: list[Object],
        received: queue.Queue[ObjectChange | BaseException],
    ) -> None:
        """Pass on changes without end: a watch ends by itself now and then; if its version has expired, list again."""
        known = {str(item["metadata"]["name"]): item for item in items}
        try:
            while True:
                try:
                    for change in self._watch_events(kind, version, name):
                        version = change.object["metadata"]["resourceVersion"]
                        known[change.name] = change.object
                        if change.type == "DELETED":
                            del known[change.name]
                        received.put(change)
                except ProtocolError:  # the connection broke: continue from the last version
                    time.sleep(WATCH_RETRY_SECONDS)
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
                    time.sleep(WATCH_RETRY_SECONDS)
        except HTTPError as error:
            received.put(CommandError(FAILED, f"cannot watch {kind} in {self._title}: no answer: {error}"))
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            received.put(error)

    def _watch_events(self, kind: str, version: str, name: str) -> Iterator[ObjectChange]:
        stream = watch.Watch().stream(  # type: ignore[no-untyped-call]  # the client has no types there
            self._objects.list_namespaced_custom_object, GROUP, VERSION, self._namespace, KINDS[kind].plural,
            resource_version=version, timeout_seconds=WATCH_SECONDS, **_name_selector(name),
        )  # fmt: skip
        for event in stream:
            yield ObjectChange(0, event["type"], kind, event["object"]["metadata"]["name"], event["object"])


def _name_selector(name: str) -> dict[str, str]:
    return {"field_selector": f"metadata.name={name}"} if name else {}
