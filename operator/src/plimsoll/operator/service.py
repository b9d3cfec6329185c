"""The whole process: watches, a task for each namespace with a fleet, the HTTP endpoint, and the canary."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from time import monotonic

import kopf

from plimsoll.mediator.desired import KINDS
from plimsoll.operator import names, watching
from plimsoll.operator.api import Api, ApiError, ConflictError, MissingError
from plimsoll.operator.cache import Cache
from plimsoll.operator.fleet import Fleet
from plimsoll.operator.health import Endpoint, Health, measure_lag
from plimsoll.operator.mediating import DeposedError
from plimsoll.operator.metrics import Metrics
from plimsoll.operator.names import Object
from plimsoll.operator.settings import Settings
from plimsoll.operator.truth import Truth

log = logging.getLogger(__name__)

BEGIN_AGAIN_SECONDS = 5.0
CANARY = "plimsoll.dev/canary"


class Service:
    """One operator process."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self.api, self.settings = api, settings
        self.metrics = Metrics()
        self.health = Health(settings.silent_seconds)
        self._watches = watching.Watches(self._told, self.metrics, nodes=settings.read_nodes, spark=settings.spark)
        self.truth = Truth(api, self._watches, settings.namespaces, self._unseen)
        self.cache = Cache(self._watches.objects)
        self.health.silence, self.health.deaf = self.cache.silent, self.truth.deaf
        self._fleets: dict[str, Fleet] = {}
        self._seen: dict[str, object] = {}
        self._heard: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.metrics.requests_of(api.requests)
        self.metrics.queue_depth.set_function(lambda: sum(each.is_woken for each in self._fleets.values()))
        self.metrics.sessions_of(lambda: self._watches.everywhere("LoadBalancingSession"))

    async def run(self) -> None:
        """Serve until told to stop by a signal.

        Raises:
            DeposedError: another operator mediates one of the fleets.

        """
        await self._definitions()
        stop, ready = asyncio.Event(), asyncio.Event()
        async with Endpoint(self.health, self.metrics, self.settings.http_port) as endpoint:
            log.info("answers HTTP on port %d", endpoint.port)
            beside = [
                asyncio.create_task(each)
                for each in (measure_lag(self.metrics), self._canary(), self._readiness(ready), self.truth.run())
            ]
            watching_task = asyncio.create_task(self._watch(stop, ready), name="watches")
            try:
                await asyncio.wait([watching_task, self._failed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stop.set()
                for task in (*beside, *self._tasks.values()):
                    task.cancel()
                await asyncio.gather(watching_task, *beside, *self._tasks.values(), return_exceptions=True)
            if self._failed.done():
                self._failed.result()
            watching_task.result()

    async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        await kopf.operator(
            registry=self._watches.registry,
            settings=watching.settings(),
            clusterwide=not self.settings.namespaces,
            namespaces=self.settings.namespaces,
            standalone=True,
            # Without one kopf asks for the name of the user, and in a pod the user has none.
            identity=self.settings.pod_name or "plimsoll",  # type: ignore[arg-type]  # its NewType is not exported
            stop_flag=stop,
            ready_flag=ready,
        )

    async def _definitions(self) -> None:
        """Wait until the kinds are known to the API server: kopf looks for them once."""
        namespace = next(iter(self.settings.namespaces), "")
        for kind in watching.OWN:
            while True:
                try:
                    await self.api.list(kind, namespace, retry=True)
                    break
                except MissingError:
                    log.warning("the API server does not know the kind %s yet; asked again", kind)
                    await asyncio.sleep(BEGIN_AGAIN_SECONDS)

    # -- what the watches tell

    def _told(self, type_: str, kind: str, item: Object) -> None:
        namespace = item["metadata"].get("namespace", "")
        self._hear(type_, kind, item)
        self.health.ready = True
        if kind == watching.NODE:
            for each in self._fleets.values():
                each.wake()
            return
        if CANARY in (item["metadata"].get("labels") or {}):
            self.health.canary_heard = monotonic()
            return
        fleet = self._fleets.get(namespace)
        if fleet is None:
            if kind not in watching.OWN or type_ == "DELETED":
                return
            fleet = self._begin(namespace)
        if type_ == "DELETED":
            self.cache.gone(item)
        if kind == "LoadBalancingSession":
            fleet.session(type_ or "ADDED", item)
        if self._is_news(type_, kind, item):
            fleet.wake()

    def _hear(self, type_: str, kind: str, item: Object) -> None:
        """Who is told of a second time without a change is told of by a watch that has begun anew."""
        uid = item["metadata"]["uid"]
        if type_ == "DELETED":
            self._heard.discard(uid)
            return
        if not type_ and uid in self._heard:
            self.truth.suspect(kind)
        self._heard.add(uid)

    def _unseen(self, kind: str, item: Object) -> None:
        """Something has gone that no watch has told of."""
        self._told("DELETED", kind, item)

    def _is_news(self, type_: str, kind: str, item: Object) -> bool:
        """Whether anything has changed beside status that the operator itself has written."""
        uid = item["metadata"]["uid"]
        if kind not in watching.OWN:
            return True
        if type_ == "DELETED":
            self._seen.pop(uid, None)
            return True
        seen = watching.essence(item)
        if self._seen.get(uid) == seen:
            return False
        self._seen[uid] = seen
        return True

    def _begin(self, namespace: str) -> Fleet:
        fleet = Fleet(namespace, self.api, self.cache, self.settings, self.metrics, self.health, self._watches.nodes)
        self._fleets[namespace] = fleet
        self._tasks[namespace] = asyncio.create_task(self._serve(fleet), name=f"fleet of {namespace}")
        self.metrics.fleets.set(len(self._fleets))
        return fleet

    async def _serve(self, fleet: Fleet) -> None:
        """Serve a fleet to its end; a fault of ours ends its task, which begins anew, and no other fleet's."""
        while True:
            try:
                await fleet.run()
                if not any(item["kind"] in KINDS for item in self._watches.objects(fleet.namespace)):
                    break
                fleet.idle = False  # somebody has made something in the meantime
            except DeposedError as error:
                if not self._failed.done():
                    self._failed.set_exception(error)
                return
            except Exception:  # a fault of one fleet is not to end the others
                log.exception("%s: its task has failed and begins anew", fleet.namespace)
                self.metrics.reconciles.labels("fleet", "fault").inc()
                await asyncio.sleep(BEGIN_AGAIN_SECONDS)
        del self._fleets[fleet.namespace], self._tasks[fleet.namespace]
        self.metrics.fleets.set(len(self._fleets))

    # -- whether the watches hear

    async def _readiness(self, ready: asyncio.Event) -> None:
        """With nothing at all to watch, nothing is told; the process is ready all the same."""
        await ready.wait()
        await asyncio.sleep(BEGIN_AGAIN_SECONDS)
        self.health.ready = True

    async def _canary(self) -> None:
        """Write something that the watches must tell of, again and again."""
        namespace, _, name = self.settings.canary.partition("/")
        if not name:
            return
        if self.settings.namespaces and namespace not in self.settings.namespaces:
            namespace = self.settings.namespaces[0]  # in its own one it has no rights, and watches nothing
        labels = {"app.kubernetes.io/managed-by": names.MANAGER, CANARY: "true"}
        while True:
            item = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "data": {"at": datetime.now(UTC).isoformat()},
            }
            try:
                await self.api.apply(item)
                self.health.canary_written = monotonic()
            except (ApiError, ConflictError, MissingError) as error:
                log.warning("the canary could not be written: %s", error)
            await asyncio.sleep(self.settings.canary_seconds)
