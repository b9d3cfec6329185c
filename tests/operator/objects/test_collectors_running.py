"""Collectors as pods of a real cluster: restricted, with reports of all brokers, and sessions from key holders."""

from __future__ import annotations

import asyncio
import base64
import json
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.operator.running import FLEET, Running, running
from tests.telemetry.test_session_rows import session

from plimsoll.operator import names
from plimsoll.operator.objects.collectors import HTTP_PORT
from plimsoll.telemetry.client.outcome_sender import post_sessions
from plimsoll.telemetry.credentials import bearer_token
from plimsoll.telemetry.snapshot import TelemetrySnapshot, decode_snapshot

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.images("broker", "collector"),
    pytest.mark.timeout(1800),
]
TEXT = FLEET.replace("replicas: 3", "replicas: 2").replace(
    "spec:\n  security:", "spec:\n  telemetry: {collectors: {replicas: 2, interval: 1s}}\n  security:", 1
)


async def pods(fleet: Running) -> dict[str, str]:
    """The addresses of the collectors, reached from the machine that is the cluster's node."""
    found = await fleet.api.list("Pod", fleet.namespace, "app.kubernetes.io/component=collector")
    return {item["metadata"]["name"]: item["status"].get("podIP", "") for item in found}


def ask(address: str, path: str) -> bytes:
    with urlopen(f"http://{address}:{HTTP_PORT}{path}", timeout=60) as answer:
        said: bytes = answer.read()
    return said


async def folds(fleet: Running) -> list[TelemetrySnapshot]:
    found = []
    for address in (await pods(fleet)).values():
        try:
            found.append(decode_snapshot(await asyncio.to_thread(ask, address, "/v1/fold")))
        except OSError:  # it does not listen yet, or does no more
            return []
    return found


@pytest.mark.sweep
def test_collectors_hear_a_fleet_of_pods_and_come_back(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(2)

        async def all_seen() -> bool:
            found = await folds(fleet)
            return len(found) == 2 and sum(each.seen for each in found) == sum(each.expected for each in found) == 3

        print(f"all brokers seen after {await fleet.until('the fold has all brokers', all_seen):.1f} s more")
        assert all(found.counts.invalid == 0 for found in await folds(fleet))
        before = await pods(fleet)
        assert sorted(before) == ["stocks-telemetry-0", "stocks-telemetry-1"]

        secret = await fleet.get("Secret", names.COLLECTOR_KEYS)
        key = base64.b64decode(secret["data"]["secret.key"]).decode()
        where = before["stocks-telemetry-0"], HTTP_PORT
        assert await asyncio.to_thread(post_sessions, where, [session("a")], bearer_token(key)) == 0
        with pytest.raises(ValueError, match="401"):
            await asyncio.to_thread(post_sessions, where, [session("b")], bearer_token("another key"))
        figures = (await asyncio.to_thread(ask, where[0], "/metrics")).decode()
        assert 'plimsoll_telemetry_sessions_total{outcome="counted"} 1.0' in figures
        assert json.loads(await asyncio.to_thread(ask_refused, where[0]))["fault"] == "Missing"

        for name in before:
            await fleet.api.delete("Pod", fleet.namespace, name)
        await fleet.scale(3)
        await fleet.ready(3)

        async def more_seen() -> bool:
            found = await folds(fleet)
            return len(found) == 2 and sum(each.seen for each in found) == 4

        await fleet.until("new pods have heard the new edge, too", more_seen, 150)
        await fleet.spec("BrokerFleet", "stocks", telemetry={"collectors": {"replicas": 0}})

        async def gone() -> bool:
            return not await pods(fleet) and names.COLLECTOR_KEYS not in await fleet.named("Secret")

        await fleet.until("collectors have gone", gone)
        assert await fleet.is_ready(3)
        await fleet.spec("BrokerFleet", "stocks", telemetry={"collectors": {"replicas": 1}})

        async def heard_again() -> bool:
            found = await folds(fleet)
            return len(found) == 1 and found[0].seen == 4

        await fleet.until("a collector with a new key is heard by brokers that did not know it", heard_again, 150)

    async def run() -> None:
        async with running(tmp_path, TEXT) as fleet:
            await story(fleet)

    asyncio.run(run())


def ask_refused(address: str) -> bytes:
    """Spark has written nothing here, which the answer states."""
    connection = HTTPConnection(address, HTTP_PORT, timeout=120)
    connection.request("GET", "/v1/snapshot?source=spark")
    answer = connection.getresponse()
    assert answer.status == 503
    return answer.read()
