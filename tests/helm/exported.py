"""What brokers, collectors and the operator export, asked of the exporters themselves, and what expressions select."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from tests.broker.monitoring.test_metrics import snapshot
from tests.telemetry.rows import NOW_US
from tests.telemetry.test_collector import by_spark, started

from plimsoll.broker.monitoring.metrics import render_metrics
from plimsoll.channels.config import ChannelFigures
from plimsoll.channels.metrics import channel_metrics
from plimsoll.feeds.config import RecorderFigures
from plimsoll.feeds.metrics import recorder_metrics
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.telemetry.api.metrics import CollectorMetrics
from plimsoll.telemetry.schema import LATEST

TARGET = {"namespace", "pod", "job", "instance", "container", "plimsoll_dev_cluster", "plimsoll_dev_broker",
          "plimsoll_dev_dataset_pod"}  # fmt: skip
"""Labels that a PodMonitor or a ServiceMonitor of the chart gives to everything that it scrapes."""
OF_PROMETHEUS = {"up": TARGET, "ALERTS": {"alertname", "alertstate", "severity"}}


def of_operator() -> bytes:
    """Everything that has labels is used once."""
    metrics = OperatorMetrics()
    metrics.requests_of({("get", "pods", 200): 1})
    metrics.sessions_of(list)
    metrics.reconciles.labels("fleet", "success").inc()
    metrics.reconcile_seconds.labels("fleet").observe(0.1)
    metrics.last_event_timestamp.labels("Pod").set(1.0)
    metrics.changes.labels("Apply", "Pod").inc()
    metrics.session.ended.labels("Succeeded", "Moved").inc()
    metrics.session.malformed.labels("field").inc()
    return generate_latest(metrics.registry)


def of_collector() -> bytes:
    """With a snapshot of Spark, after a time without one."""
    with TemporaryDirectory() as folder:
        collector = started(Path(folder))
        metrics = CollectorMetrics(collector, lambda: NOW_US)
        metrics.text()
        (Path(folder) / LATEST).write_bytes(by_spark(end_us=NOW_US - 3_000_000))
        return metrics.text()


def of_datasets() -> bytes:
    """A recorder and a driver with one channel."""
    registry = CollectorRegistry()
    page = DatasetMetrics()
    registry.register(page)
    return generate_latest(registry)


class DatasetMetrics(Collector):
    """The metrics of a recorder and of a driver, as their pages have them."""

    def collect(self) -> Iterator[Metric]:
        yield from recorder_metrics({"reports": RecorderFigures("/d", 7, 1, 3, 1, 12, 10, 2, 0, 0, 1, 900)})
        yield from channel_metrics({"fires": ChannelFigures("ChannelRunning", "m", period_seconds=10.0)})


@cache
def exported() -> dict[str, set[str]]:
    """The labels of each sample's name, those of its target among them."""
    found = dict(OF_PROMETHEUS)
    for text in (render_metrics(snapshot()), of_collector(), of_operator(), of_datasets()):
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                found.setdefault(sample.name, set(TARGET)).update(sample.labels)
    return found


SELECTOR = re.compile(
    r"""(?<![\w$"])(?P<name>up|ALERTS|(?:plimsoll|process)_[a-z_0-9]+)?(?P<labels>\{[^}]*\})?""", re.VERBOSE
)


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric that an expression selects, and the labels that it compares; a pattern of names is each of them."""
    for found in SELECTOR.finditer(expression):
        labels = found["labels"] or ""
        compared = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels))
        pattern = re.search(r'__name__=~"([^"]+)"', labels)
        if pattern:
            for name in alternatives(pattern[1]):
                yield name, compared - {"__name__"}
        elif found["name"]:
            yield found["name"], compared


def alternatives(pattern: str) -> list[str]:
    """The names that a pattern of alternatives stands for: `a_(b|c)` or `a|b`."""
    inner = re.fullmatch(r"(\w*)\(([\w|]+)\)(\w*)", pattern)
    if inner is None:
        return pattern.split("|")
    return [inner[1] + each + inner[3] for each in inner[2].split("|")]


def unknown(expression: str) -> list[str]:
    """The metrics, and labels of metrics, that an expression asks for and nothing exports."""
    faults = []
    for name, labels in selectors(expression):
        if name not in exported():
            faults.append(name)
        else:
            faults += [f"{name}{{{label}}}" for label in sorted(labels - exported()[name])]
    return faults
