"""A world of two edges in a few lines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.queueing.conftest import API, profile


@pytest.fixture
def documents() -> list[dict[str, Any]]:
    return [
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "f"},
         "spec": {"defaults": {"policy": {"type": "Padres", "detection": {"interval": "2s", "stabilizeFor": "5s"}}}}},
        profile("head", "10us", "0us"), profile("edge"),
        {"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": "c1"},
         "spec": {"head": {"profile": "head"}, "edges": [{"name": n, "profile": "edge"} for n in ("e1", "e2")]}},
    ]  # fmt: skip


@pytest.fixture
def world() -> dict[str, Any]:
    return {
        "duration": "60s",
        "publishers": [
            {"name": "p", "count": 2, "cluster": "c1", "rates": [{"perSecond": 20}], "publications": ['{"x": 1}']}
        ],
        "subscribers": [
            {"name": "s", "count": 10, "cluster": "c1", "edge": "e1", "subscriptions": ["[x,=,1]"],
             "joins": {"over": "5s"}}
        ],
    }  # fmt: skip
