"""Answers of `external.metrics.k8s.io`: which metrics there are, and the values of one in a namespace.

The API server sends here what an autoscaler asks it, over TLS; who may ask is decided there. The same answers are on
the plain port beside /metrics, for scalers that read JSON by themselves.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from plimsoll.operator.health import listening
from plimsoll.operator.metrics_api.group_figures import FIGURES, GroupFigure
from plimsoll.operator.metrics_api.label_selector import SelectorError, label_selector

GROUP_VERSION: Final = "external.metrics.k8s.io/v1beta1"
PATH: Final = f"/apis/{GROUP_VERSION}"
FiguresOf = Callable[[str], Iterable[GroupFigure]]
"""The figures of all groups of a namespace; none if there is no fleet."""


def metric_routes(figures_of: FiguresOf) -> list[web.RouteDef]:
    """The routes of this API."""

    async def get_metrics(_: web.Request) -> web.Response:
        return web.json_response(metric_list())

    async def get_values(request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        if metric not in FIGURES:
            return _refusal(404, "NotFound", f"no metric {metric}; there are {', '.join(FIGURES)}")
        try:
            is_selected = label_selector(request.query.get("labelSelector", ""))
        except SelectorError as error:
            return _refusal(400, "BadRequest", str(error))
        found = [each for each in figures_of(namespace) if each.metric == metric and is_selected(each.labels)]
        return web.json_response(value_list(found, datetime.now(UTC)))

    return [web.get(PATH, get_metrics), web.get(f"{PATH}/namespaces/{{namespace}}/{{metric}}", get_values)]


def metric_list() -> dict[str, Any]:
    """Which metrics there are, as an APIResourceList."""
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION,
        "resources": [
            {"name": metric, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList",
             "verbs": ["get"]}
            for metric in FIGURES
        ],
    }  # fmt: skip


def value_list(figures: Iterable[GroupFigure], now: datetime) -> dict[str, Any]:
    """The values of a metric, as an ExternalMetricValueList."""
    return {
        "kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {},
        "items": [
            {"metricName": each.metric, "metricLabels": dict(each.labels), "value": each.value,
             "timestamp": (now - timedelta(seconds=each.age_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")}
            for each in figures
        ],
    }  # fmt: skip


def _refusal(code: int, reason: str, message: str) -> web.Response:
    status = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
        "message": message,
    }  # fmt: skip
    return web.json_response(status, status=code)


@asynccontextmanager
async def https_server(figures_of: FiguresOf, folder: Path, port: int) -> AsyncIterator[int]:
    """Serve this API for the length of an `async with`; yields the port. `folder`: has tls.crt and tls.key.

    Raises:
        OSError: there are none, or they cannot be used.

    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    application = web.Application()
    application.add_routes(metric_routes(figures_of))
    async with listening(application, port, context) as bound:
        yield bound
