"""The heads with a standby of one fleet: the operator asks both processes of each, and promotes, by what is stored.

It depends neither on the lease of the mediator nor on the rest of a reconciliation: a change is made by compare-and-set
in the status of the cluster, so two operators at once do no harm, and one that has just started can promote at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from plimsoll.core.config import PeerBroker
from plimsoll.core.head.standby.leadership import HeadLeadership, LeadershipConflictError, stored_leadership
from plimsoll.mediator.control_plane import ControlPlane, LeadershipReceived, MediatorKeyPair, UndialledBrokerError
from plimsoll.mediator.head_pair import LeadershipChange, PairDecision
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import annotation
from plimsoll.operator.pairs.leadership_store import (
    CLUSTER_KIND,
    LeadershipDroppedError,
    change_leadership,
)
from plimsoll.operator.pairs.pair_views import WatchedProcess
from plimsoll.operator.pairs.requests import PairRequest
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.observed import ObservedObjects
from plimsoll.operator.tasks import cancel_tasks

log = logging.getLogger(__name__)

ROUND_SECONDS = 0.05
ASK_SECONDS = 0.25
LOOK_SECONDS = 1.0
"""Objects are looked at when something has changed, and this often: reading those of a large fleet takes time."""
PAUSE_SECONDS = 1.0
"""After a change that could not be stored."""
END_SECONDS = 1
"""For a pod that does not answer. Its kubelet has to confirm its end: a disk belongs to one pod at a time."""


@dataclass
class KeptPair:
    """One head. `stored`: as it was last written or read here."""

    request: PairRequest
    processes: tuple[WatchedProcess, WatchedProcess] = field(
        default_factory=lambda: (WatchedProcess(), WatchedProcess())
    )
    asked_at: float = 0.0
    due_at: float = 0.0

    def decision(self, stored: HeadLeadership, now: float) -> PairDecision:
        first, second = (each.view(now) for each in self.processes)
        asked = self.request
        return PairDecision(stored, (first, second), asked.wants, asked.hands_over, asked.has_disk)


class HeadPairs:
    """`lead_to`: have the Service of a head lead to the pod of this number. `wake`: asks for a reconciliation."""

    def __init__(
        self,
        client: FleetClient,
        api: Api,
        lead_to: Callable[[str, int], Awaitable[None]],
        wake: Callable[[], None],
    ) -> None:
        self._client, self._api, self._lead_to, self._wake = client, api, lead_to, wake
        self._pairs: dict[str, KeptPair] = {}
        self._keys: MediatorKeyPair | None = None
        self._control: ControlPlane | None = None
        self._task: asyncio.Task[None] | None = None
        self._observed = ObservedObjects({})
        self._look_at = 0.0
        self._undialled: set[PeerBroker] = set()

    def note_change(self) -> None:
        """Look at the objects again: something in the namespace has changed."""
        self._look_at = 0.0

    def leaders(self) -> Mapping[str, Mapping[str, object]]:
        """By head, the last answer of the process that leads, if it has answered as such."""
        return {
            name: each.status for name, pair in self._pairs.items() for each in pair.processes
            if each.status.get("role") == "head"
        }  # fmt: skip

    # -- life cycle

    async def update(self, asked: Iterable[PairRequest], key_pair: MediatorKeyPair | None) -> None:
        """Keep these heads. `key_pair`: of the mediator; None on plain links."""
        if key_pair != self._keys and self._task is not None:
            await self.stop()
        self._keys = key_pair
        requests = {request.head: request for request in asked}
        for name, request in requests.items():
            if name in self._pairs:
                self._pairs[name].request = request
            else:
                self._pairs[name] = KeptPair(request)
        for name in self._pairs.keys() - requests.keys():
            del self._pairs[name]
            if self._control is not None:
                for number in (0, 1):
                    self._control.hang_up(names.process_of(name, number))
        if self._pairs and self._task is None:
            self._control = ControlPlane(names.MEDIATOR, key_pair, 0)  # terms are stored, so it needs no epoch
            self._task = asyncio.create_task(self._run(self._control), name=f"heads of {self._client.namespace}")
        elif not self._pairs:
            await self.stop()

    def check(self) -> None:
        """Raise the fault that has ended the task, if one has."""
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            self._close()
            task.result()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel_tasks(task)
        self._close()

    def _close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        for pair in self._pairs.values():
            for each in pair.processes:
                each.pod_uid = ""  # to be dialled again

    # -- rounds

    async def _run(self, control: ControlPlane) -> None:
        while True:
            for event in control.poll(0):
                if isinstance(event, LeadershipReceived):
                    self._take(event)
            if monotonic() >= self._look_at:
                self._look_at = monotonic() + LOOK_SECONDS
                self._observed = self._client.observe()
            for pair in list(self._pairs.values()):
                await self._round(pair, control)
            await asyncio.sleep(ROUND_SECONDS)

    def _take(self, event: LeadershipReceived) -> None:
        head, _, number = event.broker.rpartition(".")
        pair = self._pairs.get(head)
        if pair is not None:
            pair.processes[int(number)].take(event.status, monotonic())

    async def _round(self, pair: KeptPair, control: ControlPlane) -> None:
        now, request = monotonic(), pair.request
        cluster = self._observed.get(CLUSTER_KIND, request.cluster)
        if cluster is None:
            return
        for number, process in enumerate(pair.processes):
            self._look(request, number, process, control, now)
        stored = stored_leadership(cluster.get("status", {}))
        decision = pair.decision(stored, now)
        is_urgent = bool(request.hands_over) or decision.leader.is_leaving or not decision.leads
        if now - pair.asked_at >= (ROUND_SECONDS if is_urgent else ASK_SECONDS):
            pair.asked_at = now
            for number in (0, 1):
                control.ask_leadership(names.process_of(request.head, number))
        if (change := decision.change()) is not None and now >= pair.due_at:
            if not await self._store(pair, cluster, stored, change):
                return
            decision = pair.decision(change.after, monotonic())
        for number, record in decision.commands():
            control.send(names.process_of(request.head, number), record)

    def _look(
        self, request: PairRequest, number: int, process: WatchedProcess, control: ControlPlane, now: float
    ) -> None:
        """Look at the pod of a process, and connect to it if it is another one."""
        pod = self._observed.get("Pod", names.pod_of(request.head, number))
        name = names.process_of(request.head, number)
        if process.look(pod, now):
            control.hang_up(name)
        address = "" if pod is None else str(pod.get("status", {}).get("podIP", ""))
        if pod is not None and address:
            host = f"[{address}]" if ":" in address else address
            key = annotation(pod, names.KEY) if request.keyed else ""
            peer = PeerBroker(name=name, control=f"tcp://{host}:{names.PAIR_PORT}", public_key=key)
            try:
                control.dial(peer, "head")
            except UndialledBrokerError as error:  # one pod keeps no other waiting
                if peer not in self._undialled:
                    log.error("%s: %s", self._client.namespace, error)
                self._undialled.add(peer)

    async def _store(self, pair: KeptPair, cluster: Object, stored: HeadLeadership, change: LeadershipChange) -> bool:
        """Store a change, and make what follows from it known; False if it was not stored: it is decided again."""
        request = pair.request
        try:
            written = await change_leadership(self._api, self._client.namespace, request.cluster, stored, change.after)
        except LeadershipConflictError as error:
            log.warning("%s: %s", self._client.namespace, error)
            self._client.forget_write((CLUSTER_KIND, request.cluster))
            self.note_change()
            pair.due_at = monotonic() + PAUSE_SECONDS
            return False
        except (ApiError, ApiConflictError, ApiNotFoundError, LeadershipDroppedError) as error:
            log.warning("%s: the leadership of %s was not stored: %s", self._client.namespace, request.head, error)
            pair.due_at = monotonic() + PAUSE_SECONDS
            return False
        self._client.note_write(written)
        self.note_change()
        self._wake()
        if change.after.leader != stored.leader:
            await self._lead_to(request.head, change.after.leader)
        if change.ends is not None:
            await self._end(request.head, change.ends)
        if change.event is not None:
            event = change.event
            log.info("%s: %s: %s: %s", self._client.namespace, request.head, event.reason, event.message)
            await self._client.emit_event(cluster, event.type, event.reason, event.message)
        return True

    async def _end(self, head: str, number: int) -> None:
        """End the pod of a process that is silent: its clients wait on their connections as long as those are open."""
        pod = self._observed.get("Pod", names.pod_of(head, number))
        try:
            if pod is not None:
                await self._client.delete(pod, grace_seconds=END_SECONDS)
        except (ApiError, ApiConflictError) as error:
            log.warning("%s: pod %d of %s was not deleted: %s", self._client.namespace, number, head, error)
