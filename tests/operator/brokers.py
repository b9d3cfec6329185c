"""Real brokers as processes of this machine, beside a fleet's objects at a real API server, for tests of mediators.

The test plays the reconciler: it starts and dials brokers, and shows them to the mediator. It reads sessions again and
again, in place of watches.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.operator.faults import eventually
from tests.ports import free_ports

from plimsoll.core import config as broker_config
from plimsoll.core.config import PeerBroker, Role
from plimsoll.core.spec import API_VERSION, Resources, SourceDocument, declared_brokers, parse
from plimsoll.core.spec.broker_config import BrokerEndpoints, broker_configs
from plimsoll.local.head_access import HeadAccess
from plimsoll.local.supervision.child_process import ChildProcess
from plimsoll.mediator import session_objects
from plimsoll.mediator.authorized_keys import KeyHolder, authorized_keys_text
from plimsoll.mediator.control_plane import ClusterEdges, MediatorKeyPair
from plimsoll.operator.api import Api
from plimsoll.operator.mediator.runner import FleetMediator
from plimsoll.operator.names import MEDIATOR
from plimsoll.operator.security.keys import Z85KeyPair, make_key_pair

HEAD, CLIENT = "east-head", "*"
FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: quotes}
spec: {timeScalePercent: 100}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges: []
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: a}
spec: {clusterRef: {name: east}, profile: small}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: b}
spec: {clusterRef: {name: east}, profile: small}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: c}
spec: {clusterRef: {name: east}, profile: small, cordoned: true}
"""


class Brokers:
    """The brokers of `FLEET`, in a `with`, under CURVE as on Kubernetes; they outlive the mediators of a test."""

    def __init__(self, folder: Path, fleet: str = FLEET) -> None:
        self.objects = list(yaml.safe_load_all(fleet))
        self.resources: Resources = parse(SourceDocument(item, "FLEET") for item in self.objects)
        names = [place.name for place in declared_brokers(self.resources)]
        free = iter(free_ports(2 * len(names)))
        self._folder = folder
        self._pairs = {name: self._pair(name) for name in (*names, MEDIATOR, CLIENT)}
        authorized = self.authorize()
        addresses = {
            name: BrokerEndpoints(
                f"tcp://127.0.0.1:{next(free)}", f"tcp://127.0.0.1:{next(free)}", self._pairs[name].public,
                str(self._secret(name)), str(authorized),
            )
            for name in names
        }  # fmt: skip
        self.configs = {one.name: one for one in broker_configs(self.resources, addresses)}
        self.processes: dict[str, ChildProcess] = {}
        self.epoch = 0
        """The highest epoch that heads know: they outlive the fleets of one test."""

    def __enter__(self) -> Brokers:
        for name in self.configs:
            self.start(name)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()

    def _secret(self, name: str) -> Path:
        return self._folder / f"{'clients' if name == CLIENT else name}.key"

    def _pair(self, name: str) -> Z85KeyPair:
        """A new pair, whose secret key is in a file that no other user may read."""
        pair, file = make_key_pair(), self._secret(name)
        file.touch(0o600)
        file.write_text(pair.secret)
        return pair

    def authorize(self, *heads: str, head: str = HEAD) -> Path:
        """Write the authorized keys, with these for a head or else its own. All brokers read them every second."""
        roles: dict[str, Any] = {place.name: place.role for place in declared_brokers(self.resources)}
        roles |= {MEDIATOR: "mediator", CLIENT: "client"}
        keys = {name: (pair.public,) for name, pair in self._pairs.items()} | ({head: heads} if heads else {})
        file = self._folder / "authorized_keys"
        (new := self._folder / "authorized_keys.new").write_text(
            authorized_keys_text(KeyHolder(name, roles[name], keys[name]) for name in roles)
        )
        new.replace(file)
        return file

    def rekey(self, head: str, pair: Z85KeyPair) -> None:
        """Give a head another pair, as a kubelet does when its Secret has changed."""
        (new := self._folder / "new.key").touch(0o600)
        new.write_text(pair.secret)
        new.replace(self._secret(head))
        self._pairs[head] = pair

    def said(self, name: str) -> str:
        """What a broker has logged."""
        return (self._folder / f"{name}.log").read_text()

    def public_key(self, name: str) -> str:
        return self._pairs[name].public

    @property
    def curve(self) -> MediatorKeyPair:
        """The mediator's keys."""
        return MediatorKeyPair(self._pairs[MEDIATOR].public, self._pairs[MEDIATOR].secret)

    def start(self, name: str) -> None:
        file = self._folder / f"{name}.json"
        file.write_bytes(broker_config.encode(self.configs[name]))
        command = (sys.executable, "-m", "plimsoll.broker", "--config", str(file), "--parent-pid", str(os.getpid()))
        self.processes[name] = ChildProcess(command, self._folder / f"{name}.log")

    @property
    def peers(self) -> dict[str, tuple[PeerBroker, Role]]:
        return {
            one.name: (
                PeerBroker(name=one.name, data=one.data, control=one.control, public_key=self._pairs[one.name].public),
                one.role,
            )
            for one in self.configs.values()
        }

    @property
    def members(self) -> dict[str, ClusterEdges]:
        edges = tuple(name for name, (_, role) in self.peers.items() if role == "edge")
        cordoned = tuple(
            item["metadata"]["name"] for item in self.objects if item["spec"].get("cordoned") and item["kind"][0] == "E"
        )
        return {HEAD: ClusterEdges(edges, cordoned)}

    @property
    def entry(self) -> HeadAccess:
        return self.way_to(HEAD)

    def way_to(self, head: str) -> HeadAccess:
        """How applications connect to a head."""
        cluster, endpoint = self.configs[head].cluster, self.configs[head].advertised
        return HeadAccess(cluster, endpoint, self._pairs[head].public, self._secret(CLIENT))


def asked(name: str, **spec: Any) -> dict[str, Any]:
    """A session as users write it."""
    given = {"scope": "Local", "source": {"name": "a"}, "mode": "Execute", "deadline": "2m", **spec}
    return {"apiVersion": API_VERSION, "kind": session_objects.SESSION_KIND, "metadata": {"name": name}, "spec": given}


def condition(item: dict[str, Any], type_: str) -> dict[str, Any]:
    """A condition as `kubectl wait` reads it: of the present generation, or Unknown."""
    for one in item.get("status", {}).get("conditions", []):
        if one["type"] == type_ and one["observedGeneration"] >= item["metadata"]["generation"]:
            return dict(one)
    return {"status": "Unknown", "reason": "Stale"}


class Fleet:
    """The objects of a fleet in a namespace, as a test sees them: `api` is the test's own way."""

    def __init__(self, api: Api, namespace: str, brokers: Brokers) -> None:
        self.api, self.namespace, self.brokers = api, namespace, brokers
        self.spec = brokers.resources.fleet.spec

    async def make(self) -> None:
        for item in self.brokers.objects:
            await self.api.create({**item, "metadata": {**item["metadata"], "namespace": self.namespace}})
        await self.api.set_status("BrokerFleet", self.namespace, "quotes", lambda _: {"mediatorEpoch": self.epoch})

    @property
    def epoch(self) -> int:
        return self.brokers.epoch

    async def ask(self, name: str, **spec: Any) -> dict[str, Any]:
        """Make a session."""
        item = asked(name, **spec)
        return await self.api.create({**item, "metadata": {**item["metadata"], "namespace": self.namespace}})

    async def get(self, name: str) -> dict[str, Any]:
        return await self.api.get(session_objects.SESSION_KIND, self.namespace, name)

    async def change(self, name: str, **spec: Any) -> dict[str, Any]:
        return await self.api.patch(session_objects.SESSION_KIND, self.namespace, name, {"spec": spec})

    async def until(self, name: str, what: str, check: Any, seconds: float = 300.0) -> dict[str, Any]:
        """A session's object once a condition holds for it."""
        found: dict[str, Any] = {}

        async def look() -> bool:
            found.clear()
            found.update(await self.get(name))
            return bool(check(found))

        try:
            await eventually(look, what, seconds)
        except AssertionError as error:
            status = {key: value for key, value in found.get("status", {}).items() if key != "record"}
            raise AssertionError(f"{name}: {error}; it is {status}") from None
        return dict(found)

    async def ended(self, name: str, seconds: float = 300.0) -> dict[str, Any]:
        return await self.until(
            name, "its end", lambda item: condition(item, "Succeeded")["status"] != "Unknown", seconds
        )

    async def in_phase(self, name: str, *phases: str) -> dict[str, Any]:
        return await self.until(name, f"{phases}", lambda item: item.get("status", {}).get("phase") in phases)


class Life:
    """A mediator and its watch, as tasks: in an `async with`. `watch_api` is the client of the watch."""

    def __init__(self, fleet: Fleet, api: Api, lease_seconds: float = 0.0) -> None:
        self.fleet = fleet
        self.mediating = FleetMediator(
            api, fleet.namespace, "quotes", fleet.brokers.curve, fleet.spec, lease_seconds=lease_seconds
        )
        self._known: dict[str, dict[str, Any]] = {}

    async def __aenter__(self) -> Life:
        self.mediating.brokers.update_peers(self.fleet.brokers.peers, self.fleet.brokers.members)
        self.began_at = time.monotonic()
        self.running = asyncio.create_task(self.mediating.run())
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self.running, self._watching):
            task.cancel()
        self.fleet.brokers.epoch = max(self.fleet.brokers.epoch, self.mediating.epoch)
        found = await asyncio.gather(self.running, self._watching, return_exceptions=True)  # raised below
        errors = [one for one in found if isinstance(one, Exception)]
        if errors and not self.expected:
            raise errors[0]

    expected = False
    """Whether the test expects it to end by an error."""

    async def _watch(self) -> None:
        """Poll; the API server may be away."""
        while True:
            api, namespace = self.fleet.api, self.fleet.namespace
            items = {
                item["metadata"]["uid"]: item
                for item in await api.list(session_objects.SESSION_KIND, namespace, retry=True)
            }
            for item in _news(self._known, items):
                self.mediating.session_changed("MODIFIED", item)
            for uid in self._known.keys() - items.keys():
                self.mediating.session_changed("DELETED", self._known[uid])
            self._known = items
            shown = [item for kind in ("BrokerFleet", "BrokerCluster", "EdgeBroker", "HardwareProfile")
                     for item in await api.list(kind, namespace, retry=True)]  # fmt: skip
            self.mediating.update_objects(shown)
            await asyncio.sleep(0.15)  # in place of a watch, it lists at this interval


def _news(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for uid, item in new.items():
        if uid not in old or old[uid]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            yield item
