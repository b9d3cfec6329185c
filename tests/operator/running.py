"""An operator as a process of this machine, the fleet that it serves, and applications in a pod beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from tests.images import image
from tests.operator import kube

from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiNotFoundError

TRAFFIC = (Path(__file__).parent / "traffic.py").read_text()
Object = dict[str, Any]

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: stocks}
spec:
  security:
    clients: [{name: publisher}, {name: subscriber}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {cpu: 500m, memory: 128Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: large}
spec: {cpu: 600m, memory: 160Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges:
  - {name: edge, profile: small, replicas: 3}
"""


class Running:
    """One operator, one namespace."""

    def __init__(self, api: Api, namespace: str, log: Path) -> None:
        self.api, self.namespace, self._log = api, namespace, log
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    # -- the operator

    def start(self, **settings: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        environment = {
            **os.environ, "PLIMSOLL_NAMESPACES": self.namespace, "PLIMSOLL_HTTP_PORT": str(self.port),
            "PLIMSOLL_BROKER_IMAGE": image("broker"), "PLIMSOLL_COLLECTOR_IMAGE": image("collector"),
            "PLIMSOLL_CANARY": f"{self.namespace}/canary", **settings,
        }  # fmt: skip
        with self._log.open("ab") as output:
            command = [sys.executable, "-m", "plimsoll.operator"]
            self._process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(300)
            self._process = None

    def log(self) -> str:
        return self._log.read_text()

    # -- objects

    async def apply(self, text: str) -> None:
        for item in yaml.safe_load_all(text):
            item["metadata"]["namespace"] = self.namespace
            await self.api.apply(item)

    async def spec(self, kind: str, name: str, **changed: Any) -> None:
        await self.api.patch(kind, self.namespace, name, {"spec": changed})

    async def scale(self, replicas: int, profile: str = "small") -> None:
        await self.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": profile, "replicas": replicas}])

    async def get(self, kind: str, name: str) -> Object:
        return await self.api.get(kind, self.namespace, name)

    async def named(self, kind: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in await self.api.list(kind, self.namespace))

    async def until(self, what: str, holds: Callable[[], Any], seconds: float = 300.0) -> float:
        """Wait for a condition; returns how many seconds that took."""
        begun = time.monotonic()
        while not await holds():
            if time.monotonic() - begun > seconds:
                raise AssertionError(f"not within {seconds:g} s: {what}\n{await self._story()}\n{self.log()[-4000:]}")
            await asyncio.sleep(0.25)
        return time.monotonic() - begun

    async def _story(self) -> str:
        """The state of all brokers, to find out why a test waits."""
        lines = []
        for kind in ("BrokerCluster", "EdgeBroker", "LoadBalancingSession"):
            for item in await self.api.list(kind, self.namespace):
                said = [
                    f"{c['type']}={c['status']} {c['reason']}" for c in item.get("status", {}).get("conditions", [])
                ]
                lines.append(f"{kind}/{item['metadata']['name']}: {', '.join(said)}")
        for pod in await self.api.list("Pod", self.namespace):
            lines.append(f"Pod/{pod['metadata']['name']}: {pod['status'].get('conditions')}")
        return "\n".join(lines)

    async def condition(self, kind: str, name: str, type_: str = "Ready") -> str:
        """The status of a condition that holds for the present specification; empty without."""
        with contextlib.suppress(ApiNotFoundError):  # it is to come
            item = await self.get(kind, name)
            for each in item.get("status", {}).get("conditions", []):
                if each["type"] == type_ and each["observedGeneration"] == item["metadata"]["generation"]:
                    return str(each["status"])
        return ""

    async def is_ready(self, edges: int) -> bool:
        """Whether the cluster has this number of edges, and all of it is ready."""
        with contextlib.suppress(ApiNotFoundError):  # it does not exist yet
            item = await self.get("BrokerCluster", "east")
            counts = item.get("status", {}).get("edges", {})
            there = await self.named("EdgeBroker")
            ready = await self.condition("BrokerCluster", "east")
            return counts == {"desired": edges, "ready": edges} and len(there) == edges and ready == "True"
        return False

    async def ready(self, edges: int, seconds: float = 300.0) -> float:
        return await self.until(f"{edges} edges are ready", lambda: self.is_ready(edges), seconds)

    async def evict(self, pod: str) -> int:
        """Ask for an eviction, as `kubectl drain` does; the answer's code."""

        def ask() -> int:
            config.load_kube_config(kube.kubeconfig())
            body = client.V1Eviction(metadata=client.V1ObjectMeta(name=pod, namespace=self.namespace))
            try:
                client.CoreV1Api().create_namespaced_pod_eviction(pod, self.namespace, body)
            except client.ApiException as error:
                return int(error.status)
            return int(HTTPStatus.CREATED)

        return await asyncio.to_thread(ask)

    # -- applications

    async def traffic(self, count: int = 20, per_second: int = 50) -> None:
        """Start applications, and wait until all are subscribed."""
        labels = {"app": "traffic"}
        script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "traffic", "namespace": self.namespace},
                  "data": {"traffic.py": TRAFFIC}}  # fmt: skip
        await self.api.apply(script)
        stop = {"path": "stop", "fieldRef": {"fieldPath": "metadata.annotations['stop']"}}
        identities = ("publisher", "subscriber")
        spec = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001,
                                "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "traffic", "image": image("broker"), "imagePullPolicy": "IfNotPresent",
                "command": ["python", "/script/traffic.py", str(count), str(per_second)],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [
                    {"name": "script", "mountPath": "/script"}, {"name": "told", "mountPath": "/told"},
                    *({"name": each, "mountPath": f"/identities/{each}"} for each in identities),
                ],
            }],
            "volumes": [
                {"name": "script", "configMap": {"name": "traffic"}},
                {"name": "told", "downwardAPI": {"items": [stop]}},
                *({"name": each, "secret": {"secretName": f"plimsoll-client-{each}"}} for each in identities),
            ],
        }  # fmt: skip
        metadata = {"name": "traffic", "namespace": self.namespace, "labels": labels, "annotations": {"stop": ""}}
        await self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        await self.until("all have subscribed", lambda: self._said("begun"))

    async def verdict(self) -> dict[str, Any]:
        """End the publishing; returns its result."""
        await self.api.patch("Pod", self.namespace, "traffic", {"metadata": {"annotations": {"stop": "yes"}}})
        await self.until("everything has been judged", lambda: self._said("sent"), 300)
        verdict = dict(await self._said("sent") or {})
        if verdict["lost"]:
            await self._tell_of(verdict)
        return verdict

    async def _tell_of(self, verdict: Object) -> None:
        """Logs that may explain why something is missing."""
        print(json.dumps(verdict), await asyncio.to_thread(self._pod_log, "traffic"), sep="\n")
        for pod in await self.api.list("Pod", self.namespace, names.BROKER):
            name, address = pod["metadata"]["name"], pod["status"].get("podIP", "")
            print(f"--- {name} at {address}", await asyncio.to_thread(self._pod_log, name), sep="\n")
            print(await asyncio.to_thread(_metrics, address))

    async def _said(self, key: str) -> dict[str, Any] | None:
        text = await asyncio.to_thread(self._pod_log, "traffic")
        if "Traceback" in text:  # of the application, or of the thread that talks to brokers
            raise AssertionError(text[-3000:])
        for line in text.splitlines():
            if line.startswith("{") and key in (found := json.loads(line)):
                return dict(found)
        return None

    def _pod_log(self, pod: str) -> str:
        config.load_kube_config(kube.kubeconfig())
        try:
            return str(client.CoreV1Api().read_namespaced_pod_log(pod, self.namespace))
        except client.ApiException as error:
            if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):  # its container has not begun
                return ""
            raise


def _metrics(address: str) -> str:
    try:
        with urllib.request.urlopen(f"http://{address}:{names.HTTP_PORT}/metrics", timeout=60) as answer:
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


@contextlib.asynccontextmanager
async def running(folder: Path, text: str = FLEET) -> AsyncIterator[Running]:
    """An operator that serves a namespace of its own, in which pods have to be restricted."""
    async with await Api.connect(kube.kubeconfig()) as api:
        await kube.apply_definitions(api)
        async with kube.namespace(api) as namespace:
            labels = {"pod-security.kubernetes.io/enforce": "restricted"}
            await api.patch("Namespace", "", namespace, {"metadata": {"labels": labels}})
            one = Running(api, namespace, folder / "operator.log")
            one.start()
            try:
                if text:
                    await one.apply(text)
                yield one
                if one._process is not None:
                    for kind in ("BrokerCluster", "EdgeBroker", "BrokerFleet"):
                        for name in await one.named(kind):
                            with contextlib.suppress(ApiNotFoundError):  # it went with its owner
                                await api.delete(kind, namespace, name)
            finally:
                one.stop()
