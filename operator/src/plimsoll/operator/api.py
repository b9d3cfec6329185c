"""The client of the API server: plain mappings in and out, on asyncio.

With `retry=True` a request is repeated until it is answered, with exponential backoff and jitter; only requests that
may safely be sent twice take it. Callers decide what follows from a refusal.
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

from plimsoll.core.printable import printable_lines
from plimsoll.core.spec import API_VERSION
from plimsoll.operator.backoff import backoff_pauses
from plimsoll.operator.kinds import API_KINDS, api_path, kind_of, rule_resource

Object = dict[str, Any]
Objects = list[Object]
FIELD_MANAGER: Final = "plimsoll-operator"
PAGE_LIMIT: Final = 500
"""Objects per page of a list."""

REQUEST_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0
TRANSIENT_CODES: Final = frozenset({429, 500, 502, 503, 504})
"""Answers that another try may change."""

EVENT_CACHE_SIZE: Final = 1000
EVENT_SECONDS: Final = 1800.0
"""A repeat of an event within this time raises its count; the API server keeps events for an hour."""

NOTE_AT_MOST: Final = 1024

log = logging.getLogger(__name__)


class ApiError(RuntimeError):
    """The API server has refused, or has not answered: `code` is the HTTP status, 0 without an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ApiNotFoundError(LookupError):
    """There is no such object."""


class ApiConflictError(RuntimeError):
    """It exists already, or has been changed in between: read it again."""


@dataclass
class _EventSeries:
    """An event that has been written, and how often it has happened."""

    name: str
    count: int
    at: float


class Api:
    """A connection to the API server. Use it in an `async with`.

    `requests` counts answers by verb, resource (`pods`, `brokerfleets/status`) and code; 0 is no answer.

    All requests raise `ApiNotFoundError` for 404, `ApiConflictError` for 409, and `ApiError` for other refusals and,
    without `retry`, for no answer.
    """

    def __init__(self, configuration: Configuration, instance: str = "") -> None:
        self._client = ApiClient(configuration)
        self.instance = instance or os.environ.get("POD_NAME", "") or f"{FIELD_MANAGER}-{os.getpid()}"
        self._random = random.SystemRandom()
        self._events: OrderedDict[tuple[str, ...], _EventSeries] = OrderedDict()
        self._failing_since: float | None = None
        self.requests: Counter[tuple[str, str, int]] = Counter()

    @classmethod
    async def connect(cls, kubeconfig: str | None = None) -> Api:
        """Connect by the given kubeconfig, or else as the pod's service account or by KUBECONFIG."""
        configuration = Configuration()
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the client has no types there
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]  # the client has no types there
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
        """Close all connections at once: an orderly end of TLS might come after the end of the event loop."""
        pool: aiohttp.ClientSession | None = self._client.rest_client.pool_manager
        if pool is not None and pool.connector is not None:
            await pool.connector.close(abort_ssl=True)
        await self._client.close()  # type: ignore[no-untyped-call]  # the client has no types there

    @property
    def outage_seconds(self) -> float:
        """For how long no request was answered, in seconds; 0 after an answer."""
        return 0.0 if self._failing_since is None else time.monotonic() - self._failing_since

    # -- reading

    async def list(self, kind: str, namespace: str, labels: str = "", *, retry: bool = False) -> Objects:
        """All objects of a kind, in a namespace or (if that is empty) everywhere; each with its kind and version."""
        while True:
            try:
                return await self._pages(kind, namespace, labels, retry)
            except ApiError as error:  # the continue token has expired: list again from the first page
                if error.code != HTTPStatus.GONE:
                    raise

    async def _pages(self, kind: str, namespace: str, labels: str, retry: bool) -> Objects:
        found: Objects = []
        query = {"limit": str(PAGE_LIMIT), **({"labelSelector": labels} if labels else {})}
        while True:
            page = await self._ask("list", kind, namespace, query=query, retry=retry)
            named = {"apiVersion": API_KINDS[kind].api_version, "kind": kind}
            found.extend({**named, **item} for item in page.get("items") or ())
            after = page.get("metadata", {}).get("continue", "")
            if not after:
                return found
            query["continue"] = after

    async def page(self, kind: str, namespace: str, fields: str, at_most: int) -> Objects:
        """The first objects of a kind with these fields, at most as many as are asked for; not repeated on errors."""
        query = {"limit": str(at_most), "fieldSelector": fields}
        found = await self._ask("list", kind, namespace, query=query, retry=False)
        return list(found.get("items") or ())

    async def get(self, kind: str, namespace: str, name: str, *, retry: bool = False) -> Object:
        return await self._ask("get", kind, namespace, name, retry=retry)

    async def serves(self, api_version: str) -> bool:
        """Whether the API server serves an API group in this version."""
        code, answer, _ = await self._once("get", f"/apis/{api_version}", "apis", None)
        if code == HTTPStatus.NOT_FOUND:
            return False
        _checked_answer(code, answer, f"get {api_version}")
        return True

    async def serves_kind(self, kind: str) -> bool:
        """Whether the API server serves a kind; every user may ask, whatever rights are missing."""
        known = API_KINDS[kind]
        root = "apis" if "/" in known.api_version else "api"
        code, answer, _ = await self._once("get", f"/{root}/{known.api_version}", "apis", None)
        return code < HTTPStatus.BAD_REQUEST and any(
            each.get("name") == known.plural for each in answer.get("resources") or ()
        )

    # -- writing

    async def create(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """Create an object. With `retry`, a lost answer to a first try makes the second an `ApiConflictError`."""
        return await self._ask("create", *_kind_and_namespace(obj), body=obj, query=_MANAGED, retry=retry)

    async def apply(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """Apply an object server-side: fields that the operator owned and no longer names are removed."""
        kind, namespace = _kind_and_namespace(obj)
        query = {**_MANAGED, "force": "true"}
        return await self._ask("apply", kind, namespace, obj["metadata"]["name"], body=obj, query=query, retry=retry)

    async def patch(
        self, kind: str, namespace: str, name: str, patch: Mapping[str, Any], *, retry: bool = False
    ) -> Object:
        """Merge-patch an object: `None` removes a field, a list replaces one."""
        return await self._ask("patch", kind, namespace, name, body=patch, query=_MANAGED, retry=retry)

    async def replace_status(self, obj: Mapping[str, Any], *, retry: bool = False) -> Object:
        """Replace the status of an object as it was read; `ApiConflictError` if it has changed since."""
        kind, namespace = _kind_and_namespace(obj)
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
        """Replace the status by what `change` returns for the object; it is called again after each conflict.

        Nothing is written if the status is the same already. Returns the object as stored.
        """
        for pause in self.pauses():
            old = await self.get(kind, namespace, name, retry=retry)
            status = dict(change(old))
            if old.get("status", {}) == status:
                return old
            try:
                return await self.replace_status({**old, "status": status}, retry=retry)
            except ApiConflictError:  # it is read again, and `change` asked again
                await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    def pauses(self) -> Iterator[float]:
        """Endless pauses in seconds after conflicts with another writer: they grow, with jitter."""
        return backoff_pauses(FIRST_PAUSE_SECONDS / 4, LONGEST_PAUSE_SECONDS, self._random)

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
        """Delete an object, or mark it as deleted if it has finalizers; what it owns is garbage-collected.

        If given, `uid` and `version` must be those of the stored object: `ApiConflictError` otherwise.
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
        """Write an Event about an object; a repeat raises the count of the Event instead of adding another."""
        metadata, message = regarding["metadata"], printable_lines(message)
        key = (metadata.get("uid", metadata["name"]), type_, reason, message)
        known = self._events.get(key)
        if known is None or time.monotonic() - known.at > EVENT_SECONDS or not await self._repeat(known, metadata):
            name = f"{metadata['name'][:200]}.{time.time_ns():x}"
            self._events[key] = _EventSeries(name, 1, time.monotonic())
            await self.create(self._event(regarding, name, type_, reason, message))
        self._events.move_to_end(key)
        while len(self._events) > EVENT_CACHE_SIZE:
            self._events.popitem(last=False)

    async def _repeat(self, known: _EventSeries, metadata: Mapping[str, Any]) -> bool:
        known.count += 1
        known.at = time.monotonic()
        series = {"series": {"count": known.count, "lastObservedTime": _now()}}
        try:
            await self.patch("Event", metadata.get("namespace", "default"), known.name, series)
        except ApiNotFoundError:  # Events expire after an hour
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
            "apiVersion": API_KINDS["Event"].api_version,
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

    # -- requests

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
        url = api_path(kind, namespace, name, sub) + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        where = f"{kind} {namespace}/{name}".rstrip("/")
        tries = 0
        while True:
            code, answer, after = await self._once(verb, url, rule_resource(kind, sub), body)
            if code in TRANSIENT_CODES or code == 0:
                self._failing_since = self._failing_since or time.monotonic()
            else:
                self._failing_since = None
            if retry and (code in TRANSIENT_CODES or code == 0):
                pause = max(self._jittered(min(FIRST_PAUSE_SECONDS * 2**tries, LONGEST_PAUSE_SECONDS)), after)
                tries = min(tries + 1, 10)
                log.warning("%s %s failed, next try in %.1f s: %s", verb, where, pause, _error_text(code, answer))
                await asyncio.sleep(pause)
                continue
            return _checked_answer(code, answer, f"{verb} {where}")

    async def _once(
        self, verb: str, url: str, counted: str, body: Mapping[str, Any] | None
    ) -> tuple[int, Object, float]:
        """The code, the answer, and the pause that the server requests; code 0 without an answer."""
        method, content_type = _METHODS[verb]
        headers = dict(self._client.default_headers) | {"Accept": "application/json", "Content-Type": content_type}
        after = 0.0
        try:
            await self._client.update_params_for_auth(headers, [], ["BearerToken"], url, method, body)
            response = await self._client.rest_client.request(  # type: ignore[no-untyped-call]  # the client has no types there
                method, self._client.configuration.host + url, headers=headers, body=body, _request_timeout=_TIMEOUT
            )
            code, answer = _parse_answer(int(response.status), await response.read())
            after = _seconds(response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            code, answer = 0, {"message": f"{type(error).__name__}: {error}"}
        # An apply that creates an object needs the right `create`, one that changes it the right `patch`.
        right = "create" if verb == "apply" and code == HTTP_CREATED else "patch" if verb == "apply" else verb
        self.requests[right, counted, code] += 1
        return code, answer, after

    def _jittered(self, seconds: float) -> float:
        return self._random.uniform(seconds / 2, seconds)


_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_TIMEOUT: Final = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
HTTP_CREATED: Final = 201
_METHODS: Final = {
    "list": ("GET", "application/json"),
    "get": ("GET", "application/json"),
    "create": ("POST", "application/json"),
    "update": ("PUT", "application/json"),
    "patch": ("PATCH", "application/merge-patch+json"),
    "apply": ("PATCH", "application/apply-patch+yaml"),
    "delete": ("DELETE", "application/json"),
}


def _kind_and_namespace(obj: Mapping[str, Any]) -> tuple[str, str]:
    return kind_of(obj["apiVersion"], obj["kind"]), obj["metadata"].get("namespace", "")


def _parse_answer(code: int, data: bytes) -> tuple[int, Object]:
    """The code and the answer. Text that is not JSON comes from a proxy, so even a 2xx is no success."""
    try:
        found = msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError:  # the answer says so, in its own words
        found = data[:200].decode(errors="replace")
    if isinstance(found, dict):
        return code, found
    return 0 if code < HTTPStatus.MULTIPLE_CHOICES else code, {"message": str(found)[:200]}


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def _error_text(code: int, answer: Mapping[str, Any]) -> str:
    return f"{code or 'no answer'}: {answer.get('message', '')}"


def _checked_answer(code: int, answer: Object, asked: str) -> Object:
    if HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES:
        return answer
    message = f"{asked}: {_error_text(code, answer)}"
    if code == HTTPStatus.NOT_FOUND:
        raise ApiNotFoundError(message)
    if code == HTTPStatus.CONFLICT:
        raise ApiConflictError(message)
    raise ApiError(code, message)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
