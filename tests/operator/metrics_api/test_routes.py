"""The API that autoscalers read, over HTTP and over TLS."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plimsoll.operator.health import OperatorHealth, http_server
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.metrics_api.group_figures import FIGURES, GroupFigure
from plimsoll.operator.metrics_api.routes import PATH, https_server, metric_routes

LAG = "plimsoll_group_lag_items"


def figures_of(namespace: str) -> Iterator[GroupFigure]:
    for group, lag in (("a", "5"), ("b", "12")) if namespace == "ns" else ():
        yield GroupFigure(LAG, {"cluster": "east", "group": group}, lag, 0.5)
        yield GroupFigure("plimsoll_group_busy_consumers", {"cluster": "east", "group": group}, "250m", 0.5)


def asked(*paths: str) -> list[tuple[int, dict[str, Any]]]:
    async def ask() -> list[tuple[int, dict[str, Any]]]:
        served = http_server(
            OperatorHealth(stalled_seconds=90), OperatorMetrics(), 0, more_routes=metric_routes(figures_of)
        )
        async with served as port, aiohttp.ClientSession() as client:
            said = []
            for path in paths:
                async with client.get(f"http://127.0.0.1:{port}{PATH}{path}") as answer:
                    said.append((answer.status, await answer.json()))
            return said

    return asyncio.run(ask())


def test_the_metrics_are_listed():
    ((code, said),) = asked("")
    assert (code, said["kind"], said["groupVersion"]) == (200, "APIResourceList", "external.metrics.k8s.io/v1beta1")
    assert [each["name"] for each in said["resources"]] == list(FIGURES)


def test_values_are_those_of_the_namespace_that_the_labels_select():
    one, both, none = asked(
        f"/namespaces/ns/{LAG}?labelSelector=group%3Da%2Ccluster%3Deast", f"/namespaces/ns/{LAG}",
        f"/namespaces/other/{LAG}",
    )  # fmt: skip
    assert one[0] == 200
    assert one[1]["kind"] == "ExternalMetricValueList"
    (item,) = one[1]["items"]
    assert (item["metricName"], item["value"], item["metricLabels"]["group"]) == (LAG, "5", "a")
    assert item["timestamp"].endswith("Z")
    assert [each["value"] for each in both[1]["items"]] == ["5", "12"]
    assert none == (200, {**both[1], "items": []})


def test_what_cannot_be_answered_is_said():
    unknown, selector = asked("/namespaces/ns/other", f"/namespaces/ns/{LAG}?labelSelector=%28")
    assert (unknown[0], unknown[1]["reason"], selector[0], selector[1]["reason"]) == (
        404, "NotFound", 400, "BadRequest",
    )  # fmt: skip
    assert LAG in unknown[1]["message"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, to make a certificate")
def test_over_tls_with_the_certificate_of_a_folder(tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, *names, "-out", str(certificate), "-keyout", str(key)], check=True, capture_output=True)

    async def ask() -> int:
        context = ssl.create_default_context(cafile=str(certificate))
        async with (
            https_server(figures_of, tmp_path, 0) as port,
            aiohttp.ClientSession() as client,
            client.get(f"https://localhost:{port}{PATH}", ssl=context) as answer,
        ):
            return answer.status

    assert asyncio.run(ask()) == 200


def test_without_a_certificate_it_does_not_start(tmp_path: Path):
    async def serve() -> None:
        async with https_server(figures_of, tmp_path, 0):
            pass

    with pytest.raises(OSError):
        asyncio.run(serve())
