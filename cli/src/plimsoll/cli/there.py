"""A fleet at an API server: one namespace, by the kubeconfig as kubectl reads it."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ProtocolError

from plimsoll.cli.codes import CONFLICT, FAILED, CommandError
from plimsoll.core.spec import API_VERSION, KINDS, Document, InvalidResourcesError, Problem
from plimsoll.core.spec.kinds import GROUP, VERSION
from plimsoll.core.spec.parsing import flat, read
from plimsoll.local.store import Change, ConflictError, Event, MissingError, Object
from plimsoll.mediator import asking, plans
from plimsoll.mediator.sessions import KIND as SESSION

REQUEST_SECONDS = 30.0
WATCH_SECONDS = 300
POLL_SECONDS, PAUSE_SECONDS, IDLE_SECONDS = 2.0, 1.0, 10.0
TRIES = 5
NOT_FOUND, TAKEN, GONE, INVALID = 404, 409, 410, 422


class There:
    """One namespace."""

    def __init__(self, namespace: str, api: client.ApiClient) -> None:
        self.namespace = namespace
        self.title, self.poll_seconds = f"namespace {namespace}", POLL_SECONDS
        self._api: Any = api  # the client's own annotations say no more than `object`
        self._objects: Any = client.CustomObjectsApi(api)
        self._core: Any = client.CoreV1Api(api)

    @classmethod
    def of(cls, namespace: str | None, context: str | None) -> There:
        """By the kubeconfig's current context, or the one that is named; in a pod by the pod's account."""
        try:
            contexts, current = config.list_kube_config_contexts()  # type: ignore[no-untyped-call]
            api = config.new_client_from_config(context=context)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            return cls(*_in_pod(namespace, error))
        chosen = current if context is None else next(each for each in contexts if each["name"] == context)
        return cls(namespace or chosen["context"].get("namespace") or "default", api)

    # -- reading

    def objects(self, *kinds: str) -> list[Object]:
        return [item for kind in kinds or KINDS for item in self._list(kind)[1]]

    def _list(self, kind: str, name: str = "") -> tuple[str, list[Object]]:
        """The version of a list, and all objects of a kind, or the one of a name if it is there."""
        with _told(f"list {kind} in {self.title}"):
            answer = self._objects.list_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, _request_timeout=REQUEST_SECONDS, **_only(name)
            )
        items = [{"apiVersion": API_VERSION, "kind": kind, **item} for item in answer["items"]]
        return str(answer["metadata"]["resourceVersion"]), sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def get(self, kind: str, name: str) -> Object:
        with _told(f'{kind} "{name}" in {self.title}'):
            found: Object = self._objects.get_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, _request_timeout=REQUEST_SECONDS
            )
        return found

    def whole(self, item: Object) -> Object:
        """The plan's names are in objects that the session owns."""
        record = item.get("status", {}).get("record")
        if record is None:
            return item
        label = f"{plans.LABEL}={item['metadata']['name']}"
        with _told(f"the plan of {item['metadata']['name']} in {self.title}"):
            found = self._core.list_namespaced_config_map(
                self.namespace, label_selector=label, _request_timeout=REQUEST_SECONDS
            )
        try:
            return plans.joined(item, [self._api.sanitize_for_serialization(part) for part in found.items])
        except plans.IncompleteError as error:
            raise CommandError(FAILED, f"the plan of {item['metadata']['name']} cannot be read now: {error}") from error

    def shown(self, items: Iterable[Object]) -> list[Object]:
        return list(items)

    def watch(self, *kinds: str) -> tuple[list[Object], Iterator[list[Change]]]:
        lists = {kind: self._list(kind) for kind in kinds or KINDS}
        return [item for _, items in lists.values() for item in items], self._changes(lists)

    def states(self, kind: str, name: str) -> Iterator[Object]:
        version, items = self._list(kind, name)
        if not items:
            raise MissingError(f'there is no {kind} "{name}" in {self.title}')
        [item] = items
        yield item
        for changes in self._changes({kind: (version, items)}, name):
            for change in changes:
                if change.type == "DELETED":
                    raise MissingError(f'{kind} "{name}" in {self.title} was deleted')
                item = change.object
            yield item

    def _changes(self, lists: Mapping[str, tuple[str, list[Object]]], name: str = "") -> Iterator[list[Change]]:
        heard: queue.Queue[Change | BaseException] = queue.Queue()
        for kind, (version, items) in lists.items():
            threading.Thread(target=self._hear, args=(kind, name, version, items, heard), daemon=True).start()
        while True:
            try:
                said = heard.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                yield []
                continue
            if isinstance(said, BaseException):
                raise said
            yield [said]

    def _hear(
        self, kind: str, name: str, version: str, items: list[Object], heard: queue.Queue[Change | BaseException]
    ) -> None:
        """Hand on what changes, for ever: a watch ends by itself now and then, and starts over when it is too old."""
        known = {str(item["metadata"]["name"]): item for item in items}
        try:
            while True:
                try:
                    for change in self._watched(kind, version, name):
                        version = change.object["metadata"]["resourceVersion"]
                        known[change.name] = change.object
                        if change.type == "DELETED":
                            del known[change.name]
                        heard.put(change)
                except ProtocolError:  # the connection has broken: on from where it was
                    time.sleep(PAUSE_SECONDS)
                except ApiException as error:
                    if error.status != GONE:
                        raise CommandError(FAILED, f"cannot watch {kind} in {self.title}: {_message(error)}") from error
                    version, items = self._list(kind, name)
                    there = {str(item["metadata"]["name"]): item for item in items}
                    for gone in known.keys() - there.keys():  # no watch has told of it
                        heard.put(Change(0, "DELETED", kind, gone, known[gone]))
                    for each, item in there.items():
                        heard.put(Change(0, "MODIFIED", kind, each, item))
                    known = there
                    time.sleep(PAUSE_SECONDS)
        except HTTPError as error:
            heard.put(CommandError(FAILED, f"cannot watch {kind} in {self.title}: no answer: {error}"))
        except Exception as error:  # noqa: BLE001  raised again where it is waited for
            heard.put(error)

    def _watched(self, kind: str, version: str, name: str) -> Iterator[Change]:
        stream = watch.Watch().stream(  # type: ignore[no-untyped-call]
            self._objects.list_namespaced_custom_object, GROUP, VERSION, self.namespace, KINDS[kind].plural,
            resource_version=version, timeout_seconds=WATCH_SECONDS, **_only(name),
        )  # fmt: skip
        for event in stream:
            yield Change(0, event["type"], kind, event["object"]["metadata"]["name"], event["object"])

    def events(self, kind: str | None = None, name: str | None = None) -> list[Event]:
        wanted = {"involvedObject.kind": kind, "involvedObject.name": name}
        selector = ",".join(f"{field}={value}" for field, value in wanted.items() if value is not None)
        with _told(f"list events in {self.title}"):
            found = self._core.list_namespaced_event(
                self.namespace, field_selector=selector, _request_timeout=REQUEST_SECONDS
            )
        ours = [_event(item) for item in found.items if item.involved_object.kind in KINDS]
        return sorted(ours, key=lambda event: (event.last, event.id))

    def why_not_running(self) -> str:
        """An operator may be on its way: what is asked waits for it, as `kubectl apply` would."""
        if self._list("BrokerCluster")[1]:
            return ""
        return f"there is no BrokerCluster in {self.title}: name another with `--namespace`, or apply one"

    # -- asking

    def begin(self, name: str, spec: Mapping[str, Any]) -> None:
        with _told(f"create session {name} in {self.title}"):
            self._objects.create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[SESSION].plural, asking.session(name, dict(spec)),
                field_manager="plimsoll-cli", _request_timeout=REQUEST_SECONDS,
            )  # fmt: skip

    def stop(self, name: str) -> None:
        self._amend(SESSION, name, asking.stopped)

    def approve(self, name: str, plan_hash: str) -> str:
        found = plan_hash

        def change(item: Object) -> dict[str, Any]:
            """The plan that was read first is meant, also where it has to be read again."""
            nonlocal found
            spec, found = asking.approved(item, found)
            return spec

        self._amend(SESSION, name, change)
        return found

    def cordon(self, edge: str, *, cordoned: bool) -> bool:
        return self._amend("EdgeBroker", edge, lambda item: asking.cordoned(item, cordoned=cordoned))

    def _amend(self, kind: str, name: str, change: Any) -> bool:
        """Replace a specification as it was read; again if somebody else has written in between."""
        for attempt in range(1, TRIES + 1):
            item = self.get(kind, name)
            spec = change(item)
            if spec is None:
                return False
            try:
                with _told(f'change {kind} "{name}" in {self.title}'):
                    self._objects.replace_namespaced_custom_object(
                        GROUP, VERSION, self.namespace, KINDS[kind].plural, name, {**item, "spec": spec},
                        field_manager="plimsoll-cli", _request_timeout=REQUEST_SECONDS,
                    )  # fmt: skip
            except ConflictError:
                if attempt == TRIES:
                    raise
            else:
                return True
        raise AssertionError("the last try returns or raises")

    def apply(self, documents: Iterable[Document]) -> list[tuple[str, str]]:
        """Server-side; each object by itself, once all of them can be read."""
        given = list(flat(documents))
        resources, problems = read(given)
        if problems:
            raise InvalidResourcesError(problems)
        return [(self._apply(item.mapping()), item.subject) for item in resources]

    def _apply(self, item: Object) -> str:
        kind, name = item["kind"], item["metadata"]["name"]
        try:
            before = self.get(kind, name)["metadata"]
        except MissingError:
            before = {}
        with _told(f"apply {kind}/{name} in {self.title}"):
            self._objects.patch_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, item,
                field_manager="plimsoll-cli", force=True, _content_type="application/apply-patch+yaml",
                _request_timeout=REQUEST_SECONDS,
            )  # fmt: skip
        if not before:
            return "created"
        after = self.get(kind, name)["metadata"]
        return "unchanged" if before["resourceVersion"] == after["resourceVersion"] else "configured"

    def delete(self, kind: str, name: str) -> None:
        with _told(f'{kind} "{name}" in {self.title}'):
            self._objects.delete_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, _request_timeout=REQUEST_SECONDS
            )


def _only(name: str) -> dict[str, str]:
    return {"field_selector": f"metadata.name={name}"} if name else {}


def _in_pod(namespace: str | None, error: Exception) -> tuple[str, client.ApiClient]:
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        raise CommandError(FAILED, f"no way to an API server: {error}; set KUBECONFIG") from error
    with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:  # noqa: PTH123
        return namespace or file.read().strip(), client.ApiClient()


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Answers of the API server as errors that say what was wanted, what is wrong, and who can mend it."""
    try:
        yield
    except ApiException as error:
        if error.status == NOT_FOUND and '"' in what:
            raise MissingError(f"there is no {what}") from error
        if error.status == TAKEN:
            raise ConflictError(f"cannot {what}: {_message(error)}") from error
        if error.status == INVALID:
            raise InvalidResourcesError([Problem("<server>", None, what, (), _message(error), "")]) from error
        code = CONFLICT if error.status == 403 else FAILED
        raise CommandError(code, f"cannot {what}: {_message(error)}") from error
    except HTTPError as error:
        raise CommandError(FAILED, f"the API server does not answer ({what}): {error}") from error


def _message(error: ApiException) -> str:
    """What the server says, without its headers."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(error.body or "")["message"])
    return str(error.reason)


def _event(item: Any) -> Event:
    first, last = item.first_timestamp or item.event_time, item.last_timestamp or item.event_time
    count = item.count or (item.series.count if item.series is not None else 1)
    last = (item.series.last_observed_time if item.series is not None else None) or last
    return Event(
        int(item.metadata.resource_version), item.type or "Normal", item.reason or "", item.involved_object.kind,
        item.involved_object.name, item.message or "", first.isoformat(), last.isoformat(), count,
    )  # fmt: skip
