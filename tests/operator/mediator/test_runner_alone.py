"""A mediator without a real API server, for cases that no real one can be brought to."""

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry
from tests.operator.faults import cancelled

from plimsoll.core.session import SaveMemory
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator.control_plane import LoadReportReceived, MalformedReply, StatusReceived
from plimsoll.mediator.fleet_view import policy_memories
from plimsoll.operator.api import ApiNotFoundError
from plimsoll.operator.mediator.event_queue import EVENT_QUEUE_LIMIT
from plimsoll.operator.mediator.runner import FleetMediator
from plimsoll.operator.mediator.session_store import ApiSessionStore
from plimsoll.operator.session_metrics import SessionMetrics


def item(name: str) -> dict[str, Any]:
    return {"kind": "LoadBalancingSession", "metadata": {"namespace": "ns", "name": name, "uid": name}}


def test_more_events_than_can_wait_make_room_for_the_latest_and_end_nothing():
    class Slow:
        def __init__(self) -> None:
            self.told: list[str] = []
            self.asked, self.answers = asyncio.Event(), asyncio.Event()

        async def event(self, about: dict[str, Any], *_: str) -> None:
            self.told.append(about["metadata"]["name"])
            self.asked.set()
            await self.answers.wait()

    async def story() -> None:
        api: Any = Slow()
        mediating = FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())
        telling = asyncio.create_task(mediating._events.run())
        mediating._events.emit(item("first"), "Normal", "Planned", "")
        async with asyncio.timeout(300):
            await api.asked.wait()
            for number in range(EVENT_QUEUE_LIMIT):
                mediating._events.emit(item(f"later-{number}"), "Normal", "Planned", "")
            api.answers.set()
            while not telling.done() and len(api.told) <= EVENT_QUEUE_LIMIT:  # noqa: ASYNC110  # as long as it goes on
                await asyncio.sleep(0)
        assert not telling.done()
        assert (api.told[0], api.told[-1], len(api.told)) == (
            "first",
            f"later-{EVENT_QUEUE_LIMIT - 1}",
            EVENT_QUEUE_LIMIT + 1,
        )
        await cancelled(telling)

    asyncio.run(story())


def test_what_a_broker_says_and_cannot_be_is_counted_and_told_of_once_with_its_name():
    async def story() -> None:
        registry = CollectorRegistry()
        spec, metrics = BrokerFleetSpec(), SessionMetrics(registry)
        unasked: Any = object()
        mediating = FleetMediator(unasked, "ns", "stocks", None, spec, metrics=metrics)
        edge = {"kind": "EdgeBroker", "metadata": {"name": "e", "namespace": "ns", "uid": "1"}}
        cluster = {"kind": "BrokerCluster", "metadata": {"name": "east", "namespace": "ns", "uid": "2"}}
        fleet = {"kind": "BrokerFleet", "metadata": {"name": "stocks", "namespace": "ns", "uid": "3"}}
        mediating.update_objects([fleet, cluster, edge])
        mediating.brokers.receive(StatusReceived("e", {"epoch": 1}), 1.0)
        why = "is 'x', not a whole number from 0"
        for times in (1, 2):
            for broker in ("e", "east-head", "gone"):
                mediating.brokers.receive(MalformedReply(broker, "epoch", why, times), 2.0)
        told = [(about["metadata"]["name"], tell.reason) for about, tell in mediating._events._waiting]
        assert told == [(name, "MalformedAnswer") for name in ("e", "east", "stocks")]
        assert "gone sent" in mediating._events._waiting[-1][1].message
        assert registry.get_sample_value("plimsoll_malformed_answers_total", {"field": "epoch"}) == 6
        mediating.brokers.receive(LoadReportReceived("e", {"epoch": 1, "seq": 1, "subscribers": 3}), 3.0)
        assert mediating.brokers.readings["e"].answer == {"epoch": 1}

    asyncio.run(story())


class Stored:
    """One session at an API server that keeps its status."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.item = item

    async def replace_status(self, item: dict[str, Any], *, retry: bool) -> dict[str, Any]:
        assert retry
        self.item = item
        return item


def test_a_session_that_cannot_be_read_says_so_and_the_mediator_goes_on():
    async def story() -> None:
        wrong = {
            **item("s"),
            "apiVersion": "plimsoll.dev/v1alpha1",
            "spec": {"scope": "Local", "select": {"count": "many"}},
        }
        wrong["metadata"] |= {"generation": 3}
        api: Any = Stored(wrong)
        mediating = FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())
        await mediating._upsert_session(wrong)
        told = api.item["status"]
        assert (told["phase"], told["reason"]) == ("Requested", "InvalidSpec")
        assert told["message"].startswith("spec.select.count: ")
        (condition,) = told["conditions"]
        assert (condition["type"], condition["status"], condition["observedGeneration"]) == ("Accepted", "False", 3)
        assert "observedGeneration" not in told

    asyncio.run(story())


def test_how_a_session_ended_stays_whatever_is_written_into_it():
    async def story() -> None:
        over = {**item("s"), "apiVersion": "plimsoll.dev/v1alpha1", "spec": {"select": {"count": "many"}}}
        over["metadata"] |= {"generation": 3}
        over["status"] = {"endedAt": "2026-01-01T00:00:00Z", "reason": "Done"}
        api: Any = Stored(over)
        await FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())._upsert_session(over)
        assert api.item is over

    asyncio.run(story())


def test_an_outcome_stays_while_the_finalizer_of_another_keeps_a_deleted_session():
    async def story(status: dict[str, Any]) -> list[str]:
        left = {**item("s"), "apiVersion": "plimsoll.dev/v1alpha1", "spec": {"scope": "Local"}, "status": status}
        left["metadata"] |= {"generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
        api: Any = Stored(left)
        mediating: Any = FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())
        handled: list[Any] = []

        async def handle(event: Any) -> None:
            handled.append(event)

        mediating._handle = handle
        await mediating._upsert_session(left)
        assert api.item["status"] == status
        return [type(event).__name__ for event in handled]

    over = {"phase": "Succeeded", "reason": "AllMoved", "endedAt": "2026-01-01T00:00:00Z"}
    assert asyncio.run(story(over)) == [], "a new session would end as Rejected, with nothing moved"
    assert asyncio.run(story({})) == ["SessionUpserted"], "what was deleted before its first step is refused"


def test_what_a_policy_remembers_goes_into_the_status_of_its_cluster():
    class Clusters:
        def __init__(self) -> None:
            self.east: dict[str, Any] = {
                "kind": "BrokerCluster",
                "metadata": {"name": "east"},
                "status": {"replicas": 2},
            }

        async def set_status(self, kind: str, namespace: str, name: str, change: Any, *, retry: bool) -> dict[str, Any]:
            if (kind, namespace, name, retry) != ("BrokerCluster", "ns", "east", True):
                raise ApiNotFoundError(f"{kind} {name}")
            self.east = {**self.east, "status": change(self.east)}
            return self.east

    async def story() -> None:
        api: Any = Clusters()
        mediating = FleetMediator(api, "ns", "stocks", None, BrokerFleetSpec())
        mediating.epoch = 3
        await mediating._perform(SaveMemory("east", "Bad", {"looks": 1}))
        assert api.east["status"] == {
            "replicas": 2, "policyMemory": {"policy": "Bad", "memory": {"looks": 1}, "mediatorEpoch": 3},
        }  # fmt: skip
        assert policy_memories([api.east])["east"]["memory"] == {"looks": 1}, "the next life finds it in its view"
        await mediating._perform(SaveMemory("gone", "Bad", {}))

    asyncio.run(story())


class Listed(Stored):
    """All sessions of a namespace, and no plan."""

    def __init__(self, *records: object) -> None:
        self.items = [{**item(f"s{number}"), "status": {"record": each}} for number, each in enumerate(records)]

    async def list(self, kind: str, *_: str, retry: bool) -> list[dict[str, Any]]:
        return self.items if kind == "LoadBalancingSession" else []


def test_records_that_someone_has_changed_are_lost_by_themselves():
    api: Any = Listed(5, [], "x", {"plan": 3}, {"batches": [1]}, {"history": 7}, {"plan": {}, "batches": {}})
    loaded = asyncio.run(ApiSessionStore(api, "ns", 1).load())
    assert (loaded.sessions, len(loaded.lost)) == ([], len(api.items))


def test_a_batch_of_an_epoch_that_cannot_be_is_lost_and_raises_no_other():
    record = {"uid": "s0", "name": "s0", "requestedAt": 1, "queuedAt": 1, "phaseAt": 1, "deadlineAt": 2, "kind": "move"}
    batch = {
        "id": f"{10**15}.1", "head": "h", "headEpoch": 1, "source": "s", "target": "t", "targetHead": "",
        "replay": False, "prepareSeconds": 1, "drainSeconds": 1, "begunAt": 1, "members": {},
    }  # fmt: skip
    api: Any = Listed({**record, "batches": [batch]}, record)
    loaded = asyncio.run(ApiSessionStore(api, "ns", 1).load())
    ((_, why),) = loaded.lost
    assert "a batch of epoch 1000000000000000 cannot be" in why
    assert len(loaded.sessions) == 1
