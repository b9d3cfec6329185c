"""A fleet at an API server: one namespace, by the kubeconfig as kubectl reads it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes import client, config

from plimsoll.cli import kubernetes_survey, operator_watch
from plimsoll.cli.exit_codes import FAILED, CommandError
from plimsoll.cli.kubernetes_datasets import refused_moves
from plimsoll.cli.kubernetes_errors import api_errors
from plimsoll.cli.kubernetes_lists import REQUEST_SECONDS, ObjectLists
from plimsoll.core.spec import KINDS, InvalidResourcesError, SourceDocument, head_name
from plimsoll.core.spec.kinds import GROUP, VERSION
from plimsoll.core.spec.parser import flattened, parse_each
from plimsoll.local.storage.object_store import (
    Object,
    ObjectChange,
    ObjectConflictError,
    ObjectEvent,
    ObjectMissingError,
)
from plimsoll.mediator import plan_storage, spec_edits
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.world.traffic_survey import TrafficSurvey

FLEET = "BrokerFleet"
REFRESH_SECONDS = 2.0
REPLACE_ATTEMPTS = 5
LONGEST_LINE_BYTES = 1 << 20


class KubernetesBackend:
    """One namespace."""

    def __init__(self, namespace: str, api: client.ApiClient) -> None:
        self.namespace = namespace
        self.title, self.poll_seconds = f"namespace {namespace}", REFRESH_SECONDS
        self._api: Any = api  # the client's own annotations say no more than `object`
        self._objects: Any = client.CustomObjectsApi(api)
        self._lists = ObjectLists(self._objects, namespace, self.title)
        self._core: Any = client.CoreV1Api(api)
        self._written = operator_watch.WrittenStatus(namespace, api)

    @classmethod
    def from_kubeconfig(cls, namespace: str | None, context: str | None) -> KubernetesBackend:
        """Connect with the kubeconfig's current context, or the named one; in a pod with the pod's service account."""
        try:
            contexts, current = config.list_kube_config_contexts()  # type: ignore[no-untyped-call]  # the client has no types there
            api = config.new_client_from_config(context=context)  # type: ignore[no-untyped-call]  # the client has no types there
        except config.ConfigException as error:
            return cls(*_in_cluster_config(namespace, error))
        chosen = current if context is None else next(each for each in contexts if each["name"] == context)
        return cls(namespace or chosen["context"].get("namespace") or "default", api)

    # -- reading

    def survey(self, items: Sequence[Object], cluster: str, over_seconds: float) -> TrafficSurvey:
        return kubernetes_survey.survey(self._api, self.namespace, cluster, over_seconds)

    def objects(self, *kinds: str) -> list[Object]:
        return [item for kind in kinds or KINDS for item in self._lists.of(kind)[1]]

    def get(self, kind: str, name: str) -> Object:
        with api_errors(f'{kind} "{name}" in {self.title}'):
            found: Object = self._objects.get_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, _request_timeout=REQUEST_SECONDS
            )
        return found

    def with_plan(self, item: Object) -> Object:
        """The plan's names are in objects that the session owns."""
        record = item.get("status", {}).get("record")
        if record is None:
            return item
        label = f"{plan_storage.PLAN_LABEL}={item['metadata']['name']}"
        with api_errors(f"the plan of {item['metadata']['name']} in {self.title}"):
            found = self._core.list_namespaced_config_map(
                self.namespace, label_selector=label, _request_timeout=REQUEST_SECONDS
            )
        try:
            return plan_storage.with_full_record(
                item, [self._api.sanitize_for_serialization(part) for part in found.items]
            )
        except plan_storage.IncompletePlanError as error:
            raise CommandError(FAILED, f"the plan of {item['metadata']['name']} cannot be read now: {error}") from error

    def staleness_note(self) -> str:
        return self._written.note()

    def displayed(self, items: Iterable[Object]) -> list[Object]:
        return self._written.displayed(items)

    def watch(self, *kinds: str) -> tuple[list[Object], Generator[list[ObjectChange], None, None]]:
        lists = {kind: self._lists.of(kind) for kind in kinds or KINDS}
        return [item for _, items in lists.values() for item in items], self._lists.changes(lists)

    def watch_object(self, kind: str, name: str) -> Iterator[Object]:
        version, items = self._lists.of(kind, name)
        if not items:
            raise ObjectMissingError(f'there is no {kind} "{name}" in {self.title}')
        [item] = items
        yield item
        for changes in self._lists.changes({kind: (version, items)}, name):
            for change in changes:
                if change.type == "DELETED":
                    raise ObjectMissingError(f'{kind} "{name}" in {self.title} was deleted')
                item = change.object
            yield item

    def events(self, kind: str | None = None, name: str | None = None) -> list[ObjectEvent]:
        wanted = {"involvedObject.kind": kind, "involvedObject.name": name}
        selector = ",".join(f"{field}={value}" for field, value in wanted.items() if value is not None)
        with api_errors(f"list events in {self.title}"):
            found = self._core.list_namespaced_event(
                self.namespace, field_selector=selector, _request_timeout=REQUEST_SECONDS
            )
        ours = [_event_of(item) for item in found.items if item.involved_object.kind in KINDS]
        return sorted(ours, key=lambda event: (event.last, event.id))

    def log_lines(self, broker: str, tail: int | None, since_seconds: float | None, *, follow: bool) -> Iterator[str]:
        """The log of the broker's pod."""
        wanted = {"tail_lines": tail, "since_seconds": None if since_seconds is None else max(1, round(since_seconds))}
        given = {name: value for name, value in wanted.items() if value is not None}
        with api_errors(f'pod "{broker}-0" in {self.title}'):
            answer = self._core.read_namespaced_pod_log(
                f"{broker}-0", self.namespace, follow=follow, _preload_content=False,
                _request_timeout=None if follow else REQUEST_SECONDS, **given,
            )  # fmt: skip
            try:
                yield from whole_lines(answer.stream(amt=None))
            finally:
                answer.release_conn()

    def secret_data(self, name: str) -> Mapping[str, str]:
        """The data of a Secret, in Base64; raises `ObjectMissingError`."""
        with api_errors(f'Secret "{name}" in {self.title}'):
            return self._core.read_namespaced_secret(name, self.namespace, _request_timeout=REQUEST_SECONDS).data or {}

    def not_running_reason(self) -> str:
        """Always empty: a request waits for an operator to start, as with `kubectl apply`."""
        if self._lists.of("BrokerCluster")[1]:
            return ""
        return f"there is no BrokerCluster in {self.title}: name another with `--namespace`, or apply one"

    def unserved_reason(self) -> str:
        fleets = self._lists.of("BrokerFleet")[1]
        return operator_watch.unwatched_reason(self.namespace, self._api, fleets)

    # -- asking

    def create_session(self, name: str, spec: Mapping[str, Any], *, cordon: str = "") -> bool:
        changed = bool(cordon) and self.set_cordoned(cordon, cordoned=True)
        with api_errors(f"create session {name} in {self.title}"):
            self._objects.create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[SESSION].plural, spec_edits.session_object(name, dict(spec)),
                field_manager="plimsoll-cli", _request_timeout=REQUEST_SECONDS,
            )  # fmt: skip
        return changed

    def stop_session(self, name: str) -> None:
        self._replace_spec(SESSION, name, spec_edits.stopped_spec)

    def approve_session(self, name: str, plan_hash: str) -> str:
        found = plan_hash

        def change(item: Object) -> dict[str, Any]:
            """Approve the plan that was read first, even if a retry reads the object again."""
            nonlocal found
            spec, found = spec_edits.approved_spec(item, found)
            return spec

        self._replace_spec(SESSION, name, change)
        return found

    def set_cordoned(self, broker: str, *, cordoned: bool) -> bool:
        clusters = {
            head_name(name): name for name in (item["metadata"]["name"] for item in self.objects("BrokerCluster"))
        }
        if (cluster := clusters.get(broker)) is not None:
            change = partial(spec_edits.cordoned_head_spec, cordoned=cordoned)
            return self._replace_spec("BrokerCluster", cluster, change)
        return self._replace_spec("EdgeBroker", broker, partial(spec_edits.cordoned_spec, cordoned=cordoned))

    def _replace_spec(self, kind: str, name: str, change: Any) -> bool:
        """Replace a specification as it was read; read and try again after a conflict."""
        for attempt in range(1, REPLACE_ATTEMPTS + 1):
            item = self.get(kind, name)
            spec = change(item)
            if spec is None:
                return False
            try:
                with api_errors(f'change {kind} "{name}" in {self.title}'):
                    self._objects.replace_namespaced_custom_object(
                        GROUP, VERSION, self.namespace, KINDS[kind].plural, name, {**item, "spec": spec},
                        field_manager="plimsoll-cli", _request_timeout=REQUEST_SECONDS,
                    )  # fmt: skip
            except ObjectConflictError:
                if attempt == REPLACE_ATTEMPTS:
                    raise
            else:
                return True
        raise AssertionError("the last try returns or raises")

    def apply(self, documents: Iterable[SourceDocument]) -> list[tuple[str, str]]:
        """Server-side; each object by itself, once all of them can be read."""
        given = list(flattened(documents))
        resources, problems = parse_each(given)
        if not problems:
            problems = [
                each for item in resources if item.kind == FLEET for each in refused_moves(self, item.mapping())
            ]
        if problems:
            raise InvalidResourcesError(problems)
        return [(self._apply(item.mapping()), item.subject) for item in resources]

    def patched(self, item: Object, **options: str) -> Object:
        """The object as it is with these fields."""
        kind, name = item["kind"], item["metadata"]["name"]
        with api_errors(f"apply {kind}/{name} in {self.title}"):
            found: Object = self._objects.patch_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, item,
                field_manager="plimsoll-cli", force=True, _content_type="application/apply-patch+yaml",
                _request_timeout=REQUEST_SECONDS, **options,
            )  # fmt: skip
        return found

    def _apply(self, item: Object) -> str:
        kind, name = item["kind"], item["metadata"]["name"]
        try:
            before = self.get(kind, name)["metadata"]
        except ObjectMissingError:  # it is created
            before = {}
        self.patched(item)
        if not before:
            return "created"
        after = self.get(kind, name)["metadata"]
        return "unchanged" if before["resourceVersion"] == after["resourceVersion"] else "configured"

    def delete(self, kind: str, name: str) -> None:
        with api_errors(f'{kind} "{name}" in {self.title}'):
            self._objects.delete_namespaced_custom_object(
                GROUP, VERSION, self.namespace, KINDS[kind].plural, name, _request_timeout=REQUEST_SECONDS
            )


def whole_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text that comes in pieces; a line of more than a megabyte comes in parts."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        if len(rest) > LONGEST_LINE_BYTES:
            yield rest.decode("utf-8", "replace")
            rest = b""
    if rest:
        yield rest.decode("utf-8", "replace")


def _in_cluster_config(namespace: str | None, error: Exception) -> tuple[str, client.ApiClient]:
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]  # the client has no types there
    except config.ConfigException:
        raise CommandError(FAILED, f"no API server is configured: {error}; set KUBECONFIG") from error
    own = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text(encoding="utf-8").strip()
    return namespace or own, client.ApiClient()


def _event_of(item: Any) -> ObjectEvent:
    first, last = item.first_timestamp or item.event_time, item.last_timestamp or item.event_time
    count = item.count or (item.series.count if item.series is not None else 1)
    last = (item.series.last_observed_time if item.series is not None else None) or last
    return ObjectEvent(
        int(item.metadata.resource_version), item.type or "Normal", item.reason or "", item.involved_object.kind,
        item.involved_object.name, item.message or "", first.isoformat(), last.isoformat(), count,
    )  # fmt: skip
