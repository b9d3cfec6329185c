"""Writes the status that a kubelet would: every pod of the fleet runs at one address, where its stand-in answers.

The StatefulSet controller creates the pods, and no node matches them, so nothing is started. Kubernetes itself derives
endpoints and counts of ready replicas from the status that is written here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import subprocess
import sys
from datetime import UTC, datetime

from bench.operator import world

from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiNotFoundError
from plimsoll.operator.reconcile.observed import condition

LOOK_SECONDS = 0.5
AT_ONCE = 8


class Kubelet:
    """Starts the stand-in of each pod's broker and marks the pod as ready, within an `async with`."""

    def __init__(self, api: Api, namespace: str, address: str, count: int) -> None:
        self._api, self._namespace, self._address = api, namespace, address
        self._ports = world.brokers(count)
        self._started: set[str] = set()
        self._at_once = asyncio.Semaphore(AT_ONCE)
        command = [sys.executable, "-m", "bench.operator.brokers", address]
        self._brokers = subprocess.Popen(command, stdin=subprocess.PIPE)

    async def __aenter__(self) -> Kubelet:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        found = await asyncio.gather(self._running, return_exceptions=True)  # raised below, once brokers have ended
        self._brokers.kill()
        self._brokers.wait()
        for error in found:
            if isinstance(error, Exception):
                raise error

    async def _run(self) -> None:
        while True:
            pods = await self._api.list("Pod", self._namespace, names.BROKER, retry=True)
            await asyncio.gather(*(self._start(pod) for pod in pods if not _runs(pod)))
            await asyncio.sleep(LOOK_SECONDS)

    async def _start(self, pod: world.Object) -> None:
        async with self._at_once:
            broker = pod["metadata"]["labels"][names.BROKER]
            if broker not in self._started:
                self._started.add(broker)
                await self._stand_in(broker)
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            status = {
                **pod["status"], "phase": "Running", "podIP": self._address, "podIPs": [{"ip": self._address}],
                "conditions": [
                    {"type": type_, "status": "True", "lastTransitionTime": now}
                    for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
                ],
                "containerStatuses": [{
                    "name": names.CONTAINER, "image": "none", "imageID": "", "restartCount": 0, "ready": True,
                    "started": True, "state": {"running": {"startedAt": now}},
                }],
            }  # fmt: skip
            with contextlib.suppress(ApiConflictError, ApiNotFoundError):  # the next round tries again
                await self._api.replace_status({**pod, "status": status})

    async def _stand_in(self, broker: str) -> None:
        secret = await self._api.get("Secret", self._namespace, names.keys_of(broker))
        started = {
            "name": broker, "port": self._ports[broker],
            "secret": base64.b64decode(secret["data"][names.SECRET_FILE]).decode().strip(),
        }  # fmt: skip
        if broker.endswith("-head"):
            own = broker.removesuffix("head")
            started["edges"] = [name for name in self._ports if name.startswith(own) and name != broker]
        assert self._brokers.stdin is not None
        self._brokers.stdin.write(json.dumps(started).encode() + b"\n")
        self._brokers.stdin.flush()


def _runs(pod: world.Object) -> bool:
    """Whether its status says so: the scheduler, which tries again every five minutes, takes PodScheduled back."""
    return all(condition(pod, type_).get("status") == "True" for type_ in ("PodScheduled", "Ready"))
