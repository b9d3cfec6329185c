"""Carries out the steps of a plan; a step that the API server refuses is retried after a pause that grows.

Steps are independent of each other: a Secret that an admission webhook denies must not keep other brokers from
starting. Only an API server that does not answer at all ends the execution, as every later step would wait for it, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Literal, assert_never

from plimsoll.operator import names, status
from plimsoll.operator.api import ApiConflictError, ApiError
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, annotation, digest, is_ours, ref, used_objects
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.observed import label
from plimsoll.operator.reconcile.retries import TAKEN, Fault, RetryKey, StepRetries, is_api_unavailable
from plimsoll.operator.reconcile.steps import (
    Apply,
    Delete,
    Evacuate,
    ExecutableStep,
    NameTaken,
    Patch,
    ReconcileStep,
    Restart,
    StepBlocked,
    subject_of,
)

log = logging.getLogger(__name__)


class StepExecutor:
    """Executes the steps of one fleet.

    `faults`: what could not be done at the last execution, by object. `blocked`: what each blocked object waits for.
    `object_of_broker` finds the object to write Events about; `wake` asks for another reconciliation.
    """

    def __init__(
        self,
        client: FleetClient,
        metrics: OperatorMetrics,
        retries: StepRetries,
        object_of_broker: Callable[[str], Object | None],
        wake: Callable[[], None],
    ) -> None:
        self._client, self._metrics, self._retries = client, metrics, retries
        self._object_of_broker, self._wake = object_of_broker, wake
        self._emitted: dict[Ref, str] = {}
        self.faults: dict[Ref, Fault] = {}
        self.blocked: dict[Ref, str] = {}

    async def execute(
        self, steps: Sequence[ReconcileStep], others: Mapping[Ref, Fault], other_keys: Collection[RetryKey]
    ) -> None:
        """Execute the steps that are due. `others`, `other_keys`: faults and retries of the fleet's other parts.

        Raises:
            ApiError: the API server does not answer; later steps were not tried.

        """
        self.blocked = {step.subject: step.reason for step in steps if isinstance(step, StepBlocked)}
        faults = dict(others)
        for step in steps:
            if isinstance(step, StepBlocked):
                continue
            if foreign := _foreign_objects(step, faults):
                # What is not the operator's is never used: a pod would start on it, and end at once.
                self.blocked[subject_of(step)] = f"waiting for {foreign}, which is not the operator's, to be gone"
                continue
            fault = await self._execute_when_due(step)
            if fault is not None:
                faults[subject_of(step)] = fault
        self._retries.keep({_retry_key(step) for step in steps} | set(other_keys))
        self.faults = faults
        for key, fault in faults.items():
            await self._emit_once(key, fault)

    async def _execute_when_due(self, step: ExecutableStep | NameTaken) -> Fault | None:
        """Why a step is not carried out, if it is not; one whose pause is not over has the fault of its last try."""
        if isinstance(step, NameTaken):
            return Fault(TAKEN, step.reason)
        if not self._retries.is_due(_retry_key(step), monotonic(), _desired_hash(step)):
            return self.faults.get(subject_of(step))
        try:
            fault = await self.perform(step)
            self._retries.succeeded(_retry_key(step))
        except ApiConflictError as error:
            # No fault: the object has changed since it was observed, and the next plan will say what to do with it.
            self._retries.failed_by(error, _retry_key(step), monotonic(), _desired_hash(step))
            self._client.forget_write(subject_of(step))
            return None
        except ApiError as error:
            fault = self._retries.failed_by(error, _retry_key(step), monotonic(), _desired_hash(step))
            if is_api_unavailable(error):
                raise
        return fault

    async def perform(self, step: ExecutableStep) -> Fault | None:
        """Carry out one step now; a fault if its name is taken. Raises what `Api` raises."""
        fault: Fault | None = None
        kind, name = subject_of(step)
        log.info("%s: %s %s/%s: %s", self._client.namespace, type(step).__name__, kind, name, step.reason)
        match step:
            case Apply(item):
                fault = await self._apply(item)
            case Patch(item, patch):
                await self._client.patch(item, patch)
            case Delete(item, _, grace):
                await self._delete(item, grace)
            case Restart(broker, pod, reason, event):
                await self._delete(pod)
                message = f"pod {pod['metadata']['name']} is restarted: {reason}"
                severity: Literal["Normal", "Warning"] = "Normal" if event == "Restarting" else "Warning"
                await self._client.emit_event(self._object_of_broker(broker), severity, event, message)
            case Evacuate(owner, session, reason):
                await self._client.create(session)
                what = "subscribers to other edges" if kind == "EdgeBroker" else "head's publishers to other heads"
                message = f"session {session['metadata']['name']} moves its {what}: {reason}"
                await self._client.emit_event(owner, "Normal", "Evacuating", message)
            case _:
                assert_never(step)
        self._metrics.changes.labels(type(step).__name__, kind).inc()
        return fault

    async def _apply(self, item: Object) -> Fault | None:
        """Write an object, unless the name is taken.

        Watches see only objects with the operator's label. An object that they do not show may still exist, and
        server-side apply would take it from its owner: so the API server is asked first.
        """
        kind, name = ref(item)
        if self._client.observe().get(kind, name) is None:
            stored = await self._client.get(kind, name)
            if stored is not None and not is_ours(stored, item):
                if label(stored, "app.kubernetes.io/managed-by") != names.MANAGER:
                    return Fault(TAKEN, f"{kind}/{name} exists and is not managed by the operator")
                self._client.note_write(stored)  # its owner was deleted: the garbage collector will remove it
                return None
        await self._client.apply(item)
        return None

    async def _delete(self, item: Object, grace_seconds: int | None = None) -> None:
        if not await self._client.delete(item, grace_seconds):
            self._wake()  # the plan was made from an object that no longer exists

    async def _emit_once(self, key: Ref, fault: Fault) -> None:
        """Write an Event about a fault, unless the last one about this object said the same."""
        if self._emitted.get(key) != fault.message:
            self._emitted[key] = fault.message
            about = self._client.observe().objects.get(key) or self._object_of_broker(status.broker_of(key))
            await self._client.emit_event(about, "Warning", fault.reason, fault.message)


def _foreign_objects(step: ExecutableStep | NameTaken, faults: Mapping[Ref, Fault]) -> str:
    """What the pods of a step would use although its name is taken; empty if nothing."""
    match step:
        case Apply(item):
            used = list(used_objects(item))
        case Restart(broker, pod):
            used = [("Service", broker), *used_objects({"kind": "Pod", **pod})]
        case _:
            used = []
    taken = ("/".join(key) for key in used if key in faults and faults[key].reason == TAKEN)
    return ", ".join(sorted(taken))


def _retry_key(step: ReconcileStep) -> RetryKey:
    """What is retried with pauses of its own: one sort of step for one object."""
    kind, name = subject_of(step)
    return f"{type(step).__name__} {kind}", name


def _desired_hash(step: ReconcileStep) -> str:
    """What a step would store: after an edit of the spec, a refused object is tried again without a pause."""
    return annotation(step.item, names.DESIRED_HASH) or digest(step.item) if isinstance(step, Apply) else ""
