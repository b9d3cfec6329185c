"""Keeps a mediator running for a fleet: starts it, restarts it after a pause, and shows it the fleet's objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from time import monotonic, time

from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.mediator.fleet_view import TelemetryLoads
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.mediator.epochs import EpochsExhaustedError, OperatorDeposedError
from plimsoll.operator.mediator.runner import FleetMediator
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, ref
from plimsoll.operator.reconcile import rollout
from plimsoll.operator.reconcile.accepted import mediated_objects
from plimsoll.operator.reconcile.addresses import cluster_edges, reachable_peers
from plimsoll.operator.reconcile.desired import DesiredFleet
from plimsoll.operator.reconcile.drain import ReconcileContext, ReportedSubscribers
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.retries import Fault
from plimsoll.operator.security import keys
from plimsoll.operator.session_metrics import SessionMetrics
from plimsoll.operator.tasks import cancel_tasks

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, STABLE_SECONDS = 1.0, 60.0, 60.0
"""A mediator that fails is restarted after a pause, which doubles until one has run for STABLE_SECONDS."""

_API_ERRORS = ApiError | ApiConflictError | ApiNotFoundError


class MediatorSupervisor:
    """The mediator of one fleet. `loads` returns the averages of the fleet's telemetry, if it has any.

    `faults`: why there is no mediator, by object. `wake` asks for another reconciliation.
    """

    def __init__(
        self,
        client: FleetClient,
        api: Api,
        metrics: SessionMetrics,
        loads: Callable[[], TelemetryLoads | None],
        wake: Callable[[], None],
        release: str = "",
    ) -> None:
        self._client, self._api, self._metrics, self._loads, self._wake = client, api, metrics, loads, wake
        self._release = release
        self._mediator: FleetMediator | None = None
        self._task: asyncio.Task[None] | None = None
        self._config: object = None
        self._public_key = ""
        self._started_at = monotonic()
        self._pause, self._due_at = FIRST_PAUSE_SECONDS, 0.0
        self.faults: dict[Ref, Fault] = {}

    # -- brokers

    @property
    def age_seconds(self) -> float:
        """How long ago the present mediator was started, or the last one ended."""
        return monotonic() - self._started_at

    @property
    def may_be_deposed(self) -> bool:
        """Whether the mediator has lost the API server for longer than its lease lasts."""
        return self._mediator is not None and self._mediator.may_be_deposed

    @property
    def is_mediating(self) -> bool:
        """Whether this operator holds the fleet's Lease, as far as it knows."""
        return self._mediator is not None and not self.is_waiting

    @property
    def is_waiting(self) -> bool:
        """Whether another operator mediates, as far as this one knows: then that one polls the brokers."""
        return self._mediator is not None and (not self._mediator.epochs_begun or self._mediator.may_be_deposed)

    @property
    def readings(self) -> Mapping[str, BrokerReading]:
        """The last answer and report of each broker."""
        return self._mediator.brokers.readings if self._mediator is not None else {}

    def context(self, time_factor: float) -> ReconcileContext:
        """The inputs of a plan beside the objects: the time, and the edges' subscribers."""
        now = time()
        if self._mediator is None or not self._mediator.epochs_begun:
            return ReconcileContext(now, time_factor, 0.0, {})
        subscribers = {
            name: ReportedSubscribers(int(reading.report["subscribers"]), now - reading.report_age)
            for name, reading in self.readings.items()
            if reading.report_age is not None and "subscribers" in reading.report
        }
        return ReconcileContext(now, time_factor, self.age_seconds, subscribers)

    def key_in_use_by(self, broker: str) -> str:
        """The public key of a broker's last answer, or that of the mediator itself; empty if unknown."""
        if broker == names.MEDIATOR:
            return self._public_key
        reading = self.readings.get(broker)
        process = reading.answer.get("process") if reading is not None else None
        return str(process.get("public_key", "")) if isinstance(process, Mapping) else ""

    # -- life cycle

    def session_changed(self, type_: str, item: Object) -> None:
        """Show the mediator, if there is one, a session that a watch has shown; a new one reads them all."""
        if self._mediator is not None:
            self._mediator.session_changed(type_, item)

    async def update(self, desired: DesiredFleet, held: Mapping[str, keys.StoredKeys]) -> None:
        """Show the mediator the fleet as accepted; first (re)start it if it does not run or its settings changed."""
        spec, own = desired.resources.fleet.spec, held.get(names.MEDIATOR_KEYS)
        if not spec.security.plain and own is None:
            return
        key_pair = None if spec.security.plain or own is None else MediatorKeyPair(own.public, own.secret)
        config = (desired.fleet, key_pair, spec.time_scale_percent, spec.telemetry.report_interval)
        if self._task is None and monotonic() < self._due_at:
            return
        if self._task is None or config != self._config:
            await self.stop()
            self._start(desired.fleet, spec, key_pair)
            self._config, self._public_key = config, own.public if own is not None else ""
        if self._mediator is None:
            return
        observed = self._client.observe()
        cordoned = rollout.cordoned_for_rollout(desired, observed)  # no session may move subscribers to those
        items = mediated_objects(observed, desired.usable)
        self._mediator.update_objects([_as_cordoned(item, cordoned) for item in items])
        roles = {**observed.brokers(), **{name: broker.role for name, broker in desired.brokers.items()}}
        edges = cluster_edges(desired, observed, cordoned | self._mediator.brokers.draining)
        self._mediator.brokers.update_peers(reachable_peers(observed, roles), edges)

    def _start(self, fleet: str, spec: BrokerFleetSpec, key_pair: MediatorKeyPair | None) -> None:
        namespace = self._client.namespace
        self._started_at = monotonic()
        self._mediator = FleetMediator(
            self._api, namespace, fleet, key_pair, spec, metrics=self._metrics.for_fleet(), release=self._release
        )
        self._mediator.use_telemetry_loads(self._loads)
        self._task = asyncio.create_task(self._mediator.run(), name=f"mediator of {namespace}")

    async def check(self) -> None:
        """Notice that the mediator has ended; the next reconciliation after a pause restarts it.

        A failure stays a fault of the fleet until a mediator has lasted: meanwhile no session proceeds. So does a
        mediator that was deposed: the next one waits for the Lease, as long as another operator has it.
        """
        if self._task is None or not self._task.done():
            if self._task is not None and self.age_seconds >= STABLE_SECONDS:
                self.faults.clear()
            return
        task, self._task, self._mediator = self._task, None, None
        lasted, self._started_at = self.age_seconds, monotonic()
        error = task.exception()
        if error is None:
            return
        is_expected = isinstance(error, OperatorDeposedError | EpochsExhaustedError | _API_ERRORS)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS) if lasted < STABLE_SECONDS else FIRST_PAUSE_SECONDS
        self._due_at = monotonic() + self._pause
        log.error(
            "%s: mediator failed, restarting in %g s: %s", self._client.namespace, self._pause, error,
            exc_info=None if is_expected else error,
        )  # fmt: skip
        self._wake()
        fleet = next(self._client.observe().kind("BrokerFleet"), None)
        why = str(error) if is_expected else f"{type(error).__name__}: {error}"
        message = f"the mediator failed and restarts in {self._pause:g} s: {why}"
        await self._client.emit_event(fleet, "Warning", "MediatorExited", message)
        if fleet is not None:
            reason = "Refused" if isinstance(error, _API_ERRORS) else "OperatorFault"
            self.faults[ref(fleet)] = Fault(reason, f"the mediator cannot go on: {why}")

    async def stop(self) -> None:
        task, self._task, self._mediator = self._task, None, None
        if task is not None:
            await cancel_tasks(task)


def _as_cordoned(item: Object, cordoned: Collection[str]) -> Object:
    """An object as the mediator is shown it: an edge that is about to be replaced counts as cordoned."""
    if item["kind"] != "EdgeBroker" or item["metadata"]["name"] not in cordoned:
        return item
    return {**item, "spec": {**item["spec"], "cordoned": True}}
