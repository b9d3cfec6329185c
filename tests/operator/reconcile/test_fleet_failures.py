"""What fails in an unforeseen way, or is refused, is said of the fleet and ends nothing."""

import asyncio
from dataclasses import replace

import pytest
from tests.operator.reconcile.test_fleet_alone import degraded_of, looker
from tests.operator.world import World

from plimsoll.operator import names
from plimsoll.operator.api import ApiError
from plimsoll.operator.mediator.epochs import EpochsExhaustedError, OperatorDeposedError
from plimsoll.operator.mediator.lease import lease_name
from plimsoll.operator.reconcile.retries import RETRY_SECONDS


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OperatorDeposedError("mediator epoch 2 is over"), "the mediator cannot go on: mediator epoch 2 is over"),
        (EpochsExhaustedError("set it to 0"), "the mediator cannot go on: set it to 0"),
        (OverflowError("too large"), "the mediator cannot go on: OverflowError: too large"),
    ],
)
def test_a_mediator_that_cannot_go_on_ends_nothing_and_is_said(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
):
    world = World()
    fleet, _ = looker(world, monkeypatch)

    async def failing() -> None:
        raise error

    async def story() -> None:
        await fleet._reconcile()
        fleet._mediator._task = asyncio.create_task(failing())
        await asyncio.wait([fleet._mediator._task])
        await fleet._mediator.check()
        await fleet._write_status()
        degraded = degraded_of(world)
        assert (degraded["reason"], degraded["message"]) == ("OperatorFault", said)

    asyncio.run(story())


def test_a_reconciliation_that_fails_in_an_unforeseen_way_is_said_until_one_has_not(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, _ = looker(world, monkeypatch)

    async def failing(*_: object) -> None:
        raise OverflowError("too large")

    async def story() -> None:
        await fleet._reconcile()
        with monkeypatch.context() as patched:
            patched.setattr(fleet._pairs, "update", failing)
            assert await fleet._reconcile_safely() <= RETRY_SECONDS
        await fleet._write_status()
        degraded = degraded_of(world)
        assert degraded["reason"] == "OperatorFault"
        assert degraded["message"].endswith("is tried again: OverflowError: too large")
        await fleet._reconcile_safely()
        await fleet._write_status()
        assert degraded_of(world)["status"] == "False"

    asyncio.run(story())


def test_a_refusal_that_stays_is_logged_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    fleet, _ = looker(World(), monkeypatch)

    async def refused(*_: object) -> None:
        raise ApiError(403, "may not list pods")

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "reconciliation failed" in each.getMessage()]

    async def story() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(fleet._pairs, "update", refused)
            for _ in range(25):
                await fleet._reconcile_safely()
        assert [line.split("(")[1].split(" times")[0] for line in said()] == ["1", "10"]
        await fleet._reconcile_safely()  # it succeeds, so that the next refusal is news again
        monkeypatch.setattr(fleet._pairs, "update", refused)
        await fleet._reconcile_safely()
        assert len(said()) == 3

    asyncio.run(story())


def test_what_cannot_be_seen_is_not_missing_and_the_fleet_says_what_is_refused(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        fleet._health.unserved = lambda namespace: f"no pods in {namespace}"
        del world.objects["BrokerCluster", "east"]
        server.asked.clear()
        assert await fleet._reconcile_safely() == RETRY_SECONDS
        assert server.asked == [], "the cluster may be there"
        await fleet._write_status()
        assert (degraded_of(world)["reason"], degraded_of(world)["message"]) == ("Refused", "no pods in ns")

    asyncio.run(story())


def test_a_fleet_that_another_release_serves_is_left_alone_and_it_is_said(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)
    fleet._release._release = "b/two"
    fleet._settings = replace(fleet._settings, release="b/two", broker_image="other:2")
    lease = {"kind": "Lease", "metadata": {"name": lease_name("stocks"), "annotations": {names.RELEASE: "a/one"}},
             "spec": {"holderIdentity": "x", "renewTime": "now"}}  # fmt: skip

    async def story() -> None:
        world.put(lease)
        for _ in range(3):
            assert await fleet._reconcile_safely() == RETRY_SECONDS
            await fleet._write_status()
        assert {verb for verb, _, _ in server.asked} == {"get", "event"}
        assert server.asked.count(("event", "OtherOperator", "stocks")) == 1
        assert fleet._other_release == "a/one"
        del world.objects["Lease", lease_name("stocks")]
        await fleet._reconcile_safely()
        assert fleet._other_release == ""
        assert "create" in {verb for verb, _, _ in server.asked}

    asyncio.run(story())


def test_a_status_that_fails_in_an_unforeseen_way_ends_no_task_and_is_said_once(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)

    async def failing(*_: object) -> None:
        raise OverflowError("too large")

    async def story() -> None:
        await fleet._reconcile()
        with monkeypatch.context() as patched:
            patched.setattr(fleet._refusals, "look", failing)
            for _ in range(3):
                await fleet._write_status_safely()
        assert server.asked.count(("event", "PartFailed", "stocks")) == 1
        await fleet._write_status_safely()
        assert fleet._status_failure == ""

    asyncio.run(story())
