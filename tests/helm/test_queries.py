"""Every query of dashboards and alerts, asked of a real Prometheus over a fleet that moves its subscribers.

A fleet of this machine has brokers and collectors; one of pods has an operator, too, and there every query is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.helm.exported import DatasetMetrics, selectors
from tests.helm.prometheus import Prometheus, Target, prometheus_program, running_prometheus
from tests.helm.test_alerts import ALERTS, RULES
from tests.helm.test_dashboards import QUERIES
from tests.local.conftest import FLEET as LOCAL_FLEET
from tests.local.conftest import Fleet, wait_for
from tests.local.traffic import Traffic
from tests.operator.running import FLEET, Running, running

from plimsoll.feeds.figures_page import FiguresPage
from plimsoll.local import store_edits
from plimsoll.local.head_access import HeadAccess, head_access
from plimsoll.operator import names
from plimsoll.operator.objects.collectors import HTTP_PORT

pytestmark = pytest.mark.timeout(1800)
TEXT = FLEET.replace(
    "spec:\n  security:",
    "spec:\n  telemetry: {collectors: {replicas: 1, interval: 1s}}\n  defaults: {policy: {type: Padres}}\n  security:",
    1,
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
MOVE = {"scope": "Local", "mode": "Execute", "select": {"sharePercent": 50}, "deadline": "2m"}
LOCAL = LOCAL_FLEET.replace(
    "metadata: {name: quotes}\n",
    "metadata: {name: quotes}\nspec:\n  telemetry: {collectors: {replicas: 1, interval: 1s}}\n"
    "  defaults: {policy: {type: Padres}}\n",
    1,
)
FROM_GRAFANA = {
    "$__rate_interval": "10s", "$__range": "10m", "$window": "10m",
    "$namespace": ".*", "$cluster": ".*", "$broker": ".*",
}  # fmt: skip
WITHOUT_DATA = {
    "fleet: Input refused A": "nothing is refused in a healthy fleet",
    "PlimsollOperatorDown": "it asks for what is absent",
    "PlimsollSessionsFailing": "no session fails in a healthy fleet",
    "PlimsollSnapshotRefused": "there is no Spark here",
    "PlimsollApiFailing": "the API server fails no request",
    "PlimsollDatasetPodDown": "nothing is recorded here",
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
    return re.sub(r"(==|>|<) ([\d.]+|on \()", r"\1 bool \2", expression)


ASKED = {title: as_asked(expr) for title, expr in QUERIES.items()} | {
    str(rule["alert"]): as_figures(rule["expr"]) for rule in RULES
}


DATASETS = {
    title: expression
    for title, expression in ASKED.items()
    if any(name.startswith(("plimsoll_feed_", "plimsoll_channel_")) for name, _ in selectors(expression))
}
"""Queries about feeds and channels."""


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


def judge(server: Prometheus, asked: dict[str, str], allowed: Set[str] = WITHOUT_DATA.keys()) -> None:
    """Each query gives data within a minute, except for those that need not, and no alert fires."""
    empty: set[str] = set()

    def is_complete() -> bool:
        nonlocal empty
        empty = {title for title, expression in asked.items() if not server.values(expression)}
        return empty <= allowed

    with contextlib.suppress(TimeoutError):  # what is missing is told below
        server.until("every query gives data", is_complete)
    assert empty - allowed == set()
    firing = server.ask("query", query='ALERTS{alertstate="firing"}')["result"]
    assert {item["metric"]["alertname"] for item in firing} <= {"PlimsollOperatorDown"} - set(asked)
    print(f"{len(asked)} queries, {len(asked) - len(empty)} with data; without: {', '.join(sorted(empty)) or 'none'}")


@pytest.mark.cluster
@pytest.mark.images("broker", "collector")
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

            await asyncio.to_thread(judge, server, {title: ASKED[title] for title in ASKED.keys() - DATASETS.keys()})

    async def run() -> None:
        async with running(tmp_path, TEXT) as fleet:
            await story(fleet)

    asyncio.run(run())


class ScrapedFleet(Fleet):
    """A fleet of this machine whose brokers answer Prometheus."""

    PROGRAM = str(Path(__file__).with_name("scraped_fleet.py"))

    def targets(self) -> list[Target]:
        """Brokers as the chart's monitors name those of pods, and collectors."""
        found = []
        for note in sorted(self.folder.path.rglob("*.http")):
            own = {"namespace": "local", "pod": f"{note.stem}-0", "plimsoll_dev_broker": note.stem}
            found.append(Target(note.read_text(), own))
        for file in sorted(self.folder.path.rglob("*.address")):
            found.append(Target(json.loads(file.read_text())["http"], {"namespace": "local", "pod": file.stem}))
        return found


@pytest.fixture
def scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapedFleet]:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    fleet = ScrapedFleet(tmp_path)
    yield fleet
    fleet.clean()


def send_nonsense(way: HeadAccess) -> None:
    """What a head refuses, from a client with a key; it arrives at some time."""
    assert way.secret_key_file is not None
    secret = way.secret_key_file.read_bytes().strip()
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.curve_serverkey = way.server.encode()
        dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_public(secret), secret
        dealer.linger = 10_000
        dealer.connect(way.endpoint)
        dealer.send(b"nonsense")


def test_queries_about_brokers_and_collectors_give_data(scraped: ScrapedFleet, tmp_path: Path):
    prometheus_program()
    scraped.up(LOCAL)
    wait_for(lambda: len(scraped.targets()) == 4, what="a head, two edges and a collector to answer")
    own = ("plimsoll_broker_", "plimsoll_telemetry_", "up", "ALERTS")
    asked = {
        title: expression
        for title, expression in ASKED.items()
        if all(name.startswith(own) for name, _ in selectors(expression))
    }
    assert len(asked) > len(ASKED) / 2
    with running_prometheus(tmp_path, scraped.targets(), ALERTS) as server, Traffic(scraped.folder, 8) as traffic:
        server.until("all are scraped", lambda: len(server.values("up == 1")) == 4)
        source = max(("e-0", "e-1"), key=lambda edge: len(traffic.at(edge)))
        store_edits.create_session(scraped.folder, "relieve", {**MOVE, "source": {"name": source}})
        send_nonsense(head_access(scraped.folder))
        wait_for(lambda: "endedAt" in scraped.object("LoadBalancingSession", "relieve").get("status", {}))
        status = scraped.object("LoadBalancingSession", "relieve")["status"]
        assert (status["phase"], status["progress"]["moved"] > 0) == ("Succeeded", True), status
        judge(server, asked, {"PlimsollSnapshotRefused", "PlimsollDatasetPodDown"})
    scraped.end()


def test_queries_about_feeds_and_channels_give_data(tmp_path: Path):
    prometheus_program()
    page = FiguresPage("tcp://127.0.0.1:*")
    try:
        page.update(b"{}", DatasetMetrics().collect())
        target = Target(f"127.0.0.1:{page.port}", {"namespace": "n", "pod": "p", "plimsoll_dev_dataset_pod": "p"})
        with running_prometheus(tmp_path, [target], ALERTS) as server:
            judge(server, DATASETS)
    finally:
        page.close()


def test_a_reason_belongs_to_a_query():
    assert set(WITHOUT_DATA) <= set(ASKED)


def test_an_alert_that_does_not_fire_has_a_figure():
    assert as_figures('avg({a="b"}) / c > 0.9') == 'avg({a="b"}) / c > bool 0.9'
