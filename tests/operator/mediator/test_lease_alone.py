"""What the holder of a lease does when others write it, for cases that no real API server can be brought to."""

import asyncio
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.operator.faults import cancelled

from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.operator.api import ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.backoff import backoff_pauses
from plimsoll.operator.mediator import lease
from plimsoll.operator.mediator.lease import ABANDONED_SECONDS, Lease, LeaseLostError, ServingRelease
from plimsoll.operator.mediator.runner import FleetMediator

SECONDS = 0.03
Story = Callable[["Server", asyncio.Task[None]], Any]


class Server:
    """One Lease; each write is answered by what `answers` has next, and goes through when that is None."""

    def __init__(self) -> None:
        self.item: dict[str, Any] | None = None
        self.answers: list[Exception | None] = []
        self.writes = 0
        self.paused: list[float] = []
        self.then: Callable[[], None] = lambda: None

    async def get(self, *_: str, retry: bool = False) -> dict[str, Any]:
        if self.item is None:
            raise ApiNotFoundError("gone")
        return {**self.item, "spec": dict(self.item["spec"])}

    def _answer(self) -> None:
        self.writes += 1
        self.then()
        found = self.answers.pop(0) if self.answers else None
        if found is not None:
            raise found

    async def create(self, item: dict[str, Any], *, retry: bool = False) -> None:
        self._answer()
        self.item = {**item, "metadata": {**item["metadata"], "resourceVersion": "1"}}

    async def patch(self, kind: str, namespace: str, name: str, patch: dict[str, Any], *, retry: bool = False) -> None:
        assert self.item is not None
        self._answer()
        metadata = {**self.item["metadata"], **patch["metadata"]}
        self.item = {"metadata": metadata, "spec": {**self.item["spec"], **patch["spec"]}}

    def pauses(self) -> Iterator[float]:
        for pause in backoff_pauses(0.001, 0.02, random.Random(7)):
            self.paused.append(pause)
            yield pause


def held(story: Story, server: Any, **given: Any) -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        lease = Lease(server, "ns", "mediator", "one", SECONDS, **given)
        async with asyncio.timeout(300):
            task: asyncio.Task[None] = asyncio.create_task(lease.run_while_held(work()))
            await story(server, task)
            if not task.done():
                await cancelled(task)

    asyncio.run(run())


async def until(condition: Callable[[], bool], task: asyncio.Task[None]) -> None:
    while not condition():
        assert not task.done(), task.exception()
        await asyncio.sleep(0.001)


def test_conflicts_in_a_row_end_nothing_and_are_tried_again_after_longer_pauses():
    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.writes == 1, task)
        server.answers = [ApiConflictError("another writer was quicker") for _ in range(6)]
        await until(lambda: server.writes > 9, task)
        assert not server.answers
        first = [server.paused[at] for at in range(5)]
        assert all(later > sooner for sooner, later in pairwise(first)), first

    held(story, Server())


def test_a_lease_that_has_gone_is_made_again():
    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.item is not None, task)
        server.item = None
        await until(lambda: server.item is not None, task)
        server.answers = [ApiNotFoundError("gone between reading and writing") for _ in range(2)]
        before = server.writes
        await until(lambda: server.writes >= before + 3, task)

    held(story, Server())


def test_what_stands_there_after_a_conflict_decides():
    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.item is not None, task)

        def taken() -> None:
            assert server.item is not None
            spec = {"holderIdentity": "two", "renewTime": "later", "leaseDurationSeconds": 60}
            server.item = {**server.item, "spec": spec}

        server.then, server.answers = taken, [ApiConflictError("another writer was quicker")]
        with pytest.raises(LeaseLostError, match="two holds the lease"):
            await task

    held(story, Server())


def test_one_that_someone_has_written_by_hand_is_taken_within_a_bound(monkeypatch: pytest.MonkeyPatch):
    most = 2**31 - 1
    monkeypatch.setattr(lease, "MOST_LEASE_SECONDS", 0.1)
    server = Server()
    spec = {"holderIdentity": "someone", "renewTime": "then", "leaseDurationSeconds": most, "leaseTransitions": most}
    server.item = {"metadata": {"name": "mediator", "resourceVersion": "1"}, "spec": spec}

    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.writes > 1, task)
        assert server.item is not None
        assert (server.item["spec"]["leaseDurationSeconds"], server.item["spec"]["leaseTransitions"]) == (1, most)

    held(story, server)


@pytest.mark.parametrize("is_there", [False, True])
def test_it_belongs_to_its_owner_also_where_it_was_made_without_one(is_there: bool):
    owner, server = {"kind": "BrokerFleet", "name": "stocks", "uid": "7"}, Server()
    if is_there:
        metadata = {"name": "mediator", "resourceVersion": "1"}
        server.item = {"metadata": metadata, "spec": {"holderIdentity": ""}}

    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.writes > 1, task)
        assert server.item is not None
        assert server.item["metadata"]["ownerReferences"] == [owner]

    held(story, server, owner=owner)


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (ApiError(500, "etcd is full"), "lease ns/mediator was not released"),
        (ApiConflictError("an operator was quicker"), "an operator was quicker"),
        (TimeoutError(), "no answer in time"),
        (ApiNotFoundError("deleted"), ""),
    ],
)
def test_a_lease_that_cannot_be_given_back_is_logged_unless_it_has_gone(
    answer: Exception, logged: str, caplog: pytest.LogCaptureFixture
):
    async def story(server: Server, task: asyncio.Task[None]) -> None:
        await until(lambda: server.item is not None, task)
        server.answers = [answer] * 9
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    held(story, Server())
    assert logged in caplog.text
    assert bool(caplog.records) == bool(logged)


def test_it_is_fresh_until_another_one_could_have_taken_it():
    server: Any = Server()

    async def run() -> None:
        lease = Lease(server, "ns", "mediator", "one", SECONDS)

        def is_fresh() -> bool:
            return lease.is_fresh

        assert not is_fresh()
        await lease.acquire()
        assert is_fresh()
        async with asyncio.timeout(300):
            while is_fresh():  # noqa: ASYNC110  # until its time is over
                await asyncio.sleep(0.001)
            await lease.acquire()
            assert is_fresh()
            await lease._write(release=True)
        assert not is_fresh(), "given back"

    asyncio.run(run())


def test_who_has_not_mediated_yet_cannot_have_been_deposed():
    async def run() -> None:
        server: Any = Server()
        mediating = FleetMediator(server, "ns", "f", None, BrokerFleetSpec())
        assert not mediating.may_be_deposed
        mediating._lease = Lease(server, "ns", "mediator", "one", SECONDS)
        assert not mediating.may_be_deposed, "it waits for its lease"
        mediating.epochs_begun = 1
        assert mediating.may_be_deposed

    asyncio.run(run())


def test_a_lease_says_which_release_serves_until_it_has_long_not_been_renewed():
    async def story(server: Server, task: asyncio.Task[None]) -> None:
        api: Any = server
        loop, passed = asyncio.get_running_loop(), 0.0
        written = asyncio.Event()
        server.then = written.set
        if server.item is None:
            await written.wait()
            await asyncio.sleep(0)
        clock = loop.time
        own, other, unnamed = (ServingRelease(api, "ns", name) for name in ("a/one", "b/two", ""))
        assert [await each.other("f") for each in (own, other, unnamed)] == ["", "a/one", ""]
        await cancelled(task)
        assert server.item is not None
        assert server.item["spec"]["holderIdentity"] == ""
        loop.time = lambda: clock() + passed  # a clock of the test
        assert await other.other("f") == "a/one", "its operator may be replaced now"
        passed = ABANDONED_SECONDS + 1
        assert await other.other("f") == ""
        loop.time = clock
        await Lease(api, "ns", "mediator", "two", SECONDS, release="b/two").acquire()
        assert await own.other("f") == "b/two"

    held(story, Server(), release="a/one")


def test_a_fleet_without_a_lease_is_served_by_nobody():
    async def story() -> None:
        api: Any = Server()
        assert await ServingRelease(api, "ns", "a/one").other("f") == ""

    asyncio.run(story())
