"""Requests when the API server refuses, fails, or is away; and with the real one."""

from __future__ import annotations

import asyncio
from itertools import chain, repeat
from typing import Any

import pytest
from aiohttp import web
from tests.operator import kube
from tests.operator.faults import Faults, eventually

from plimsoll.operator import api as api_module
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(api_module, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(api_module, "LONGEST_PAUSE_SECONDS", 0.05)


def asked(answers: list[tuple[int, Any]], call, **settings: Any):
    """The result of a call for these answers, and the server that gave them."""

    async def run():
        async with Faults(answers=answers, **settings) as server, Api(server.configuration, "test") as api:
            try:
                return await call(api), api, server
            except (ApiError, ApiNotFoundError, ApiConflictError) as error:
                return error, api, server

    return asyncio.run(run())


def config(name: str, namespace: str = "n", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.mark.parametrize(
    ("code", "error"),
    [(404, ApiNotFoundError), (409, ApiConflictError), (403, ApiError), (422, ApiError), (500, ApiError)],
)
def test_refusals_are_errors_that_say_what_was_asked(code, error):
    found, api, _ = asked([(code, {"message": "because"})], lambda api: api.get("Pod", "n", "p"))
    assert type(found) is error
    assert str(found) == f"get Pod n/p: {code}: because"
    assert api.requests == {("get", "pods", code): 1}


def test_an_answer_that_is_not_json_is_kept_in_the_message():
    async def run():
        async with Faults(answers=[]) as server, Api(server.configuration) as api:
            server._next_answer = lambda: web.Response(status=502, text="<html>bad gateway")
            with pytest.raises(ApiError, match="502: <html>bad gateway"):
                await api.get("Pod", "n", "p")

    asyncio.run(run())


def test_a_success_that_cannot_be_read_is_none():
    """Otherwise half a list would be taken for the whole."""

    async def run():
        async with Faults(answers=[]) as server, Api(server.configuration) as api:
            server._next_answer = lambda: web.Response(text='{"items": [')
            with pytest.raises(ApiError, match="no answer"):
                await api.list("Pod", "n")

    asyncio.run(run())


def test_what_may_pass_is_asked_again_when_asked_for():
    answers = [(500, {}), (429, {}), (503, {}), (200, {"kind": "Pod"})]
    found, api, _ = asked(answers, lambda api: api.get("Pod", "n", "p", retry=True))
    assert found == {"kind": "Pod"}
    assert api.requests == {("get", "pods", code): 1 for code in (500, 429, 503, 200)}
    assert api.outage_seconds == 0


def test_what_will_not_pass_is_not_asked_again():
    found, _, _ = asked([(403, {}), (200, {})], lambda api: api.get("Pod", "n", "p", retry=True))
    assert isinstance(found, ApiError)
    assert found.code == 403


def test_connections_that_are_closed_are_asked_again():
    found, api, server = asked(
        [(200, {"a": 1})], lambda api: api.get("Pod", "n", "p", retry=True), plan=iter(["drop"] * 3)
    )
    assert found == {"a": 1}
    assert api.requests[("get", "pods", 0)] > 0
    assert len(server.seen) == 4


def test_without_retry_no_answer_is_an_error_and_an_outage():
    found, api, _ = asked([], lambda api: api.get("Pod", "n", "p"), plan=repeat("drop"))
    assert isinstance(found, ApiError)
    assert found.code == 0
    assert api.outage_seconds > 0


def test_the_server_says_how_long_to_wait():
    async def run():
        loop = asyncio.get_running_loop()
        server = Faults(answers=[(200, {})], plan=iter([429]), headers={"Retry-After": "1"})
        async with server, Api(server.configuration) as api:
            waiting = asyncio.create_task(api.get("Pod", "n", "p", retry=True))
            await eventually(lambda: api.requests[("get", "pods", 429)], "the first answer")
            asked_at = loop.time()
            await waiting
            assert loop.time() - asked_at > 0.8  # far more than the longest pause of these tests

    asyncio.run(run())


def test_an_api_server_that_is_away_is_waited_for_and_the_loop_goes_on():
    async def run():
        async with Faults(answers=[(200, {"kind": "Pod"})]) as server, Api(server.configuration) as api:
            await server.away()
            waiting = asyncio.create_task(api.get("Pod", "n", "p", retry=True))
            await eventually(lambda: api.requests[("get", "pods", 0)] >= 3, "tries without an answer")
            assert not waiting.done()
            await server.up()
            assert (await waiting)["kind"] == "Pod"

    asyncio.run(run())


def test_lists_are_read_page_by_page_and_each_item_says_what_it_is():
    pages = [
        (200, {"metadata": {"continue": "more"}, "items": [{"a": 1}]}),
        (200, {"metadata": {}, "items": [{"a": 2}]}),
    ]
    found, _, server = asked(pages, lambda api: api.list("StatefulSet", "n", "a=b"))
    assert found == [{"apiVersion": "apps/v1", "kind": "StatefulSet", "a": number} for number in (1, 2)]
    assert [each.query for each in server.seen] == [
        {"limit": "500", "labelSelector": "a=b"}, {"limit": "500", "labelSelector": "a=b", "continue": "more"},
    ]  # fmt: skip


def test_a_page_is_no_more_than_was_asked_for():
    """However many there are, one request is made."""
    more = (200, {"metadata": {"continue": "next"}, "items": [{"note": "x"}]})
    found, api, _ = asked([more], lambda api: api.page("Event", "n", "reason=FailedCreate", 5))
    assert found == [{"note": "x"}]
    assert api.requests == {("list", "events", 200): 1}
    error, _, _ = asked([(403, {})], lambda api: api.page("Event", "n", "reason=FailedCreate", 5))
    assert isinstance(error, ApiError)


@pytest.mark.cluster
def test_pages_are_of_the_fields_that_were_asked_for():
    async def run() -> None:
        async with await Api.connect(kube.kubeconfig()) as api, kube.namespace(api) as namespace:
            about = await api.create(config("c", namespace))
            for number in range(3):
                await api.event(about, "Warning", "FailedCreate", f"{number}")
            await api.event(about, "Warning", "Other", "not asked for")
            fields = "reason=FailedCreate,regarding.kind=ConfigMap"
            found = await api.page("Event", namespace, fields, 2)
            assert len(found) == 2
            assert {event["reason"] for event in await api.page("Event", namespace, fields, 10)} == {"FailedCreate"}
            assert await api.page("Event", namespace, "regarding.kind=StatefulSet", 10) == []

    asyncio.run(run())


def test_a_list_that_has_expired_between_pages_begins_again():
    pages = [
        (200, {"metadata": {"continue": "more"}, "items": [{"a": 1}]}),
        (410, {"message": "expired"}),
        (200, {"items": [{"a": 3}]}),
    ]
    found, _, _ = asked(pages, lambda api: api.list("Pod", "n"))
    assert [item["a"] for item in found] == [3]


def test_a_status_is_changed_from_what_it_is_by_then():
    old = config("x") | {"status": {"n": 1}}
    answers = [(200, old), (409, {}), (200, old | {"status": {"n": 5}}), (200, {"written": True})]

    def change(item):
        return {"n": item["status"]["n"] + 1}

    found, _, server = asked(answers, lambda api: api.set_status("ConfigMap", "n", "x", change))
    assert found == {"written": True}
    assert [each.body["status"] for each in server.seen if each.method == "PUT"] == [{"n": 2}, {"n": 6}]


def test_a_status_that_is_as_wanted_is_not_written():
    found, _, server = asked(
        [(200, {"status": {"n": 1}})], lambda api: api.set_status("ConfigMap", "n", "x", lambda _: {"n": 1})
    )
    assert found == {"status": {"n": 1}}
    assert [each.method for each in server.seen] == ["GET"]


def test_deletion_names_what_it_means():
    _, _, server = asked([(200, {})], lambda api: api.delete("Pod", "n", "p", uid="u", version="7", grace_seconds=0))
    assert server.seen[0].body == {
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": {"uid": "u", "resourceVersion": "7"}, "gracePeriodSeconds": 0,
    }  # fmt: skip


def test_repeats_of_an_event_are_counted():
    async def run():
        server = Faults(answers=[(201, {}), (200, {}), (200, {}), (201, {}), (404, {}), (201, {})])
        async with server, Api(server.configuration, "test") as api:
            for message in ("m", "m", "m", "other", "m"):
                await api.event(config("x"), "Normal", "Moved", message)
            writes = [(each.method, (each.body.get("series") or {}).get("count")) for each in server.seen]
            assert writes == [("POST", None), ("PATCH", 2), ("PATCH", 3), ("POST", None), ("PATCH", 4), ("POST", None)]

    asyncio.run(run())


def test_the_note_of_an_event_is_bounded_in_bytes():
    _, _, server = asked([(201, {})], lambda api: api.event(config("x"), "Normal", "Moved", "é" * 2000))
    note = server.seen[0].body["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("é…")


# ---------------------------------------------------------------- the real one


def on_cluster(test, *, when=None, plan=None):
    """Run a test with a client that connects through the proxy, and a namespace."""

    async def run():
        async with (
            Faults(upstream=kube.kubeconfig(), when=when) as proxy,
            Api(proxy.configuration, "test") as api,
            kube.namespace(api) as namespace,
        ):
            proxy.plan = plan
            try:
                await test(api, namespace, proxy)
            finally:
                proxy.plan = proxy.when = None

    asyncio.run(run())


@pytest.mark.cluster
def test_objects_come_change_and_go():
    async def test(api: Api, namespace: str, proxy: Faults):
        made = await api.create(config("x", namespace, a="1"))
        with pytest.raises(ApiConflictError, match="already exists"):
            await api.create(config("x", namespace, a="1"))
        await api.apply(config("x", namespace, b="2"))
        await api.patch("ConfigMap", namespace, "x", {"data": {"c": "3"}})
        assert (await api.get("ConfigMap", namespace, "x"))["data"] == {"a": "1", "b": "2", "c": "3"}
        await api.apply(config("y", namespace, a="1", b="2"))
        assert (await api.apply(config("y", namespace, b="3")))["data"] == {"b": "3"}
        assert {item["metadata"]["name"] for item in await api.list("ConfigMap", namespace)} >= {"x", "y"}
        with pytest.raises(ApiConflictError):
            await api.delete("ConfigMap", namespace, "x", uid="another")
        await api.delete("ConfigMap", namespace, "x", uid=made["metadata"]["uid"])
        with pytest.raises(ApiNotFoundError):
            await api.get("ConfigMap", namespace, "x")

    on_cluster(test)


@pytest.mark.cluster
def test_applying_the_same_again_changes_nothing():
    async def test(api: Api, namespace: str, proxy: Faults):
        first = await api.apply(config("x", namespace, a="1"))
        again = await api.apply(config("x", namespace, a="1"))
        assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]

    on_cluster(test)


@pytest.mark.cluster
def test_connections_are_made_by_kubeconfig():
    async def run():
        async with await Api.connect(kube.kubeconfig()) as api:
            assert await api.list("Namespace", "")

    asyncio.run(run())


@pytest.mark.cluster
@pytest.mark.parametrize("fault", [429, 500, 503, "drop", "lose"])
def test_what_is_applied_comes_through_faults_once(fault):
    async def test(api: Api, namespace: str, proxy: Faults):
        await api.apply(config("x", namespace, a="1"), retry=True)
        assert (await api.get("ConfigMap", namespace, "x", retry=True))["data"] == {"a": "1"}

    on_cluster(test, plan=iter([fault, fault, None, fault]))


@pytest.mark.sweep
@pytest.mark.cluster
def test_writers_of_one_status_lose_nothing_of_each_other():
    """Each adds its number to a list, all at once, through lost answers: every number is there, and once."""

    async def test(api: Api, namespace: str, proxy: Faults):
        await kube.apply_definitions(api)
        fleet = {
            "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet",
            "metadata": {"name": "f", "namespace": namespace}, "spec": {"security": {"plain": True}},
        }  # fmt: skip
        await api.create(fleet)
        proxy.plan = chain(*([None, None, None, None, "lose"] for _ in range(20)))

        async def add(name: str):
            def change(item):
                status = item.get("status", {})
                return {**status, "draining": sorted({*status.get("draining", []), name})}

            await api.set_status("BrokerFleet", namespace, "f", change, retry=True)

        names = [f"edge-{number}" for number in range(8)]
        await asyncio.gather(*(add(name) for name in names))
        assert (await api.get("BrokerFleet", namespace, "f", retry=True))["status"]["draining"] == names

    on_cluster(test)


@pytest.mark.cluster
def test_events_are_read_back_with_their_counts():
    async def test(api: Api, namespace: str, proxy: Faults):
        made = await api.create(config("x", namespace))
        for _ in range(3):
            await api.event(made, "Warning", "PlanStale", "the fleet has changed")
        (found,) = [e for e in await api.list("Event", namespace) if e["reason"] == "PlanStale"]
        assert found["series"]["count"] == 3
        assert found["regarding"]["uid"] == made["metadata"]["uid"]
        assert (found["type"], found["note"]) == ("Warning", "the fleet has changed")

    on_cluster(test)


@pytest.mark.cluster
def test_an_outage_ends_and_what_was_asked_is_answered():
    async def test(api: Api, namespace: str, proxy: Faults):
        await proxy.away()
        writing = asyncio.create_task(api.apply(config("x", namespace, a="1"), retry=True))
        await eventually(lambda: api.requests[("patch", "configmaps", 0)] >= 2, "tries without an answer")
        assert api.outage_seconds > 0
        await proxy.up()
        assert (await asyncio.wait_for(writing, 300))["data"] == {"a": "1"}
        assert api.outage_seconds == 0
        await api.delete("ConfigMap", namespace, "x")

    on_cluster(test)
