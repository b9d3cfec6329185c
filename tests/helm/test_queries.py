"""Every query of dashboards and alerts, asked of a real Prometheus over a fleet of pods that moves its subscribers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.helm.prometheus import Prometheus, Target, prometheus_program, running_prometheus
from tests.helm.test_alerts import ALERTS, RULES
from tests.helm.test_dashboards import QUERIES
from tests.operator.running import FLEET, Running, running

from plimsoll.operator import names
from plimsoll.operator.objects.collectors import HTTP_PORT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.images("broker", "collector"),
    pytest.mark.timeout(600),
]
TEXT = FLEET.replace(
    "spec:\n  security:", "spec:\n  telemetry: {collectors: {replicas: 1, interval: 1s}}\n  security:", 1
)
SESSION = """
apiVersion: plimsoll.dev/v1alpha1
kind: LoadBalancingSession
metadata: {name: relieve}
spec:
  scope: Local
  source: {name: %s}
  select: {sharePercent: 50}
  mode: Execute
  deadline: 2m
"""
FROM_GRAFANA = {
    "$__rate_interval": "10s", "$__range": "10m", "$window": "10m", "$load_line": "0.9", "$overload": "0.95",
    "$namespace": ".*", "$cluster": ".*", "$broker": ".*",
}  # fmt: skip
WITHOUT_DATA = {
    "fleet: Input refused A": "nothing is refused in a healthy fleet",
    "PlimsollOperatorDown": "it asks for what is absent",
    "PlimsollSessionsFailing": "no session fails in a healthy fleet",
    "PlimsollSnapshotRefused": "there is no Spark here",
    "PlimsollReconcileFailing": "no reconciliation need fail in a healthy fleet",
}
"""Queries that give nothing here, and why; some of them may."""


def as_asked(expression: str) -> str:
    """An expression as Grafana sends it."""
    for name, value in FROM_GRAFANA.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def as_figures(expression: str) -> str:
    """An alert's expression with a value for each series, whether it fires or not."""
    return re.sub(r"(==|>|<) ([\d.]+)", r"\1 bool \2", expression)


ASKED = {title: as_asked(expr) for title, expr in QUERIES.items()} | {
    str(rule["alert"]): as_figures(rule["expr"]) for rule in RULES
}


async def targets(fleet: Running) -> list[Target]:
    """What the chart's monitors find: the operator, and all pods of brokers and collectors."""
    found = [Target(f"127.0.0.1:{fleet.port}", {"namespace": "operators", "pod": "operator"})]
    for pod in await fleet.api.list("Pod", fleet.namespace):
        labels = pod["metadata"]["labels"]
        port = {"plimsoll-broker": names.HTTP_PORT, "plimsoll-collector": HTTP_PORT}.get(
            labels.get("app.kubernetes.io/name", "")
        )
        if port:
            told = {re.sub(r"\W", "_", name): text for name, text in labels.items() if name.startswith("plimsoll.dev/")}
            own = {"namespace": fleet.namespace, "pod": pod["metadata"]["name"], **told}
            found.append(Target(f"{pod['status']['podIP']}:{port}", own))
    return found


async def loaded_edge(fleet: Running) -> str:
    """The edge with most subscribers."""
    edges = await fleet.api.list("EdgeBroker", fleet.namespace)
    return str(max(edges, key=lambda edge: edge.get("status", {}).get("subscribers", 0))["metadata"]["name"])


def without_data(server: Prometheus) -> set[str]:
    return {title for title, expression in ASKED.items() if not server.values(expression)}


def test_every_query_gives_data(tmp_path: Path):
    prometheus_program()

    async def story(fleet: Running) -> None:
        await fleet.ready(3)

        async def all_there() -> bool:
            pods: list[dict[str, Any]] = await fleet.api.list("Pod", fleet.namespace)
            return all(pod["status"].get("podIP") for pod in pods) and len(await targets(fleet)) == 6

        await fleet.until("operator, collector, head and edges are there", all_there)
        with running_prometheus(tmp_path, await targets(fleet), ALERTS) as server:
            await fleet.traffic()

            async def scraped() -> bool:
                return len(server.values("up == 1")) == 6

            await fleet.until("all are scraped", scraped)
            await fleet.apply(SESSION % await loaded_edge(fleet))

            async def ended() -> bool:
                return "endedAt" in (await fleet.get("LoadBalancingSession", "relieve")).get("status", {})

            await fleet.until("the session has ended", ended)
            status = (await fleet.get("LoadBalancingSession", "relieve"))["status"]
            assert status["phase"] == "Succeeded", status
            assert status["progress"]["moved"] > 0, status

            async def complete() -> bool:
                return without_data(server) <= set(WITHOUT_DATA)

            try:
                await fleet.until("every query gives data", complete, 60)
            finally:
                print("without data:", sorted(without_data(server)))
            firing = server.ask("query", query='ALERTS{alertstate="firing"}')["result"]
            assert [item["metric"]["alertname"] for item in firing] == []
            await asyncio.to_thread(print, f"{len(ASKED)} queries, {len(ASKED) - len(without_data(server))} with data")

    async def run() -> None:
        async with running(tmp_path, TEXT) as fleet:
            await story(fleet)

    asyncio.run(run())


def test_a_reason_belongs_to_a_query():
    assert set(WITHOUT_DATA) <= set(ASKED)


def test_an_alert_that_does_not_fire_has_a_figure():
    assert as_figures('avg({a="b"}) / c > 0.9') == 'avg({a="b"}) / c > bool 0.9'
