"""Reconciles one fleet whenever something may have changed: an asyncio task per namespace.

Each reconciliation reads what the watches know, derives what should be, and executes the steps between the two. It
does not depend on which change woke it, so a change that was missed is found by the next one. The mediator runs beside
it and is shown the same objects. A fleet that waits for the API server makes no other fleet wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic, time

from plimsoll.core.spec import InvalidResourcesError, Resources
from plimsoll.mediator import fleet_resources, telemetry_loads
from plimsoll.operator import names, status
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.cache import Cache
from plimsoll.operator.health import OperatorHealth
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.names import Object
from plimsoll.operator.objects.collectors import FleetCollectorClient
from plimsoll.operator.objects.manifest import Ref, is_leaving, object_of_broker, ref
from plimsoll.operator.objects.spark_reconciler import SparkReconciler
from plimsoll.operator.reconcile import edge_removal
from plimsoll.operator.reconcile.desired import DesiredFleet, DesiredInputs, desired_fleet
from plimsoll.operator.reconcile.executor import StepExecutor
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.mediator_supervisor import MediatorSupervisor
from plimsoll.operator.reconcile.observed import ObservedObjects, rfc3339, unix_seconds
from plimsoll.operator.reconcile.plan import lost_pod_steps, plan_steps
from plimsoll.operator.reconcile.retries import RETRY_SECONDS, Fault, StepRetries
from plimsoll.operator.reconcile.status_writer import StatusWriter
from plimsoll.operator.security.key_manager import KeyManager
from plimsoll.operator.settings import OperatorSettings

log = logging.getLogger(__name__)

STATUS_INTERVAL_SECONDS = 1.0
DEBOUNCE_SECONDS = 0.05
"""Changes that arrive within this time of each other are reconciled together."""
STATUS_WARMUP_SECONDS = 45.0
"""A new mediator has this long to receive an answer of each broker; until then the earlier status stays."""
FLEETLESS_GRACE_SECONDS = 3.0
"""A namespace with clusters has this long to get its fleet: `kubectl apply` writes the files one by one."""
NO_FLEET_MESSAGE = "there is no BrokerFleet in this namespace: create one; its spec may be empty"


class FleetReconciler:
    """The fleet of one namespace. `nodes` returns the nodes by name, or None if the operator may not read nodes."""

    def __init__(
        self,
        namespace: str,
        api: Api,
        cache: Cache,
        settings: OperatorSettings,
        metrics: OperatorMetrics,
        health: OperatorHealth,
        nodes: Callable[[], Mapping[str, Object] | None],
    ) -> None:
        self.namespace = namespace
        self._cache, self._settings, self._metrics, self._health = cache, settings, metrics, health
        self._woken = asyncio.Event()
        self._client = client = FleetClient(namespace, api, cache, nodes)
        self._collectors, self._spark = FleetCollectorClient(namespace), SparkReconciler(api, namespace, settings)
        self._mediator = MediatorSupervisor(
            client,
            api,
            metrics.session,
            lambda: telemetry_loads.telemetry_loads(self._collectors.known, time()),
            self.wake,
        )
        self._retries = StepRetries(namespace)
        self._executor = StepExecutor(client, metrics, self._retries, self._object_of_broker, self.wake)
        self._keys = KeyManager(namespace, api, self._retries, client.note_write, self._mediator.key_in_use_by)
        self._status = StatusWriter(client, settings.load_seconds)
        self._desired: DesiredFleet | None = None
        self._invalid = self._invalid_reason = ""
        self._orphans: dict[Ref, Fault] = {}
        self.is_gone = False

    @property
    def is_woken(self) -> bool:
        """Whether something has changed since the last reconciliation began."""
        return self._woken.is_set()

    def wake(self) -> None:
        """Ask for a reconciliation: something in the namespace has changed."""
        self._woken.set()

    def session_changed(self, type_: str, item: Object) -> None:
        """Take a session that was created, changed or deleted."""
        self._mediator.session_changed(type_, item)

    async def run(self) -> None:
        """Reconcile until the fleet is gone.

        Raises:
            OperatorDeposedError: another operator mediates this fleet.

        """
        due_at = 0.0
        try:
            while not self.is_gone:
                self._health.beat(self.namespace)
                if self._woken.is_set() or monotonic() >= due_at:
                    # Cleared before the objects are read: a change that comes meanwhile wakes the next round.
                    self._woken.clear()
                    due_at = monotonic() + await self._reconcile_safely()
                await self._mediator.check()
                begun = monotonic()
                await self._write_status()
                self._metrics.reconcile_seconds.labels("status").observe(monotonic() - begun)
                await self._wait(min(STATUS_INTERVAL_SECONDS, max(0.0, due_at - monotonic())))
        finally:
            self._health.forget(self.namespace)
            self._cache.drop_namespace(self.namespace)
            self._collectors.stop()
            await self._mediator.stop()

    async def _wait(self, seconds: float) -> None:
        """Wait until something changes, at most for some seconds."""
        try:
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may lose a cancellation
                await self._woken.wait()
            await asyncio.sleep(DEBOUNCE_SECONDS)
        except TimeoutError:
            return  # nothing has changed, and the next round is due

    # -- reconciliation

    async def _reconcile_safely(self) -> float:
        """Reconcile; how many seconds later to do so again at the latest."""
        if self._mediator.may_be_deposed:
            return RETRY_SECONDS  # the API server was away for long: another operator may have changed the fleet
        begun = monotonic()
        result, pause = "success", self._settings.resync_seconds
        try:
            await self._reconcile()
        except (ApiError, ApiConflictError, ApiNotFoundError) as error:
            log.warning("%s: reconciliation failed, next try in %g s: %s", self.namespace, RETRY_SECONDS, error)
            result, pause = "error", RETRY_SECONDS
        if self._executor.faults or self._executor.blocked:
            pause = min(pause, RETRY_SECONDS)
        if result == "success" and (self._executor.faults or self._invalid_reason):
            result = "refused"
        pause = max(DEBOUNCE_SECONDS, min(pause, self._retries.next(monotonic())))
        self._metrics.reconciles.labels("fleet", result).inc()
        self._metrics.reconcile_seconds.labels("fleet").observe(monotonic() - begun)
        return pause

    async def _reconcile(self) -> None:
        observed = self._client.observe()
        custom = [item for kind in fleet_resources.FLEET_KINDS for item in observed.kind(kind)]
        if not custom:
            self.is_gone = True
            return
        if not any(item["kind"] == "BrokerFleet" for item in custom):
            await self._emit_missing_fleet(custom)
            await self._finish_removals(observed, DesiredFleet(self.namespace, fleet_resources.fleet_resources([])))
            return
        resources = self._parse(custom)
        if resources is None:
            await self._emit_invalid_spec(custom)
            if self._desired is not None:
                await self._finish_removals(observed, self._desired)
            return
        await self._reconcile_valid(resources)

    async def _reconcile_valid(self, resources: Resources) -> None:
        held = await self._keys.keys(resources, self._client.observe())
        for owner, message in self._keys.replaced:
            await self._client.emit_event(owner, "Warning", "SecretDeleted", message)
        observed = self._client.observe()  # with the Secrets that were just created
        known = DesiredInputs(
            namespace=self.namespace,
            stored=observed.objects,
            keys=held,
            lingering=observed.brokers(),
            remembered=self._keys.remembered,
        )
        context = self._mediator.context(resources.fleet.spec.time_scale_percent / 100)
        # In a thread: with hundreds of brokers either takes a good part of a second, and other fleets share the loop.
        desired = await asyncio.to_thread(desired_fleet, resources, known, self._settings)
        self._desired = desired
        steps = await asyncio.to_thread(plan_steps, desired, observed, context)
        await self._executor.execute(steps, self._other_faults(), self._keys.retry_keys)
        # After the steps: the mediator must not connect to brokers that this plan has just deleted.
        await self._mediator.update(desired, held)
        self._collectors.update(
            desired.fleet,
            resources.fleet.spec.telemetry.collectors.replicas,
            held.get(names.COLLECTOR_KEYS),
            observed.kind("LoadBalancingSession"),
        )
        restart = await self._spark.reconcile(resources, self._client.observe(), self._collectors.known)
        if restart is not None:
            await self._executor.perform(restart)
            fleet = observed.get("BrokerFleet", desired.fleet)
            await self._client.emit_event(fleet, "Warning", "SparkRestarting", restart.reason)
        told, fleet = self._spark.files_set_aside(self._collectors.known), observed.get("BrokerFleet", desired.fleet)
        if told and fleet is not None:
            await self._client.emit_event(fleet, "Warning", "SparkFileSetAside", told)

    async def _finish_removals(self, observed: ObservedObjects, desired: DesiredFleet) -> None:
        """Let edges leave and give up lost pods even while the spec is invalid: both would block deletions for good."""
        context = self._mediator.context(1.0)
        steps = [*edge_removal.removal_steps(desired, observed, context), *lost_pod_steps(observed, context)]
        await self._executor.execute(steps, self._other_faults(), self._keys.retry_keys)

    def _other_faults(self) -> dict[Ref, Fault]:
        return {**self._orphans, **self._mediator.faults, **self._keys.faults}

    # -- resources

    def _parse(self, custom: Sequence[Object]) -> Resources | None:
        """The fleet's resources; None, and why, if they contradict each other."""
        self._orphans.clear()
        clusters = {
            item["metadata"]["name"] for item in custom if item["kind"] == "BrokerCluster" and not is_leaving(item)
        }
        try:
            found = fleet_resources.fleet_resources(item for item in custom if not self._is_orphan(item, clusters))
        except InvalidResourcesError as error:
            self._invalid, self._invalid_reason = str(error).replace("<store>: ", ""), "InvalidSpec"
            return None
        self._invalid = self._invalid_reason = ""
        return found

    def _is_orphan(self, item: Object, clusters: Collection[str]) -> bool:
        """Whether an EdgeBroker names a cluster that does not exist: a fault of this edge, not of the whole fleet."""
        if item["kind"] != "EdgeBroker" or is_leaving(item):
            return False
        cluster = item["spec"]["clusterRef"]["name"]
        if cluster in clusters:
            return False
        self._orphans[ref(item)] = Fault("NoCluster", f"there is no BrokerCluster {cluster}")
        return True

    async def _emit_invalid_spec(self, custom: Sequence[Object]) -> None:
        fleet = next(item for item in custom if item["kind"] == "BrokerFleet")
        message = f"nothing is changed until the spec is corrected: {self._invalid}"
        await self._client.emit_event(fleet, "Warning", "InvalidSpec", message)

    async def _emit_missing_fleet(self, custom: Sequence[Object]) -> None:
        """Clusters cannot run without a fleet: it owns the keys, and its status holds the mediator's epoch."""
        clusters = [item for item in custom if item["kind"] == "BrokerCluster" and not is_leaving(item)]
        created = [unix_seconds(item["metadata"]["creationTimestamp"]) for item in clusters]
        if clusters and time() - max(created) >= FLEETLESS_GRACE_SECONDS:
            self._invalid, self._invalid_reason = NO_FLEET_MESSAGE, "NoFleet"
            for cluster in clusters:
                await self._client.emit_event(cluster, "Warning", "NoFleet", NO_FLEET_MESSAGE)

    def _object_of_broker(self, broker: str) -> Object | None:
        """The object to write Events about a broker to."""
        desired = self._desired.brokers.get(broker) if self._desired is not None else None
        items = self._client.observe().objects.values()
        return object_of_broker(items, broker, desired.cluster if desired is not None else "")

    # -- status

    async def _write_status(self) -> None:
        """Write the status of all objects, as far as it is due."""
        now, observed = rfc3339(time()), self._client.observe()
        if self._desired is None or self._invalid_reason == "NoFleet":
            if self._invalid:
                statuses = status.unserved_statuses(observed, self._invalid_reason, self._invalid, now)
                await self._status.write(statuses)
            return
        facts = status.StatusInputs(
            desired=self._desired,
            observed=observed,
            readings=self._mediator.readings,
            faults=self._executor.faults,
            blocked=self._executor.blocked,
            invalid=self._invalid,
            mediator={"pod": self._settings.pod_name} if self._settings.pod_name else {},
            telemetry=self._collectors.status,
            spark=self._spark.status(self._desired.resources, observed, self._collectors.known),
            time=now,
        )
        if self._mediator.is_waiting:
            return  # another operator mediates: it polls the brokers and writes their statuses
        if self._mediator.age_seconds > STATUS_WARMUP_SECONDS or not status.has_silent_broker(facts):
            await self._status.write(status.fleet_statuses(facts))
