"""A fleet's mediator at a real API server, with real brokers: stored before said, resumed, deposed, and never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.local.traffic import Traffic
from tests.operator import kube
from tests.operator.brokers import Brokers, Fleet, Life, condition
from tests.operator.faults import Faults

from plimsoll.operator.api import Api

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def brokers(tmp_path_factory) -> Iterator[Brokers]:
    with Brokers(tmp_path_factory.mktemp("brokers")) as started:
        yield started


@pytest.fixture
def traffic(brokers: Brokers) -> Iterator[Traffic]:
    """Eight subscribers at edge `a` and `b`, and a publisher."""
    with Traffic(brokers.entry, 8, per_second=100.0) as running:
        yield running
        verdict = running.verdict()
        assert verdict.ok, verdict
        assert (verdict.lost, verdict.gaps) == (0, 0)


def with_fleet(brokers: Brokers, test) -> None:
    """Run a test with a namespace that has the fleet, and a proxy to the API server for its mediators."""

    async def run():
        async with await Api.connect(kube.kubeconfig()) as api:
            await kube.apply_definitions(api)
            async with kube.namespace(api) as namespace, Faults(upstream=kube.kubeconfig()) as proxy:
                fleet = Fleet(api, namespace, brokers)
                await fleet.make()
                async with Api(proxy.configuration, "one") as mediators:
                    await test(fleet, mediators, proxy)

    asyncio.run(run())


def test_from_request_to_success(brokers: Brokers, traffic: Traffic):
    async def test(fleet: Fleet, api: Api, proxy: Faults):
        async with Life(fleet, api):
            here = len(traffic.at("a"))
            await fleet.ask("move", target={"name": "b"}, select={"count": 3}, limits={"maxInFlight": 2})
            item = await fleet.ended("move")
            assert condition(item, "Succeeded")["status"] == "True"
            assert len(traffic.at("a")) == here - 3

    with_fleet(brokers, test)
