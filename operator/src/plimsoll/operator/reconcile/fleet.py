"""Reconciles one fleet whenever something may have changed: an asyncio task per namespace.

Each reconciliation reads what the watches know, derives what should be, and executes the steps between the two. It
does not depend on which change woke it, so a change that was missed is found by the next one. The mediator runs beside
it and is shown the same objects. A fleet that waits for the API server makes no other fleet wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from time import monotonic, time

from plimsoll.core.printable import is_told_again
from plimsoll.core.spec import ResourceProblem, Resources
from plimsoll.core.spec.usable import Content, SpecFault, UsableFleet, usable_fleet
from plimsoll.feeds.checks import subscription_problems
from plimsoll.mediator import fleet_resources, telemetry_loads
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.operator import names, spec_faults, status
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.cache import Cache
from plimsoll.operator.health import OperatorHealth
from plimsoll.operator.mediator.lease import ServingRelease
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.metrics_api.group_figures import GroupFigure, group_figures
from plimsoll.operator.names import Object
from plimsoll.operator.objects.channel_launch import standby_problems
from plimsoll.operator.objects.collectors import FleetCollectorClient
from plimsoll.operator.objects.dataset_figures import DatasetFigures
from plimsoll.operator.objects.dataset_pods import path_problems
from plimsoll.operator.objects.manifest import Ref, is_leaving, object_of_broker, ref
from plimsoll.operator.objects.spark_reconciler import SparkReconciler
from plimsoll.operator.pairs.promoter import HeadPairs
from plimsoll.operator.pairs.requests import pair_requests
from plimsoll.operator.reconcile import accepted, edge_removal
from plimsoll.operator.reconcile.broker_events import BrokerEvents
from plimsoll.operator.reconcile.bundle_writer import BundleWriter
from plimsoll.operator.reconcile.container_ages import ContainerAges
from plimsoll.operator.reconcile.desired import DesiredFleet, DesiredInputs, desired_fleet
from plimsoll.operator.reconcile.executor import StepExecutor
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.mediator_supervisor import MediatorSupervisor
from plimsoll.operator.reconcile.observed import ObservedObjects, is_departed, rfc3339, unix_seconds
from plimsoll.operator.reconcile.plan import lost_pod_steps, plan_steps
from plimsoll.operator.reconcile.pod_refusals import PodRefusals
from plimsoll.operator.reconcile.retries import RETRY_SECONDS, Fault, StepRetries
from plimsoll.operator.reconcile.status_writer import StatusWriter
from plimsoll.operator.security.key_manager import KeyManager
from plimsoll.operator.security.keys import StoredKeys
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
            settings.release,
        )
        self._release, self._other_release = ServingRelease(api, namespace, settings.release), ""
        self._retries = StepRetries(namespace)
        self._executor = StepExecutor(client, metrics, self._retries, self._object_of_broker, self.wake)
        self._keys = KeyManager(namespace, api, self._retries, client.note_write, self._mediator.key_in_use_by)
        self._pairs = HeadPairs(client, api, self._lead_to, self._woken.set)
        self._broker_events, self._refusals = BrokerEvents(), PodRefusals(api, namespace)
        self._containers, self._figures = ContainerAges(), DatasetFigures()
        self._status, self._bundles = StatusWriter(client, settings.load_seconds), BundleWriter(client)
        self._desired: DesiredFleet | None = None
        self._found = UsableFleet(None)
        self._before: Collection[Content] | None = None
        """What the fleet was built of last; None until the first look, which reads what an earlier operator stored."""
        self._no_fleet = ""
        """Why there is no fleet to serve; empty if there is one."""
        self._refused_times = 0
        """How many reconciliations in a row the API server has refused."""
        self._failure = ""
        self._status_failure = ""
        """The unexpected errors of the last reconciliation and of the last status; empty if it had none."""
        self._judged: dict[Ref, int] = {}
        self._acted: dict[Ref, int] = {}
        """By object, the generation that was last looked at, and the one that the fleet was last built of."""
        self._told: dict[Ref, SpecFault] = {}
        self.is_gone = False

    @property
    def is_woken(self) -> bool:
        """Whether something has changed since the last reconciliation began."""
        return self._woken.is_set()

    @property
    def is_waiting(self) -> bool:
        """Whether another operator mediates this fleet, as far as this one knows."""
        return bool(self._other_release) or self._mediator.is_waiting

    def group_figures(self) -> Iterator[GroupFigure]:
        """What autoscalers read of its consumer groups."""
        places = self._desired.places if self._desired is not None else {}
        return group_figures(self._mediator.readings, {name: place.cluster for name, place in places.items()})

    def wake(self) -> None:
        """Ask for a reconciliation: something in the namespace has changed."""
        self._woken.set()
        self._pairs.note_change()

    def session_changed(self, type_: str, item: Object) -> None:
        """Take a session that was created, changed or deleted."""
        self._mediator.session_changed(type_, item)

    async def run(self) -> None:
        """Reconcile until the fleet is gone."""
        due_at = 0.0
        try:
            while not self.is_gone:
                self._health.beat(self.namespace)
                if self._woken.is_set() or monotonic() >= due_at:
                    # Cleared before the objects are read: a change that comes meanwhile wakes the next round.
                    self._woken.clear()
                    due_at = monotonic() + await self._reconcile_safely()
                await self._mediator.check()
                self._pairs.check()
                begun = monotonic()
                await self._write_status_safely()
                self._metrics.reconcile_seconds.labels("status").observe(monotonic() - begun)
                await self._wait(min(STATUS_INTERVAL_SECONDS, max(0.0, due_at - monotonic())))
        finally:
            self._health.forget(self.namespace)
            self._cache.drop_namespace(self.namespace)
            self._collectors.stop()
            self._figures.stop()
            await self._mediator.stop()
            await self._pairs.stop()

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
        if self._health.unserved(self.namespace):
            return RETRY_SECONDS  # some kinds cannot be seen, so nothing may be taken for missing
        begun = monotonic()
        result, pause = "success", self._settings.resync_seconds
        try:
            if await self._is_served_by_another():
                return RETRY_SECONDS
            await self._reconcile()
        except (ApiError, ApiConflictError, ApiNotFoundError) as error:
            self._refused_times += 1
            if is_told_again(self._refused_times):
                text, times = "%s: reconciliation failed (%d times), next try in %g s: %s", self._refused_times
                log.warning(text, self.namespace, times, RETRY_SECONDS, error)
            result, pause = "error", RETRY_SECONDS
        except Exception as error:  # a bug that one object triggers must neither stop the rest nor stay unsaid
            log.exception("%s: reconciliation failed, next try in %g s", self.namespace, RETRY_SECONDS)
            result, pause, self._failure = "fault", RETRY_SECONDS, f"{type(error).__name__}: {error}"
        else:
            self._failure, self._refused_times = "", 0
        if self._executor.faults or self._executor.blocked:
            pause = min(pause, RETRY_SECONDS)
        if result == "success" and (self._executor.faults or self._found.faults or self._no_fleet):
            result = "refused"
        pause = max(DEBOUNCE_SECONDS, min(pause, self._retries.next(monotonic())))
        self._metrics.reconciles.labels("fleet", result).inc()
        self._metrics.reconcile_seconds.labels("fleet").observe(monotonic() - begun)
        return pause

    async def _is_served_by_another(self) -> bool:
        """Whether the operators of another release serve the fleet; said once, and nothing of it is touched then."""
        fleet = next((item for item in self._client.observe().kind("BrokerFleet") if not is_leaving(item)), None)
        before, self._other_release = self._other_release, ""
        if fleet is None or self._mediator.is_mediating:
            return False
        self._other_release = other = await self._release.other(fleet["metadata"]["name"])
        if other and other != before:
            log.error("%s: the fleet is served by the operator %s; this one leaves it alone", self.namespace, other)
            message = f"the operator {other} serves it, so {self._settings.release} does not: uninstall one of them"
            await self._client.emit_event(fleet, "Warning", "OtherOperator", message)
            await self._mediator.stop()
            await self._pairs.stop()
        return bool(other)

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
        found = await asyncio.to_thread(self._accept, custom, observed)
        await self._emit_spec_faults(found)
        self._judged = {
            ref(item): int(item["metadata"].get("generation", 1)) for item in custom if not is_departed(item)
        }
        self._found = found
        if found.resources is None:
            fleet = next((f"BrokerFleet/{name}" for kind, name in found.faults if kind == "BrokerFleet"), "")
            self._no_fleet = f"{fleet} has a fault of its own: correct it" if fleet else NO_FLEET_MESSAGE
            desired = self._desired or DesiredFleet(self.namespace, fleet_resources.fleet_resources([]))
            await self._finish_removals(observed, desired)
            return
        self._no_fleet = ""
        await self._serve(found.resources, found)
        self._before = found.used.values()
        used = {key: int(item["metadata"].get("generation", 1)) for key, item in found.used.items()}
        made = {key: at for key, at in self._judged.items() if key not in used and key not in found.faults}
        self._acted = {**made, **used}

    async def _serve(self, resources: Resources, found: UsableFleet) -> None:
        """Bring the fleet from what is stored to what is accepted."""
        held = await self._keys.keys(resources, self._client.observe())
        for owner, reason, message in self._keys.replaced:
            await self._client.emit_event(owner, "Warning", reason, message)
        for owner, message in self._keys.created:
            await self._client.emit_event(owner, "Normal", "KeysCreated", message)
        observed = self._client.observe()  # with the Secrets that were just created
        known = DesiredInputs(
            namespace=self.namespace,
            stored=observed.objects,
            keys=held,
            lingering=observed.brokers(),
            remembered=self._keys.remembered,
            usable=found,
        )
        context = self._mediator.context(resources.fleet.spec.time_scale_percent / 100)
        # In a thread: with hundreds of brokers either takes a good part of a second, and other fleets share the loop.
        desired = await asyncio.to_thread(desired_fleet, resources, known, self._settings)
        self._desired = desired
        await self._keep_pairs(resources, desired, held)
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
        self._figures.update(observed.kind("Pod"))
        restart = await self._spark.reconcile(
            resources, self._client.observe(), self._collectors.known, next(iter(desired.applications), None)
        )
        if restart is not None:
            await self._executor.perform(restart)
            fleet = observed.get("BrokerFleet", desired.fleet)
            await self._client.emit_event(fleet, "Warning", "SparkRestarting", restart.reason)
        told, fleet = self._spark.files_set_aside(self._collectors.known), observed.get("BrokerFleet", desired.fleet)
        if told and fleet is not None:
            await self._client.emit_event(fleet, "Warning", "SparkFileSetAside", told)

    async def _keep_pairs(self, resources: Resources, desired: DesiredFleet, held: Mapping[str, StoredKeys]) -> None:
        """Have the heads with a standby kept, whether or not this operator mediates sessions."""
        heads = {
            broker.name: (broker.config, broker.restart_hash)
            for broker in desired.brokers.values() if broker.role == "head"
        }  # fmt: skip
        wanted = frozenset(name for name, cluster in resources.clusters.items() if cluster.spec.head.standby)
        own = None if resources.fleet.spec.security.plain else held.get(names.MEDIATOR_KEYS)
        key_pair = None if own is None else MediatorKeyPair(own.public, own.secret)
        await self._pairs.update(pair_requests(heads, wanted, self._client.observe()), key_pair)

    async def _lead_to(self, head: str, number: int) -> None:
        """Have the Services of a head lead to this pod at once; the next reconciliation writes them as a whole."""
        patch = {"spec": {"selector": {names.BROKER: head, names.POD_NAME: names.pod_of(head, number)}}}
        for name in (head, names.external_of(head)):
            service = self._client.observe().get("Service", name)
            if service is not None:
                try:
                    await self._client.patch(service, patch)
                except (ApiError, ApiConflictError) as error:
                    log.warning("%s: Service %s does not lead to pod %d yet: %s", self.namespace, name, number, error)

    async def _finish_removals(self, observed: ObservedObjects, desired: DesiredFleet) -> None:
        """Let edges leave and give up lost pods even while the spec is invalid: both would block deletions for good."""
        context = self._mediator.context(1.0)
        steps = [*edge_removal.removal_steps(desired, observed, context), *lost_pod_steps(observed, context)]
        await self._executor.execute(steps, self._other_faults(), self._keys.retry_keys)

    def _other_faults(self) -> dict[Ref, Fault]:
        return {**self._mediator.faults, **self._keys.faults}

    def _faults(self) -> dict[Ref, Fault]:
        """What the last reconciliation could not do, and what has failed since."""
        failed = Fault("OperatorFault", f"a reconciliation failed and is tried again: {self._failure}")
        if unserved := self._health.unserved(self.namespace):
            failed = Fault("Refused", unserved)
        is_hurt = self._failure or unserved
        fleets = [ref(item) for item in self._client.observe().kind("BrokerFleet")] if is_hurt else []
        return {**self._executor.faults, **self._mediator.faults, **dict.fromkeys(fleets, failed)}

    # -- resources

    def _accept(self, custom: Sequence[Object], observed: ObservedObjects) -> UsableFleet:
        """The fleet that can be served; objects with a fault count as they were last accepted."""
        before = accepted.stored_accepted(observed) if self._before is None else self._before
        return usable_fleet((item for item in custom if not is_leaving(item)), before, _further_problems)

    async def _emit_spec_faults(self, found: UsableFleet) -> None:
        """Write an Event about each object with a fault, once for each fault."""
        present = {**found.incomplete, **found.faults, **_warnings(found)}
        for key, fault in present.items():
            if self._told.get(key) != fault:
                about = self._client.observe().objects.get(key)
                await self._client.emit_event(about, "Warning", fault.reason, fault.message)
        self._told = present

    async def _emit_missing_fleet(self, custom: Sequence[Object]) -> None:
        """Clusters cannot run without a fleet: it owns the keys, and its status holds the mediator's epoch."""
        clusters = [item for item in custom if item["kind"] == "BrokerCluster" and not is_leaving(item)]
        created = [unix_seconds(item["metadata"]["creationTimestamp"]) for item in clusters]
        if clusters and time() - max(created) >= FLEETLESS_GRACE_SECONDS:
            self._no_fleet = NO_FLEET_MESSAGE
            for cluster in clusters:
                await self._client.emit_event(cluster, "Warning", "NoFleet", NO_FLEET_MESSAGE)

    def _object_of_broker(self, broker: str) -> Object | None:
        """The object to write Events about a broker to."""
        desired = self._desired.brokers.get(broker) if self._desired is not None else None
        items = self._client.observe().objects.values()
        return object_of_broker(items, broker, desired.cluster if desired is not None else "")

    # -- status

    def _specs(self) -> spec_faults.SpecFaults:
        return spec_faults.SpecFaults(found=self._found, judged=self._judged, acted=self._acted)

    async def _write_status_safely(self) -> None:
        """Write the status; a fault in it ends neither the mediator nor the heads' pairs, and is said once."""
        try:
            await self._write_status()
        except Exception as error:  # a bug that one object triggers
            why = f"{type(error).__name__}: {error}"
            if why != self._status_failure:
                log.exception("%s: the status cannot be written", self.namespace)
                fleet = next(self._client.observe().kind("BrokerFleet"), None)
                await self._client.emit_event(fleet, "Warning", "PartFailed", f"the status cannot be written: {why}")
            self._status_failure = why
        else:
            self._status_failure = ""

    async def _write_status(self) -> None:
        """Write the status of all objects, as far as it is due."""
        now, observed = rfc3339(time()), self._client.observe()
        if self._other_release:
            return
        if self._no_fleet:
            await self._status.write(spec_faults.fleetless_statuses(observed, self._specs(), self._no_fleet, now))
            return
        if self._desired is None:
            return
        await self._refusals.look(observed, time())
        facts = status.StatusInputs(
            desired=self._desired,
            observed=observed,
            readings=self._mediator.readings,
            faults=self._faults(),
            blocked=self._executor.blocked,
            refusals=self._refusals.messages,
            container_seconds=self._containers.look(observed, monotonic()),
            specs=self._specs(),
            mediator={"pod": self._settings.pod_name} if self._settings.pod_name else {},
            telemetry=self._collectors.status,
            spark=self._spark.status(self._desired.resources, observed, self._collectors.known),
            figures=self._figures,
            channel_obstacle=self._spark.channel_obstacle(self._desired.resources),
            time=now,
            leaders=self._pairs.leaders(),
        )
        if self._mediator.is_waiting:
            return  # another operator mediates: it polls the brokers and writes their statuses
        if self._mediator.age_seconds > STATUS_WARMUP_SECONDS or not status.has_silent_broker(facts):
            for event in self._broker_events.since_last_look(status.observed_brokers(facts)):
                about = self._object_of_broker(event.broker)
                await self._client.emit_event(about, event.type, event.reason, event.message)
            statuses = list(status.fleet_statuses(facts))
            await self._status.write(statuses)
            await self._bundles.write(status.reported_clusters(facts, statuses), self._desired.fleet)
        else:
            await self._status.write(status.fault_statuses(facts))


def _further_problems(resources: Resources) -> Iterator[ResourceProblem]:
    yield from subscription_problems(resources)
    yield from path_problems(resources)
    yield from standby_problems(resources)


def _warnings(found: UsableFleet) -> dict[Ref, SpecFault]:
    """What is accepted and most likely not meant."""
    fleet = found.resources.fleet if found.resources is not None else None
    if fleet is None or not (fleet.spec.security.plain and fleet.spec.security.clients):
        return {}
    message = "spec.security.plain: links are not protected, and the keys of spec.security.clients are not used"
    return {("BrokerFleet", fleet.name): SpecFault("PlainWithKeys", f"{message}. Remove one of the two.")}
