"""The API server, as the operator speaks with it: plain mappings in and out, and never a blocked loop.

Whatever may be done twice is asked again on request (`retry=True`), for as long as it takes, with pauses that grow and
differ: an API server that is away stops nothing but the asking. What follows from an answer is the caller's to decide.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config

from plimsoll.core.spec import API_VERSION
from plimsoll.operator.kinds import KINDS, kind_of, path, resource
from plimsoll.operator.retries import pauses

Object = dict[str, Any]
Objects = list[Object]
FIELD_MANAGER: Final = "plimsoll-operator"
PAGE: Final = 500
"""So many objects are listed with one request."""

REQUEST_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0
PASSING: Final = frozenset({429, 500, 502, 503, 504})
"""Answers that another try may change."""

EVENTS_KNOWN: Final = 1000
EVENT_SECONDS: Final = 1800.0
"""So long a repeat of an event is counted in it; the API server keeps events for an hour."""

NOTE_AT_MOST: Final = 1024

log = logging.getLogger(__name__)


class ApiError(RuntimeError):
    """The API server has refused, or has not answered: `code` is that of HTTP, 0 without an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MissingError(LookupError):
    """There is no such object."""


class ConflictError(RuntimeError):
    """It exists already, or has been changed in between: read it again."""


@dataclass
class _Repeated:
    """An event that has been written, and how often it has happened."""

    name: str
    count: int
    at: float


class Api:
    """One process's way to the API server. Use it in an `async with`.

    `requests` counts answers by verb, resource (`pods`, `brokerfleets/status`) and code; 0 is no answer.

    Raises, wherever it asks: `MissingError` for 404, `ConflictError` for 409, `ApiError` for other refusals, and for no
    answer unless `retry` is given.
    """

    def __init__(self, configuration: Configuration, instance: str = "") -> None:
        self._client = ApiClient(configuration)
        self.instance = instance or os.environ.get("POD_NAME", "") or f"{FIELD_MANAGER}-{os.getpid()}"
        self._random = random.SystemRandom()
        self._events: OrderedDict[tuple[str, ...], _Repeated] = OrderedDict()
        self._failing_since: float | None = None
        self.requests: Counter[tuple[str, str, int]] = Counter()

    @classmethod
    async def connect(cls, kubeconfig: str | None = None) -> Api:
        """By the kubeconfig given, or as a pod's service account, or by the kubeconfig that KUBECONFIG names."""
        configuration = Configuration()
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=kubeconfig, client_configuration=configuration
            )
        return cls(configuration)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections at once: the end of TLS, done in good order, may come after that of the loop."""
        pool: aiohttp.ClientSession | None = self._client.rest_client.pool_manager
        if pool is not None and pool.connector is not None:
            await pool.connector.close(abort_ssl=True)
        await self._client.close()  # type: ignore[no-untyped-call]

    @property
    def outage_seconds(self) -> float:
        """For how long requests have failed; 0 after one that was answered."""
        return 0.0 if self._failing_since is None else time.monotonic() - self._failing_since

    # -- reading

    async def list(self, kind: str, namespace: str, labels: str = "", *, retry: bool = False) -> Objects:
        """All objects of a kind, in a namespace or (if that is empty) everywhere; each with its kind and version."""
        while True:
            try:
                return await self._pages(kind, namespace, labels, retry)
            except ApiError as error:  # the list has changed too much since its first page: from the beginning
                if error.code != HTTPStatus.GONE:
                    raise

    async def _pages(self, kind: str, namespace: str, labels: str, retry: bool) -> Objects:
        found: Objects = []
        query = {"limit": str(PAGE), **({"labelSelector": labels} if labels else {})}
        while True:
            page = await self._ask("list", kind, namespace, query=query, retry=retry)
            named = {"apiVersion": KINDS[kind].api_version, "kind": kind}
            found.extend({**named, **item} for item in page.get("items") or ())
            after = page.get("metadata", {}).get("continue", "")
            if not after:
                return found
            query["continue"] = after

    async def get(self, kind: str, namespace: str, name: str, *, retry: bool = False) -> Object:
        return await self._ask("get", kind, namespace, name, retry=retry)

    async def serves(self, api_version: str) -> bool:
        """Whether the API server knows a group in a version."""
        code, answer, _ = await self._once("get", f"/apis/{api_version}", "apis", None)
        if code == HTTPStatus.NOT_FOUND:
            return False
        _judged(code, answer, f"get {api_version}")
        return True

    # -- writing

    async def create(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """With `retry`, a first try that has come through unseen makes a `ConflictError` of the second."""
        return await self._ask("create", *_placed(obj), body=obj, query=_MANAGED, retry=retry)

    async def apply(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """Make the object what is said of it: fields that were ours and are not named any more go."""
        kind, namespace = _placed(obj)
        query = {**_MANAGED, "force": "true"}
        return await self._ask("apply", kind, namespace, obj["metadata"]["name"], body=obj, query=query, retry=retry)

    async def patch(
        self, kind: str, namespace: str, name: str, patch: Mapping[str, Any], *, retry: bool = False
    ) -> Object:
        """A merge patch: `None` removes a field, a list replaces one."""
        return await self._ask("patch", kind, namespace, name, body=patch, query=_MANAGED, retry=retry)

    async def replace_status(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """Write the status of an object as it was read; `ConflictError` if anything of it has changed since."""
        kind, namespace = _placed(obj)
        name = obj["metadata"]["name"]
        return await self._ask("update", kind, namespace, name, "status", body=obj, query=_MANAGED, retry=retry)

    async def set_status(
        self,
        kind: str,
        namespace: str,
        name: str,
        change: Callable[[Object], Mapping[str, Any]],
        *,
        retry: bool = False,
    ) -> Object:
        """Replace the status by what `change` makes of the object, which may be asked more than once.

        Nothing is written if the status is that already. Returns the object as it is stored.
        """
        for pause in self.pauses():
            old = await self.get(kind, namespace, name, retry=retry)
            status = dict(change(old))
            if old.get("status", {}) == status:
                return old
            try:
                return await self.replace_status({**old, "status": status}, retry=retry)
            except ConflictError:
                await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    def pauses(self) -> Iterator[float]:
        """How long to wait before another try where somebody else was quicker: each time longer, and never the same."""
        return pauses(FIRST_PAUSE_SECONDS / 4, LONGEST_PAUSE_SECONDS, self._random)

    async def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        grace_seconds: int | None = None,
        retry: bool = False,
    ) -> None:
        """Delete an object, or ask for it where finalizers stand before that.

        `uid` and `version` are those that it must have: `ConflictError` otherwise. What it owns goes after it.
        """
        wanted = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if wanted:
            body["preconditions"] = wanted
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        await self._ask("delete", kind, namespace, name, body=body, retry=retry)

    # -- events for people

    async def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Say that something has happened to an object; a repeat is counted as a series, and makes no new event."""
        metadata = regarding["metadata"]
        key = (metadata.get("uid", metadata["name"]), type_, reason, message)
        known = self._events.get(key)
        if known is None or time.monotonic() - known.at > EVENT_SECONDS or not await self._repeat(known, metadata):
            name = f"{metadata['name'][:200]}.{time.time_ns():x}"
            self._events[key] = _Repeated(name, 1, time.monotonic())
            await self.create(self._event(regarding, name, type_, reason, message))
        self._events.move_to_end(key)
        while len(self._events) > EVENTS_KNOWN:
            self._events.popitem(last=False)

    async def _repeat(self, known: _Repeated, metadata: Mapping[str, Any]) -> bool:
        known.count += 1
        known.at = time.monotonic()
        series = {"series": {"count": known.count, "lastObservedTime": _now()}}
        try:
            await self.patch("Event", metadata.get("namespace", "default"), known.name, series)
        except MissingError:  # the API server has forgotten it
            return False
        return True

    def _event(self, regarding: Mapping[str, Any], name: str, type_: str, reason: str, message: str) -> Object:
        metadata = regarding["metadata"]
        namespace = metadata.get("namespace", "default")
        about = {
            "apiVersion": regarding.get("apiVersion", API_VERSION), "kind": regarding["kind"],
            "name": metadata["name"], "namespace": namespace,
        }  # fmt: skip
        versions = {key: metadata[key] for key in ("uid", "resourceVersion") if key in metadata}
        note = message if len(message) <= NOTE_AT_MOST else message[: NOTE_AT_MOST - 1] + "…"
        while len(note.encode()) > NOTE_AT_MOST:
            note = note[:-2] + "…"
        return {
            "apiVersion": KINDS["Event"].api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _now(),
            "reportingController": f"plimsoll.dev/{FIELD_MANAGER}",
            "reportingInstance": self.instance[:128],
            "action": reason,
            "reason": reason,
            "regarding": about | versions,
            "note": note,
            "type": type_,
        }

    # -- asking

    async def _ask(
        self,
        verb: str,
        kind: str,
        namespace: str,
        name: str = "",
        sub: str = "",
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        retry: bool,
    ) -> Object:
        url = path(kind, namespace, name, sub) + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        where = f"{kind} {namespace}/{name}".rstrip("/")
        tries = 0
        while True:
            code, answer, after = await self._once(verb, url, resource(kind, sub), body)
            if code in PASSING or code == 0:
                self._failing_since = self._failing_since or time.monotonic()
            else:
                self._failing_since = None
            if retry and (code in PASSING or code == 0):
                pause = max(self._jittered(min(FIRST_PAUSE_SECONDS * 2**tries, LONGEST_PAUSE_SECONDS)), after)
                tries = min(tries + 1, 10)
                log.warning("%s %s: %s; asked again after %.1f s", verb, where, _why(code, answer), pause)
                await asyncio.sleep(pause)
                continue
            return _judged(code, answer, f"{verb} {where}")

    async def _once(
        self, verb: str, url: str, counted: str, body: Mapping[str, Any] | None
    ) -> tuple[int, Object, float]:
        """The code, what was answered, and how long to wait before another try; code 0 without an answer."""
        method, content_type = _METHODS[verb]
        headers = dict(self._client.default_headers) | {"Accept": "application/json", "Content-Type": content_type}
        after = 0.0
        try:
            await self._client.update_params_for_auth(headers, [], ["BearerToken"], url, method, body)
            response = await self._client.rest_client.request(  # type: ignore[no-untyped-call]
                method, self._client.configuration.host + url, headers=headers, body=body, _request_timeout=_TIMEOUT
            )
            code, answer = _read(int(response.status), await response.read())
            after = _seconds(response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            code, answer = 0, {"message": f"{type(error).__name__}: {error}"}
        # An apply that makes an object needs the right to create it, one that changes it the right to patch.
        right = "create" if verb == "apply" and code == CREATED else "patch" if verb == "apply" else verb
        self.requests[right, counted, code] += 1
        return code, answer, after

    def _jittered(self, seconds: float) -> float:
        return self._random.uniform(seconds / 2, seconds)


_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_TIMEOUT: Final = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
CREATED: Final = 201
_METHODS: Final = {
    "list": ("GET", "application/json"),
    "get": ("GET", "application/json"),
    "create": ("POST", "application/json"),
    "update": ("PUT", "application/json"),
    "patch": ("PATCH", "application/merge-patch+json"),
    "apply": ("PATCH", "application/apply-patch+yaml"),
    "delete": ("DELETE", "application/json"),
}


def _placed(obj: Mapping[str, Any]) -> tuple[str, str]:
    return kind_of(obj["apiVersion"], obj["kind"]), obj["metadata"].get("namespace", "")


def _read(code: int, data: bytes) -> tuple[int, Object]:
    """The code and what was answered. What is not the API server's own is no success, whatever its code says."""
    try:
        found = msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError:
        found = data[:200].decode(errors="replace")
    if isinstance(found, dict):
        return code, found
    return 0 if code < HTTPStatus.MULTIPLE_CHOICES else code, {"message": str(found)[:200]}


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def _why(code: int, answer: Mapping[str, Any]) -> str:
    return f"{code or 'no answer'}: {answer.get('message', '')}"


def _judged(code: int, answer: Object, asked: str) -> Object:
    if HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES:
        return answer
    message = f"{asked}: {_why(code, answer)}"
    if code == HTTPStatus.NOT_FOUND:
        raise MissingError(message)
    if code == HTTPStatus.CONFLICT:
        raise ConflictError(message)
    raise ApiError(code, message)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
