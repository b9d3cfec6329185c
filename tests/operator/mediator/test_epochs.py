"""The epoch of the mediator at a real API server: every raise gives another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import Any

import pytest
from tests.operator import kube
from tests.operator.faults import Faults

from plimsoll.core.spec.status.objects import MOST_MEDIATOR_EPOCH
from plimsoll.operator.api import Api, ApiNotFoundError
from plimsoll.operator.mediator import epochs
from plimsoll.operator.mediator.epochs import EpochsExhaustedError, OperatorDeposedError

FLEET = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "spec": {"security": {"plain": True}}}


def with_fleet(test: Callable[[Api, str, Faults], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            Faults(upstream=kube.kubeconfig()) as proxy,
            Api(proxy.configuration, "test") as api,
            kube.namespace(api) as namespace,
        ):
            await kube.apply_definitions(api)
            await api.create({**FLEET, "metadata": {"name": "f", "namespace": namespace}})
            await test(api, namespace, proxy)
            proxy.plan = None

    asyncio.run(run())


def test_an_epoch_is_over_when_a_higher_one_is_known():
    item = {"kind": "BrokerFleet", "metadata": {"name": "f"}, "status": {"mediatorEpoch": 3}}
    epochs.check_epoch(item, 3)
    epochs.check_epoch({**item, "status": {}}, 1)
    with pytest.raises(OperatorDeposedError, match="mediator epoch 2 is over: BrokerFleet f has epoch 3"):
        epochs.check_epoch(item, 2)


def test_what_a_policy_remembers_is_written_unless_a_later_mediator_has():
    item = {"kind": "BrokerCluster", "metadata": {"name": "east"}, "status": {"subscribers": 4}}
    first = epochs.with_memory(item, {"policy": "Bad", "memory": {"looks": 1}}, 3)
    assert first == {"subscribers": 4, "policyMemory": {"policy": "Bad", "memory": {"looks": 1}, "mediatorEpoch": 3}}
    later = {**item, "status": first}
    assert epochs.with_memory(later, {"policy": "Bad", "memory": {}}, 2) == first
    assert epochs.with_memory(later, {"policy": "Bad", "memory": {}}, 4)["policyMemory"]["memory"] == {}


class Stored:
    """One fleet at an API server."""

    def __init__(self, epoch: object) -> None:
        self.item = {**FLEET, "metadata": {"name": "f"}, "status": {"mediatorEpoch": epoch, "clusters": 1}}

    async def set_status(self, *asked: Any, retry: bool) -> dict[str, Any]:
        self.item = {**self.item, "status": asked[-1](self.item)}
        return self.item


@pytest.mark.parametrize(
    "epoch", [10**15, 2**63 - 1, MOST_MEDIATOR_EPOCH, epochs.HIGHEST_TAKEN + 1, -1, "7", 1.5, True, None]
)
def test_an_epoch_that_no_mediator_can_have_counts_as_none_and_is_written_over(epoch: object):
    api: Any = Stored(epoch)
    assert epochs.epoch_of(api.item) == 0
    assert epochs.is_out_of_bounds(api.item)
    epochs.check_epoch(api.item, 1)
    asyncio.run(epochs.raise_epoch_to(api, "ns", "f", 5))
    assert api.item["status"] == {"mediatorEpoch": 5, "clusters": 1}
    assert not epochs.is_out_of_bounds(api.item)
    for memory in (epoch, [], {"mediatorEpoch": epoch}):
        cluster = {"status": {"policyMemory": memory}}
        assert epochs.with_memory(cluster, {"looks": 1}, 2)["policyMemory"] == {"looks": 1, "mediatorEpoch": 2}


def test_above_the_highest_epoch_there_is_none_and_the_error_says_what_to_do():
    api: Any = Stored(epochs.HIGHEST_TAKEN)
    with pytest.raises(EpochsExhaustedError, match="kubectl patch brokerfleet f --subresource=status"):
        asyncio.run(epochs.raise_epoch(api, "ns", "f"))


def test_so_heads_obey_none_above_which_there_is_none():
    """Any number may stand in the status: the next mediator is one that heads obey, once it knows whom they obey."""
    api: Any = Stored(MOST_MEDIATOR_EPOCH - 1)
    assert asyncio.run(epochs.raise_epoch(api, "ns", "f")) == 1
    asyncio.run(epochs.raise_epoch_to(api, "ns", "f", 17))
    assert asyncio.run(epochs.raise_epoch(api, "ns", "f")) == 18
    with pytest.raises(EpochsExhaustedError, match="delete the pods of all brokers at once"):
        asyncio.run(epochs.raise_epoch_to(api, "ns", "f", epochs.HIGHEST_TAKEN))


@pytest.mark.cluster
def test_concurrent_raises_get_distinct_epochs_even_if_answers_are_lost():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        proxy.plan = chain.from_iterable(repeat([None, None, None, "lose", 500]))
        found = await asyncio.gather(*(epochs.raise_epoch(api, namespace, "f") for _ in range(6)))
        assert len(set(found)) == 6
        proxy.plan = None
        assert await epochs.raise_epoch(api, namespace, "f") > max(found)

    with_fleet(test)


@pytest.mark.cluster
def test_what_others_have_heard_of_is_passed_and_never_lowered():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        assert await epochs.raise_epoch(api, namespace, "f") == 1
        await epochs.raise_epoch_to(api, namespace, "f", 7)
        await epochs.raise_epoch_to(api, namespace, "f", 5)
        assert await epochs.raise_epoch(api, namespace, "f") == 8
        assert await epochs.raise_epoch(api, namespace, "f", above=20) == 21

    with_fleet(test)


@pytest.mark.cluster
def test_only_the_present_mediator_says_who_is_drained():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        epoch = await epochs.raise_epoch(api, namespace, "f")
        await epochs.write_draining(api, namespace, "f", epoch, {"b", "a"})
        await epochs.raise_epoch(api, namespace, "f")
        with pytest.raises(OperatorDeposedError):
            await epochs.write_draining(api, namespace, "f", epoch, set())
        stored = await api.get("BrokerFleet", namespace, "f")
        assert stored["status"] == {"mediatorEpoch": 2, "draining": ["a", "b"]}

    with_fleet(test)


@pytest.mark.cluster
def test_without_a_fleet_there_is_no_epoch():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        with pytest.raises(ApiNotFoundError, match="missing"):
            await epochs.raise_epoch(api, namespace, "missing")

    with_fleet(test)
