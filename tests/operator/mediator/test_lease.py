"""One operator at a time works for a fleet; the next one begins when the first has ended, or has stopped renewing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.operator import kube
from tests.operator.faults import Faults, cancelled, eventually

from plimsoll.operator.api import Api
from plimsoll.operator.mediator.lease import Lease, LeaseLostError

pytestmark = pytest.mark.cluster
SECONDS = 1.5


class Worker:
    """Work under a lease: whether it goes on now."""

    def __init__(self, api: Api, namespace: str, holder: str) -> None:
        self.works = False
        self.lease = Lease(api, namespace, "mediator", holder, SECONDS)
        self.task = asyncio.create_task(self.lease.run_while_held(self._work()))

    async def _work(self) -> None:
        self.works = True
        try:
            await asyncio.Event().wait()
        finally:
            self.works = False

    async def end(self) -> None:
        await cancelled(self.task)


def at_cluster(test: Callable[[Api, str, Faults], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            await Api.connect(kube.kubeconfig()) as api,
            kube.namespace(api) as namespace,
            Faults(upstream=kube.kubeconfig()) as proxy,
        ):
            await test(api, namespace, proxy)

    asyncio.run(run())


def test_a_second_one_waits_until_the_first_has_given_it_back():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        first = Worker(api, namespace, "one")
        await eventually(lambda: first.works, "the first to work")
        second = Worker(api, namespace, "two")
        renewals: set[str] = set()

        async def renewed() -> bool:
            renewals.add((await api.get("Lease", namespace, "mediator"))["spec"]["renewTime"])
            return len(renewals) > 6  # over two lengths of the lease, which is renewed three times in each

        await eventually(renewed, "the first to renew it")
        assert (first.works, second.works) == (True, False)
        await first.end()
        await eventually(lambda: second.works, "the second to work")
        spec = (await api.get("Lease", namespace, "mediator"))["spec"]
        assert spec["holderIdentity"] == "two"
        await second.end()
        assert (await api.get("Lease", namespace, "mediator"))["spec"].get("holderIdentity", "") == ""

    at_cluster(test)


def test_a_holder_that_stopped_renewing_is_followed_and_stops_when_it_learns_of_that():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        async with Api(proxy.configuration, "one") as cut_off:
            first = Worker(cut_off, namespace, "one")
            await eventually(lambda: first.works, "the first to work")
            await proxy.away()
            second = Worker(api, namespace, "two")
            await eventually(lambda: second.works, "the second to take over")
            assert first.works, "it has not learned of it: epochs keep the two apart"
            await proxy.up()
            with pytest.raises(LeaseLostError, match="two holds the lease"):
                await asyncio.wait_for(first.task, 300)
            assert (first.works, second.works) == (False, True)
            await second.end()

    at_cluster(test)


def test_an_outage_without_a_new_holder_ends_nothing():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        async with Api(proxy.configuration, "one") as cut_off:
            first = Worker(cut_off, namespace, "one")
            await eventually(lambda: first.works, "it to work")
            await proxy.away()
            await eventually(lambda: cut_off.outage_seconds > 2 * SECONDS, "an outage longer than the lease")
            await proxy.up()

            async def renewed() -> bool:
                return bool(cut_off.outage_seconds == 0)

            await eventually(renewed, "it to renew")
            assert first.works
            await first.end()

    at_cluster(test)


def test_the_end_of_the_work_is_the_end_of_the_lease():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        async def work() -> int:
            return 7

        assert await Lease(api, namespace, "mediator", "one", SECONDS).run_while_held(work()) == 7

        async def fails() -> None:
            raise ValueError("so")

        with pytest.raises(ValueError, match="so"):
            await Lease(api, namespace, "mediator", "two", SECONDS).run_while_held(fails())
        assert (await api.get("Lease", namespace, "mediator"))["spec"].get("holderIdentity", "") == ""

    at_cluster(test)
