"""The operator process: watches, a task for each namespace with a fleet, the HTTP endpoint and the canary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import kopf

from plimsoll.mediator.fleet_resources import FLEET_KINDS
from plimsoll.operator import names, watch
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.cache import Cache
from plimsoll.operator.health import OperatorHealth, http_server, measure_lag
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.metrics_api.group_figures import GroupFigure
from plimsoll.operator.metrics_api.routes import https_server, metric_routes
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.reconcile.fleet import FleetReconciler
from plimsoll.operator.refusals import RefusedWatches
from plimsoll.operator.relist import WatchRelist
from plimsoll.operator.settings import OperatorSettings
from plimsoll.operator.tasks import cancel_tasks

log = logging.getLogger(__name__)

RESTART_SECONDS = 5.0
CANARY_LABEL = "plimsoll.dev/canary"


class OperatorProcess:
    """One operator process."""

    def __init__(self, api: Api, settings: OperatorSettings) -> None:
        self.api, self.settings = api, settings
        self.metrics = OperatorMetrics()
        self.health = OperatorHealth(settings.silent_seconds)
        self._watches = watch.Watches(
            self._on_watch_event, self.metrics, nodes=settings.read_nodes, spark=settings.spark
        )
        self._refused = RefusedWatches(self._wake_all)
        self.relist = WatchRelist(api, self._watches, settings.namespaces, self._on_missed_deletion, self._refused)
        self.cache = Cache(self._watches.objects)
        self.health.pending_write, self.health.stalled_watches = self._oldest_pending, self.relist.stalled
        self.health.unserved = self._refused.reason
        self.health.unserved_namespaces = lambda: self._refused.namespaces
        self.metrics.unserved.set_function(lambda: len(self._refused.namespaces))
        self._fleets: dict[str, FleetReconciler] = {}
        self._relevant_fields: dict[str, object] = {}
        self._announced: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.metrics.requests_of(api.requests)
        self.metrics.queue_depth.set_function(lambda: sum(each.is_woken for each in self._fleets.values()))
        self.metrics.sessions_of(self._mediated_sessions)

    async def run(self) -> None:
        """Serve all fleets until a signal ends the process.

        Raises:
            Exception: a fault of the watches, or of a task beside them.

        """
        await self._await_kinds()
        stop, ready = asyncio.Event(), asyncio.Event()
        async with AsyncExitStack() as servers:
            await self._serve(servers)
            beside = [
                asyncio.create_task(each)
                for each in (measure_lag(self.metrics), self._canary(), self._readiness(ready), self.relist.run())
            ]
            for task in beside:
                task.add_done_callback(self._on_end_beside)
            watching_task = asyncio.create_task(self._watch(stop, ready), name="watches")
            try:
                await asyncio.wait([watching_task, self._failed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stop.set()
                await cancel_tasks(*(task for task in (*beside, *self._tasks.values()) if not task.done()))
                await asyncio.wait([watching_task])
            if self._failed.done():
                self._failed.result()
            watching_task.result()

    async def _serve(self, servers: AsyncExitStack) -> None:
        """Serve probes and metrics, and figures for autoscalers there and, with a certificate, as the API server asks.

        Raises:
            OSError: a port is in use, or the certificate cannot be read.

        """
        settings, routes = self.settings, metric_routes(self._group_figures)
        port = await servers.enter_async_context(
            http_server(self.health, self.metrics, settings.http_port, more_routes=routes)
        )
        log.info("serving probes and metrics on port %d", port)
        if settings.metrics_tls:
            server = https_server(self._group_figures, Path(settings.metrics_tls), settings.https_port)
            log.info("serving external.metrics.k8s.io on port %d", await servers.enter_async_context(server))

    def _group_figures(self, namespace: str) -> Iterator[GroupFigure]:
        fleet = self._fleets.get(namespace)
        return iter(()) if fleet is None else fleet.group_figures()

    def _mediated_sessions(self) -> Iterator[Object]:
        """The stored sessions, without those that another operator mediates: it counts them."""
        for item in self._watches.all_of_kind("LoadBalancingSession"):
            fleet = self._fleets.get(item["metadata"]["namespace"])
            if fleet is None or not fleet.is_waiting:
                yield item

    async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        with self._refused.outlived():
            await kopf.operator(
                registry=self._watches.registry,
                settings=watch.kopf_settings(),
                clusterwide=not self.settings.namespaces,
                namespaces=self.settings.namespaces,
                standalone=True,
                # Without an identity kopf looks up the user's name, which fails in a pod, where the user has none.
                identity=self.settings.pod_name or "plimsoll",  # type: ignore[arg-type]  # its NewType is not exported
                stop_flag=stop,
                ready_flag=ready,
            )

    def _wake_all(self) -> None:
        for each in self._fleets.values():
            each.wake()

    def _oldest_pending(self, now: float) -> tuple[str, float]:
        """The oldest write that no watch has delivered, without those where watches are refused: a restart is none."""
        return self.cache.oldest_pending(now, self._refused.namespaces)

    async def _await_kinds(self) -> None:
        """Wait until the CRDs are installed: kopf looks for them only once, at its start."""
        namespace = next(iter(self.settings.namespaces), "")
        for kind in (*watch.CUSTOM_KINDS, *watch.WRITTEN_KINDS):
            while True:
                try:
                    await self.api.list(kind, namespace, retry=True)
                    break
                except ApiError as error:
                    if error.code != HTTPStatus.FORBIDDEN:
                        raise
                    if await self.api.serves_kind(kind):
                        break  # this namespace is not served until the right is there; the others are
                    log.warning("CRD of %s is not installed: %s; next try in %g s", kind, error, RESTART_SECONDS)
                    await asyncio.sleep(RESTART_SECONDS)
                except ApiNotFoundError:
                    log.warning(
                        "CRD of %s is not installed: install the chart's CRDs; next try in %g s", kind, RESTART_SECONDS
                    )
                    await asyncio.sleep(RESTART_SECONDS)

    # -- watch events

    def _on_watch_event(self, type_: str, kind: str, item: Object) -> None:
        namespace = item["metadata"].get("namespace", "")
        self._detect_restarted_watch(type_, kind, item)
        self.health.ready = True
        if kind == watch.NODE_KIND:
            self._wake_all()
            return
        if CANARY_LABEL in (item["metadata"].get("labels") or {}):
            self.health.canary_seen = monotonic()
            return
        fleet = self._fleets.get(namespace)
        if fleet is None:
            if kind not in watch.CUSTOM_KINDS or type_ == "DELETED":
                return
            fleet = self._start_fleet(namespace)
        if type_ == "DELETED":
            self.cache.drop_life(item)
        if kind == "LoadBalancingSession":
            fleet.session_changed(type_ or "ADDED", item)
        if self._is_relevant(type_, kind, item):
            fleet.wake()

    def _detect_restarted_watch(self, type_: str, kind: str, item: Object) -> None:
        """Have a kind listed if its watch repeats an object: it was restarted, and may have missed deletions."""
        uid = item["metadata"]["uid"]
        if type_ == "DELETED":
            self._announced.discard(uid)
            return
        if not type_ and uid in self._announced:
            self.relist.request(kind)
        self._announced.add(uid)

    def _on_missed_deletion(self, kind: str, item: Object) -> None:
        """Handle a deletion that a list has shown and the watch has missed."""
        self._on_watch_event("DELETED", kind, item)

    def _is_relevant(self, type_: str, kind: str, item: Object) -> bool:
        """Whether more has changed than the status, which the operator itself writes."""
        uid = item["metadata"]["uid"]
        if kind in watch.WRITTEN_KINDS:
            return False
        if kind not in watch.CUSTOM_KINDS:
            return True
        if type_ == "DELETED":
            self._relevant_fields.pop(uid, None)
            return True
        seen = watch.relevant_fields(item)
        if self._relevant_fields.get(uid) == seen:
            return False
        self._relevant_fields[uid] = seen
        return True

    def _start_fleet(self, namespace: str) -> FleetReconciler:
        fleet = FleetReconciler(
            namespace, self.api, self.cache, self.settings, self.metrics, self.health, self._watches.nodes
        )
        self._fleets[namespace] = fleet
        self._tasks[namespace] = asyncio.create_task(self._run_fleet(fleet), name=f"fleet of {namespace}")
        self.metrics.fleets.set(len(self._fleets))
        return fleet

    async def _run_fleet(self, fleet: FleetReconciler) -> None:
        """Run a fleet's task until the fleet is gone, and restart it after an unexpected error."""
        while True:
            try:
                await fleet.run()
                if not any(item["kind"] in FLEET_KINDS for item in self._watches.objects(fleet.namespace)):
                    break
                fleet.is_gone = False  # created again while the task was ending
            except Exception:  # a bug that one fleet triggers must not stop the others
                log.exception("%s: fleet task failed, restarting in %g s", fleet.namespace, RESTART_SECONDS)
                self.metrics.reconciles.labels("fleet", "fault").inc()
                await asyncio.sleep(RESTART_SECONDS)
        del self._fleets[fleet.namespace], self._tasks[fleet.namespace]
        self.metrics.fleets.set(len(self._fleets))

    def _on_end_beside(self, task: asyncio.Task[None]) -> None:
        """End the process with the fault of what checks its watches and its health: it would go on unchecked."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    # -- health of the watches

    async def _readiness(self, ready: asyncio.Event) -> None:
        """Become ready without any watch event, for a cluster without any object to watch."""
        await ready.wait()
        await asyncio.sleep(RESTART_SECONDS)
        self.health.ready = True

    async def _canary(self) -> None:
        """Write a ConfigMap again and again, which the watches must deliver."""
        namespace, _, name = self.settings.canary.partition("/")
        if not name:
            return
        if self.settings.namespaces and namespace not in self.settings.namespaces:
            namespace = self.settings.namespaces[0]  # the operator neither watches nor may write its own namespace
        labels = {"app.kubernetes.io/managed-by": names.MANAGER, CANARY_LABEL: "true"}
        owners: list[Object] = []
        while True:
            owners = owners or await self._canary_owners(namespace)
            item = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners},
                "data": {"at": datetime.now(UTC).isoformat()},
            }
            try:
                await self.api.apply(item)
                self.health.canary_written = monotonic()
            except (ApiError, ApiConflictError, ApiNotFoundError) as error:
                log.warning("canary ConfigMap %s/%s was not written: %s", namespace, name, error)
            await asyncio.sleep(self.settings.canary_seconds)

    async def _canary_owners(self, namespace: str) -> list[Object]:
        """The operator's own Deployment, with which the canary goes; none if that is in another namespace."""
        own, _, name = self.settings.release.partition("/")
        if not name or own != namespace:
            return []
        try:
            return [{**owner(await self.api.get("Deployment", own, name)), "controller": False}]
        except (ApiError, ApiNotFoundError) as error:
            log.warning("the canary has no owner, as Deployment %s/%s cannot be read: %s", own, name, error)
            return []
