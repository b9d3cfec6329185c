"""One fleet, from its first object to its deletion, and what the operator uses in each phase."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from bench.operator import world
from bench.operator.kubelet import Kubelet
from bench.operator.process import OperatorProcess, Reading, quantile

from plimsoll.mediator.session_objects import is_over
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiNotFoundError

START_SECONDS, EFFECT_SECONDS, GONE_SECONDS, CROWD_SECONDS = 600.0, 120.0, 300.0, 900.0
REST_SECONDS = 20.0
"""Enough for the work that follows a start to end: keys are distributed to pods, endpoints are created."""
QUOTAS, LOST_OBJECTS, WINDOWS, SESSIONS, CROWD = 3, 20, 10, 3, 1000
CREATED_AT_ONCE = 20
Row = dict[str, Any]


class Trial:
    """One fleet in one namespace, and its operator."""

    def __init__(self, api: Api, namespace: str, count: int, operator: OperatorProcess) -> None:
        self.api, self.namespace, self.count, self.operator = api, namespace, count, operator

    # -- the phases

    async def start(self) -> Row:
        """From the first object until the fleet is ready. The operator runs already, as after `helm install`."""
        before, begun = await self.operator.read(), time.monotonic()
        for item in world.objects(self.count):
            await self.api.apply({**item, "metadata": {**item["metadata"], "namespace": self.namespace}})
        await self._until(self._is_ready, START_SECONDS, "the fleet to be ready")
        seconds = time.monotonic() - begun
        return {"seconds": seconds, **_figures((await self.operator.read()).since(before), seconds)}

    async def settled(self, seconds: float) -> Row:
        """No specification changes; loads change all the time."""
        await asyncio.sleep(REST_SECONDS)
        before, lag = await self.operator.read(), 0.0
        begun = time.monotonic()
        while (left := begun + seconds - time.monotonic()) > 0:
            await asyncio.sleep(min(5.0, left))
            lag = max(lag, (await self.operator.read()).lag_seconds)
        found = (await self.operator.read()).since(before)
        return {**_figures(found, time.monotonic() - begun), "lag_ms": 1000 * lag}

    async def changed(self) -> Row:
        """The time from a change to its effect."""
        before, begun = await self.operator.read(), time.monotonic()
        lost = [await self._lost_object(number) for number in range(LOST_OBJECTS)]
        windows = [await self._window(number) for number in range(WINDOWS)]
        quotas = [await self._quota(number) for number in range(QUOTAS)]
        seconds = time.monotonic() - begun
        return {
            **_figures((await self.operator.read()).since(before), seconds),
            "lost_object_ms": _spread(lost),
            "status_ms": _spread(windows),
            "keys_written_ms": _spread([first for first, _ in quotas]),
            "pods_told_ms": _spread([last for _, last in quotas]),
        }

    async def sessions(self) -> Row:
        """Drain edges by sessions, one after the other."""
        taken = []
        before = await self.operator.read()
        for number in range(SESSIONS):
            begun = time.monotonic()
            item = world.drain(f"drain-{number}", world.edge(0, number))
            await self.api.create({**item, "metadata": {**item["metadata"], "namespace": self.namespace}})
            await self._until(lambda name=f"drain-{number}": self._is_over(name), EFFECT_SECONDS, "a session's end")
            found = await self.api.get("LoadBalancingSession", self.namespace, f"drain-{number}")
            assert found["status"]["phase"] == "Succeeded", found["status"]
            taken.append(time.monotonic() - begun)
        figures = _figures((await self.operator.read()).since(before), sum(taken))
        return {**figures, "ms": _spread(taken), "writes_each": figures["writes"] / SESSIONS}

    async def crowded(self) -> Row:
        """Create 1,000 sessions by triggers at once, then one by a user, and scale an edge away, which evacuates it."""
        name = world.cluster(0)
        # The windows that the changes have left would have sessions of triggers refused.
        await self.api.patch("BrokerCluster", self.namespace, name, {"spec": {"maintenanceWindows": []}})
        await asyncio.sleep(REST_SECONDS)
        before, begun = await self.operator.read(), time.monotonic()
        for first in range(0, CROWD, CREATED_AT_ONCE):
            numbers = range(first, first + CREATED_AT_ONCE)
            await asyncio.gather(*(self._create(world.by_trigger(f"crowd-{n}", world.edge(0, n % 3))) for n in numbers))
        created = time.monotonic() - begun
        alone = asyncio.create_task(self._user_session())
        evacuation = asyncio.create_task(self._scaled_away())
        taken = {"created_seconds": created, "user_seconds": await alone, "evacuated_seconds": await evacuation}
        await self._until(self._crowd_is_over, CROWD_SECONDS, "the end of all sessions", every=2.0)
        seconds = time.monotonic() - begun
        found = await self.api.list("LoadBalancingSession", self.namespace)
        ends = Counter(
            f"{one['status']['phase']} {one['status'].get('reason', '')}".strip()
            for one in found if one["metadata"]["name"].startswith("crowd-")
        )  # fmt: skip
        reading = await self.operator.read()
        figures = _figures(reading.since(before), seconds)
        return {**figures, **taken, "all_seconds": seconds, "ends": dict(ends), "lag_ms": 1000 * reading.lag_seconds}

    async def _create(self, item: world.Object) -> None:
        await self.api.create({**item, "metadata": {**item["metadata"], "namespace": self.namespace}})

    async def _user_session(self) -> float:
        await self._create(world.drain("user", world.edge(0, 4)))
        return await self._until(lambda: self._is_over("user"), CROWD_SECONDS, "the user's session", every=0.2)

    async def _scaled_away(self) -> float:
        """Remove the last edge of the first cluster; seconds until the session that evacuates it is over."""
        last = world.BROKERS_PER_CLUSTER - 2
        cluster = await self.api.get("BrokerCluster", self.namespace, world.cluster(0))
        group = {**cluster["spec"]["edges"][0], "replicas": last}
        await self.api.patch("BrokerCluster", self.namespace, world.cluster(0), {"spec": {"edges": [group]}})

        async def evacuated() -> bool:
            found = await self.api.list("LoadBalancingSession", self.namespace)
            of = [one for one in found if one["metadata"]["name"].startswith(f"evacuate-{world.edge(0, last)}-")]
            return bool(of) and all(map(is_over, of))

        return await self._until(evacuated, CROWD_SECONDS, "the edge to be evacuated", every=0.5)

    async def _crowd_is_over(self) -> bool:
        return all(is_over(one) for one in await self.api.list("LoadBalancingSession", self.namespace))

    async def restarted(self) -> Row:
        """Kill the operator, and start another one that takes over the fleet."""
        before = (await self._fleet())["mediatorEpoch"]
        self.operator.stop(kill=True)
        begun = time.monotonic()
        self.operator.start()

        async def mediates() -> bool:
            return (await self._fleet())["mediatorEpoch"] > before

        await self._until(mediates, EFFECT_SECONDS, "another mediator")
        seconds = time.monotonic() - begun
        await asyncio.sleep(REST_SECONDS)
        found = await self.operator.read()
        return {"seconds": seconds, **_figures(found, seconds), "highest_mb": self.operator.highest_mb}

    # -- changes and their effects

    async def _lost_object(self, number: int) -> float:
        """Delete a ConfigMap; seconds until it is back."""
        broker = list(world.brokers(self.count))[(7 * number) % self.count]
        name = names.config_of(broker)
        uid = (await self.api.get("ConfigMap", self.namespace, name))["metadata"]["uid"]
        await self.api.delete("ConfigMap", self.namespace, name)

        async def back() -> bool:
            with contextlib.suppress(ApiNotFoundError):  # not back yet
                found: str = (await self.api.get("ConfigMap", self.namespace, name))["metadata"]["uid"]
                return found != uid
            return False

        return await self._until(back, EFFECT_SECONDS, f"{name} to be back")

    async def _window(self, number: int) -> float:
        """Change a cluster's specification; seconds until its status is of that generation."""
        name = world.cluster(number % (self.count // world.BROKERS_PER_CLUSTER))
        window = {"name": "night", "schedule": f"{number} 2 * * *", "duration": "2h"}
        changed = await self.api.patch(
            "BrokerCluster", self.namespace, name, {"spec": {"maintenanceWindows": [window]}}
        )

        async def seen() -> bool:
            status = (await self.api.get("BrokerCluster", self.namespace, name))["status"]
            generation: int = changed["metadata"]["generation"]
            return bool(status["observedGeneration"] >= generation)

        return await self._until(seen, EFFECT_SECONDS, f"the status of {name}")

    async def _quota(self, number: int) -> tuple[float, float]:
        """Change a client's quota; seconds until the authorized keys are written, and until all pods have the hash."""
        old = await self.api.get("ConfigMap", self.namespace, names.AUTHORIZED_KEYS)
        begun = time.monotonic()
        spec = {"spec": world.fleet(2000 + number)}
        await self.api.patch("BrokerFleet", self.namespace, world.FLEET, spec)

        async def written() -> bool:
            found = await self.api.get("ConfigMap", self.namespace, names.AUTHORIZED_KEYS)
            return bool(found["data"] != old["data"])

        async def distributed() -> bool:
            pods = await self.api.list("Pod", self.namespace, names.BROKER)
            return {pod["metadata"]["annotations"].get(names.KEYS_HASH) for pod in pods} - hashes != set() and len(
                {pod["metadata"]["annotations"].get(names.KEYS_HASH) for pod in pods}
            ) == 1

        pods = await self.api.list("Pod", self.namespace, names.BROKER)
        hashes = {pod["metadata"]["annotations"].get(names.KEYS_HASH) for pod in pods}
        await self._until(written, EFFECT_SECONDS, "the authorized keys")
        first = time.monotonic() - begun
        await self._until(distributed, EFFECT_SECONDS, "all pods to have the keys", every=0.2)
        return first, time.monotonic() - begun

    # -- reading the fleet

    async def _fleet(self) -> world.Object:
        found: world.Object = (await self.api.get("BrokerFleet", self.namespace, world.FLEET)).get("status", {})
        return found

    async def _is_ready(self) -> bool:
        status = await self._fleet()
        ready = {each["type"]: each["status"] for each in status.get("conditions", [])}.get("Ready")
        return ready == "True" and status["brokers"] == {"desired": self.count, "ready": self.count}

    async def _is_over(self, session: str) -> bool:
        return is_over(await self.api.get("LoadBalancingSession", self.namespace, session))

    async def _until(
        self, holds: Callable[[], Awaitable[bool]], seconds: float, what: str, every: float = 0.02
    ) -> float:
        begun = time.monotonic()
        while not await holds():
            if time.monotonic() - begun > seconds:
                raise TimeoutError(f"waited {seconds:g} s for {what}: {await self._fleet()}")
            await asyncio.sleep(every if time.monotonic() - begun < 10 else 1.0)
        return time.monotonic() - begun


def _figures(found: Reading, seconds: float) -> Row:
    """A reading over some seconds, as figures for the report."""
    by = {f"{verb} {resource}": count for (verb, resource), count in sorted(found.requests.items())}
    looks = int(max(found.looks.values(), default=0))
    return {
        "writes": found.writes, "writes_per_second": found.writes / seconds,
        "reads": found.reads, "reads_per_second": found.reads / seconds, "refused": found.refused,
        "cpu": found.cpu_seconds / seconds, "memory_mb": found.memory_mb, "looks": looks,
        "look_ms": {"p50": 1000 * quantile(found.looks, 0.5), "p99": 1000 * quantile(found.looks, 0.99)},
        "round_ms": {"p50": 1000 * quantile(found.rounds, 0.5), "p99": 1000 * quantile(found.rounds, 0.99)},
        "requests": by,
    }  # fmt: skip


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """The median and the maximum, in milliseconds: there are too few values for other quantiles."""
    ordered = sorted(seconds)
    return {"p50": 1000 * ordered[len(ordered) // 2], "max": 1000 * ordered[-1]}


# ---------------------------------------------------------------- one trial


async def measure(count: int, seconds: float, address: str, folder: Path) -> Row:
    """All phases for a fleet of `count` brokers; its namespace is deleted at the end."""
    async with await Api.connect() as api, _namespace(api) as namespace:
        operator = OperatorProcess(namespace, folder / f"operator-{count}.log")
        async with Kubelet(api, namespace, address, count):
            operator.start()
            try:
                await _answers(operator)
                trial = Trial(api, namespace, count, operator)
                row: Row = {
                    "brokers": count,
                    "idle_mb": (await operator.read()).memory_mb,
                    "start": await trial.start(),
                }
                row["settled"] = await trial.settled(
                    max(seconds, 1.1 * count)
                )  # load figures of each broker at least once
                row["changed"] = await trial.changed()
                row["sessions"] = await trial.sessions()
                row["highest_mb"] = operator.highest_mb
                row["anew"] = await trial.restarted()
                row["crowded"] = await trial.crowded()
                return row
            finally:
                operator.stop(kill=True)


async def _answers(operator: OperatorProcess) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            await operator.read()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def _namespace(api: Api) -> AsyncIterator[str]:
    name = f"plimsoll-bench-{secrets.token_hex(4)}"
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        await _gone(api, name)


async def _gone(api: Api, name: str) -> None:
    """Delete the namespace. No operator evacuates its edges, so their finalizers are removed first."""
    for edge in await api.list("EdgeBroker", name, retry=True):
        with contextlib.suppress(ApiNotFoundError):  # it has gone meanwhile
            await api.patch("EdgeBroker", name, edge["metadata"]["name"], {"metadata": {"finalizers": None}})
    await api.delete("Namespace", "", name, retry=True)
    deadline = time.monotonic() + GONE_SECONDS
    while time.monotonic() < deadline:
        try:
            await api.get("Namespace", "", name, retry=True)
        except ApiNotFoundError:
            return  # it is what was waited for
        await asyncio.sleep(1.0)
    print(f"namespace {name} is still being deleted after {GONE_SECONDS:g} s")
