"""Sessions at a real API server: no unseen write is overwritten, and everything stored can be read again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.operator import kube
from tests.operator.brokers import asked
from tests.operator.faults import Faults

from plimsoll.core.session import Session
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import MoveGroup, PlannedPair, SessionPlan
from plimsoll.mediator import plan_storage, session_objects
from plimsoll.operator.api import Api, ApiNotFoundError
from plimsoll.operator.mediator.epochs import OperatorDeposedError
from plimsoll.operator.mediator.session_store import ApiSessionStore, SessionOverwrittenError

pytestmark = pytest.mark.cluster


def at_cluster(test: Callable[[Api, str, Faults], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            Faults(upstream=kube.kubeconfig()) as proxy,
            Api(proxy.configuration, "test") as api,
            kube.namespace(api) as namespace,
        ):
            await kube.apply_definitions(api)
            await test(api, namespace, proxy)
            proxy.plan = None

    asyncio.run(run())


async def made(api: Api, namespace: str, **fields: Any) -> Session:
    item = asked("s", target={"name": "b"}, select={"count": 1})
    item = await api.create({**item, "metadata": {**item["metadata"], "namespace": namespace}})
    given: dict[str, Any] = {"requested_at": 1.0, "queued_at": 1.5, "phase_at": 2.0, "deadline_at": 99.0, **fields}
    return Session(uid=item["metadata"]["uid"], name="s", generation=1, **given)


def planned(session: Session, names: list[str], hash_: str = "aa") -> Session:
    pair = PlannedPair(source="a", target="b", source_head="east-head", target_head="east-head", members=names)
    batch = Batch(
        id="1.1", head="east-head", head_epoch=1, source="a", target="b", target_head="east-head", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=4.0, members=dict.fromkeys(names, "moved"),
    )  # fmt: skip
    plan = SessionPlan(
        hash=hash_, pairs=[pair], made_at=3.0, rejected={"Excluded": ["someone"]},
        moves=[MoveGroup(count=len(names), reason="the hottest", what="[a,>,1]")],
    )  # fmt: skip
    return replace(session, plan=plan, batches=[batch])


async def read(api: Api, namespace: str) -> Session:
    loaded = await ApiSessionStore(api, namespace, 9).load()
    assert not loaded.lost
    [session] = loaded.sessions
    return session


def test_a_large_session_comes_back_from_its_status_and_its_objects():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        session = planned(await made(api, namespace), [f"gateway-{number:05}/{'x' * 60}" for number in range(12_000)])
        item = await ApiSessionStore(api, namespace, 1).save(session, 5.0)
        assert item["status"]["planObjects"] == ["s-plan", "s-plan-2", "s-plan-3"]
        assert len(json.dumps(item["status"]["record"])) < 10_000
        assert await read(api, namespace) == session

    at_cluster(test)


def test_a_record_that_an_earlier_operator_wrote_as_text_is_read_and_replaced():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        session = planned(await made(api, namespace), ["x"])
        item = await ApiSessionStore(api, namespace, 1).save(session, 5.0)
        item["status"]["record"] = json.dumps(item["status"]["record"])
        item = await api.replace_status(item)
        assert isinstance(item["status"]["record"], str)
        store = ApiSessionStore(api, namespace, 2)
        [session] = (await store.load()).sessions
        await api.patch(session_objects.SESSION_KIND, namespace, "s", {"spec": {"stop": True}})
        item = await store.save(replace(session, phase="Draining"), 6.0)
        assert item["status"]["record"]["phase"] == "Draining"
        assert item["status"]["record"]["plan"]["hash"] == "aa"
        assert (await read(api, namespace)).phase == "Draining"

    at_cluster(test)


def test_a_write_with_a_lost_answer_is_not_taken_for_another_writers():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        storing = ApiSessionStore(api, namespace, 1)
        session = await made(api, namespace)
        proxy.when = lambda seen: "lose" if seen.method == "PUT" and len(proxy.seen) % 3 else None
        for number in range(6):
            session = replace(session, phase_at=10.0 + number)
            await storing.save(session, 20.0)
        proxy.when = None
        assert await read(api, namespace) == session

    at_cluster(test)


def test_users_may_change_what_they_own_at_any_time():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        storing = ApiSessionStore(api, namespace, 1)
        session = await made(api, namespace)
        await storing.save(session, 5.0)
        await api.patch(
            session_objects.SESSION_KIND,
            namespace,
            "s",
            {"spec": {"stop": True}, "metadata": {"labels": {"mine": "1"}}},
        )
        item = await storing.save(replace(session, phase="Sampling"), 6.0)
        assert (item["spec"]["stop"], item["metadata"]["labels"], item["status"]["phase"]) == (
            True,
            {"mine": "1"},
            "Sampling",
        )

    at_cluster(test)


def test_a_mediator_of_a_lower_epoch_writes_no_more():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        old, new = ApiSessionStore(api, namespace, 1), ApiSessionStore(api, namespace, 2)
        session = await made(api, namespace)
        await old.save(session, 5.0)
        await new.load()
        await new.save(session, 6.0)
        with pytest.raises(OperatorDeposedError, match="mediator epoch 1 is over"):
            await old.save(replace(session, phase="Sampling"), 7.0)
        assert (await read(api, namespace)).phase == "Requested"
        with pytest.raises(OperatorDeposedError):
            await ApiSessionStore(api, namespace, 1).save(replace(session, phase="Sampling"), 8.0)

    at_cluster(test)


def test_a_record_that_was_written_since_it_was_read_is_read_again_first():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        old, new = ApiSessionStore(api, namespace, 1), ApiSessionStore(api, namespace, 2)
        session = await made(api, namespace)
        await old.save(session, 5.0)
        await new.load()
        await old.save(replace(session, phase="Sampling"), 6.0)
        with pytest.raises(SessionOverwrittenError, match="overwritten by mediator epoch 1"):
            await new.save(replace(session, phase="Rejected"), 7.0)
        assert (await read(api, namespace)).phase == "Sampling"

    at_cluster(test)


def test_an_object_that_was_deleted_or_created_again_is_not_written():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        storing = ApiSessionStore(api, namespace, 1)
        session = await made(api, namespace)
        await storing.save(session, 5.0)
        await api.delete(session_objects.SESSION_KIND, namespace, "s")
        with pytest.raises(ApiNotFoundError):
            await storing.save(replace(session, phase="Sampling"), 6.0)
        await made(api, namespace)
        with pytest.raises(ApiNotFoundError, match="deleted and created again"):
            await storing.save(replace(session, phase="Sampling"), 6.0)
        assert "status" not in await api.get(session_objects.SESSION_KIND, namespace, "s")

    at_cluster(test)


@pytest.mark.parametrize("at", [0, 1])
def test_a_new_plan_that_stops_at_any_write_leaves_the_last_one_or_has_come(at: int):
    """The second plan's ConfigMap, then its status: whichever is the last write, what is stored can be read."""

    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        first = planned(await made(api, namespace), ["x", "y"])
        storing = ApiSessionStore(api, namespace, 1)
        await storing.save(first, 5.0)
        second = planned(first, ["z"], "bb")
        writes = iter(range(100))
        proxy.when = lambda seen: 403 if seen.method in ("PUT", "PATCH") and next(writes) >= at else None
        with pytest.raises(RuntimeError, match="403"):
            await storing.save(second, 6.0)
        proxy.when = None
        assert await read(api, namespace) == first
        storing = ApiSessionStore(api, namespace, 2)
        await storing.load()
        await storing.save(second, 7.0)
        assert await read(api, namespace) == second

    at_cluster(test)


def test_a_deleted_plan_is_reported_and_its_session_begins_again():
    async def test(api: Api, namespace: str, proxy: Faults) -> None:
        await ApiSessionStore(api, namespace, 1).save(planned(await made(api, namespace), ["x"]), 5.0)
        await api.delete(plan_storage.PLAN_KIND, namespace, "s-plan")
        loaded = await ApiSessionStore(api, namespace, 2).load()
        assert loaded.sessions == []
        [(item, why)] = loaded.lost
        assert item["metadata"]["name"] == "s"
        assert "is not in s-plan" in why

    at_cluster(test)
