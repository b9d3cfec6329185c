"""A fleet's mediator at a real API server, with real brokers: it stores before it sends, resumes, and is deposed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.local.traffic import Traffic
from tests.operator import kube
from tests.operator.brokers import HEAD, Brokers, Fleet, Life, asked, condition
from tests.operator.faults import Faults, Seen, cancelled, eventually

from plimsoll.core.protocol.messages import Command
from plimsoll.core.session import Session, observed_session
from plimsoll.core.verify.session_checker import SessionChecker
from plimsoll.mediator import control_plane, plan_storage, session_objects
from plimsoll.operator.api import Api, ApiNotFoundError
from plimsoll.operator.mediator import broker_poller, session_store
from plimsoll.operator.mediator.epochs import OperatorDeposedError

pytestmark = pytest.mark.cluster

RESUMED_SECONDS = 300.0


class Killed(BaseException):
    """The process has been killed: no part of it goes on. `done`: after its last write was carried out."""

    def __init__(self, what: str, *, done: bool = False) -> None:
        super().__init__(what)
        self.done = done


Test = Callable[[Fleet, Api, Faults], Awaitable[None]]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with Brokers(tmp_path_factory.mktemp("brokers")) as started:
        yield started


@pytest.fixture
def traffic(brokers: Brokers) -> Iterator[Traffic]:
    """Nine subscribers, and a publisher. In every test nothing is lost, repeated or out of order."""
    with Traffic(brokers.entry, 9, per_second=100.0) as running:
        yield running
        verdict = running.verdict()
        assert verdict.ok, verdict
        assert (verdict.lost, verdict.gaps) == (0, 0)


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionChecker]:
    """Every status that any mediator stores is checked by law I5 and the order of phases."""
    checker = SessionChecker(slack_seconds=RESUMED_SECONDS)
    save = session_store.ApiSessionStore.save

    async def noted(self: session_store.ApiSessionStore, session: Session, now: float) -> dict[str, Any]:
        saving = asyncio.ensure_future(save(self, session, now))
        try:
            item = await asyncio.shield(saving)
        except asyncio.CancelledError:  # by the end of the test: sessions that may have been stored reach their end
            await asyncio.wait([saving], timeout=5)
            if saving.cancel() is False and not saving.cancelled() and saving.exception() is None:
                checker.add(observed_session(session, now))
            raise
        except Killed as death:
            if death.done:
                checker.add(observed_session(session, now))
            raise
        checker.add(observed_session(session, now))
        return item

    forget = session_store.ApiSessionStore.forget

    def forgotten(self: session_store.ApiSessionStore, uid: str) -> None:
        checker.forget(uid)
        forget(self, uid)

    monkeypatch.setattr(session_store.ApiSessionStore, "save", noted)
    monkeypatch.setattr(session_store.ApiSessionStore, "forget", forgotten)
    yield checker
    assert checker.judge(time.time()) == []


def with_fleet(brokers: Brokers, test: Test) -> None:
    """Run a test with a namespace that has the fleet, and a proxy to the API server for its mediators."""

    async def run() -> None:
        async with await Api.connect(kube.kubeconfig()) as api:
            await kube.apply_definitions(api)
            async with kube.namespace(api) as namespace, Faults(upstream=kube.kubeconfig()) as proxy:
                fleet = Fleet(api, namespace, brokers)
                await fleet.make()
                async with Api(proxy.configuration, "one") as mediators:
                    await test(fleet, mediators, proxy)

    asyncio.run(run())


def outcome(item: dict[str, Any]) -> tuple[str, str]:
    found = condition(item, "Succeeded")
    return found["status"], found["reason"]


# ---------------------------------------------------------------- one session, as users see it


def test_from_request_to_success(brokers: Brokers, traffic: Traffic):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as life:
            here = len(traffic.at("a"))
            assert here
            await fleet.ask("move", target={"name": "b"}, select={"count": here}, limits={"maxInFlight": 2})
            item = await fleet.ended("move")
            assert outcome(item) == ("True", "Moved")
            await eventually(lambda: traffic.at("a") == [], "all subscribers to have moved")
            status = item["status"]
            assert status["progress"] | {"planned": here, "moved": here, "percent": 100} == status["progress"]
            assert {edge["name"] for edge in status["measured"]["edges"]} == {"a", "b"}
            assert status["mediatorEpoch"] == life.mediating.epoch == fleet.epoch + 1
            assert "errorPercentMax" in status["measured"]
            maps = [
                await fleet.api.get(plan_storage.PLAN_KIND, fleet.namespace, name) for name in status["planObjects"]
            ]
            whole = session_objects.stored_session(plan_storage.with_full_record(item, maps))
            assert whole is not None
            assert set(whole.outcomes().values()) == {"moved"}
            assert maps[0]["metadata"]["ownerReferences"][0]["uid"] == item["metadata"]["uid"]
            await eventually(lambda: told(fleet, "move"), "an event of its end")
            writes = sum(number for (verb, _, _), number in api.requests.items() if verb not in ("get", "list"))
            print(f"{writes} writes for a session of {len(whole.batches)} batches: {dict(api.requests)}")
            seconds = (whole.ended_at or 0.0) - whole.requested_at  # progress is stored once a second
            assert writes <= 12 + 4 * len(whole.batches) + seconds

    with_fleet(brokers, test)


async def told(fleet: Fleet, name: str) -> list[str]:
    items = await fleet.api.list("Event", fleet.namespace)
    return [item["reason"] for item in items if item["regarding"]["name"] == name and item["reason"] == "Moved"]


@pytest.mark.sweep
def test_a_drain_is_a_parent_that_owns_its_pairs_and_takes_no_newcomers_meanwhile(brokers: Brokers, traffic: Traffic):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as life:
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            await fleet.ask("drain", action="Drain", scope="Global", source={"name": source})
            await fleet.in_phase("drain", "Preparing", "Draining", "Stabilizing")
            await eventually(lambda: life.mediating.brokers.draining == {source}, "the drain to be said")
            stored = await fleet.api.get("BrokerFleet", fleet.namespace, "quotes")
            assert stored["status"]["draining"] == [source]
            item = await fleet.ended("drain", 60.0)
            assert outcome(item)[0] == "True", item["status"]
            children = [child["name"] for child in item["status"]["children"]]
            owner = (await fleet.get(children[0]))["metadata"]["ownerReferences"][0]
            assert (owner["name"], owner["controller"]) == ("drain", True)
            await eventually(lambda: not life.mediating.brokers.draining, "the end of the drain to be said")
            assert traffic.at(source) == []

    with_fleet(brokers, test)


@pytest.mark.sweep
def test_a_dry_run_is_carried_out_when_its_hash_is_approved_and_waiting_is_not_fooled(
    brokers: Brokers, traffic: Traffic
):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api):
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            before = traffic.at(source)
            await fleet.ask("dry", source={"name": source}, mode="DryRun", select={"count": 2})
            planned = await fleet.ended("dry")
            assert outcome(planned) == ("True", "DryRun")
            assert traffic.at(source) == before, "no subscriber has moved"
            approval = {"policy": "Manual", "planHash": planned["status"]["planHash"]}
            changed = await fleet.change("dry", mode="Execute", approval=approval)
            assert outcome(changed) == ("Unknown", "Stale"), "what was observed of the dry run is no end of this"
            waited = await kubectl_wait(fleet, "dry")
            item = await fleet.get("dry")
            assert outcome(item) == ("True", "Moved")
            assert waited in (None, 0)
            assert item["status"]["planHash"] == planned["status"]["planHash"], "exactly that plan"
            await eventually(lambda: len(traffic.at(source)) == len(before) - 2, "two to have moved")

    with_fleet(brokers, test)


async def kubectl_wait(fleet: Fleet, name: str) -> int | None:
    """What users type; without kubectl, what it does."""
    program = shutil.which("kubectl")
    if program is None:
        await fleet.ended(name)
        return None
    wait = ("wait", "--for=condition=Succeeded", f"lbs/{name}", "--namespace", fleet.namespace, "--timeout=30s")
    process = await asyncio.create_subprocess_exec(program, *wait, stdout=asyncio.subprocess.DEVNULL)
    return await process.wait()


@pytest.mark.sweep
def test_a_plan_that_has_become_stale_is_refused_with_the_difference(brokers: Brokers, traffic: Traffic):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api):
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            gone, *_ = traffic.at(source)
            limits = {"moveInterval": "0s"}
            await fleet.ask(
                "late", source={"name": source}, approval={"policy": "Manual"}, select={"count": 2}, limits=limits
            )
            planned = await fleet.in_phase("late", "Planned")
            await fleet.ask("quick", source={"name": source}, select={"names": [gone]}, limits=limits)
            assert outcome(await fleet.ended("quick")) == ("True", "Moved")
            await fleet.change("late", approval={"policy": "Manual", "planHash": planned["status"]["planHash"]})
            stale = await fleet.until(
                "late", "its refusal", lambda item: condition(item, "Approved")["reason"] == "PlanStale"
            )
            assert gone in stale["status"]["message"]
            assert outcome(stale)[0] == "Unknown"
            assert stale["status"]["progress"]["moved"] == 0
            await fleet.change("late", approval={"policy": "Manual", "planHash": stale["status"]["planHash"]})
            assert outcome(await fleet.ended("late")) == ("True", "Moved")

    with_fleet(brokers, test)


@pytest.mark.sweep
def test_a_session_that_is_deleted_on_its_way_leaves_nothing_and_its_name_can_be_used_again(
    brokers: Brokers, traffic: Traffic
):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as life:
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            given = {
                "source": {"name": source},
                "select": {"count": 3},
                "limits": {"maxInFlight": 1, "moveInterval": "0s"},
            }
            first = await fleet.ask("again", **given)
            await fleet.in_phase("again", "Preparing", "Cutting", "Draining")
            await fleet.api.delete(session_objects.SESSION_KIND, fleet.namespace, "again")
            await fleet.ask("again", **given)
            assert outcome(await fleet.ended("again"))[0] == "True"
            assert first["metadata"]["uid"] not in life.mediating.sessions

    with_fleet(brokers, test)


def test_objects_are_deleted_when_their_time_is_over(brokers: Brokers):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api):
            await fleet.ask("short", mode="DryRun", select={"count": 1}, ttl="1s")

            async def gone() -> bool:
                with contextlib.suppress(ApiNotFoundError):  # it is what is waited for
                    await fleet.get("short")
                    return False
                return True

            await eventually(gone, "its deletion")

    with_fleet(brokers, test)


@pytest.mark.sweep
def test_nothing_is_commanded_that_is_not_stored(brokers: Brokers, traffic: Traffic, monkeypatch: pytest.MonkeyPatch):
    commanded: list[str] = []

    class Control(control_plane.ControlPlane):
        def send(self, broker: str, record: Any) -> None:
            commanded.extend([record.step] if isinstance(record, Command) else [])
            super().send(broker, record)

    monkeypatch.setattr(broker_poller, "ControlPlane", Control)

    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api):
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            await fleet.ask("first", source={"name": source}, approval={"policy": "Manual"}, select={"count": 1})
            planned = await fleet.in_phase("first", "Planned")
            refused: list[Seen] = []

            def refusing(seen: Seen) -> int | None:
                """The first status that has a batch: its command would be sent next."""
                if seen.method != "PUT" or "batch" not in seen.body["status"]:
                    return None
                refused.append(seen)
                return 503

            proxy.when = refusing
            await fleet.change("first", approval={"policy": "Manual", "planHash": planned["status"]["planHash"]})
            await eventually(lambda: len(refused) > 2, "some tries to store it")
            assert commanded == []
            assert "batch" not in (await fleet.get("first"))["status"]
            proxy.when = None
            assert outcome(await fleet.ended("first")) == ("True", "Moved")
            assert {"prepare", "cut"} <= set(commanded)

    with_fleet(brokers, test)


# ---------------------------------------------------------------- two at once


@pytest.mark.sweep
def test_of_two_mediators_the_older_one_is_deposed_and_everything_is_moved_once(brokers: Brokers, traffic: Traffic):
    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as old:
            old.expected = True
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            limits = {"maxInFlight": 1, "moveInterval": "0s"}
            await fleet.ask("both", source={"name": source}, select={"count": 4}, limits=limits)
            await fleet.in_phase("both", "Preparing", "Cutting", "Draining")
            async with Api(proxy.configuration, "two") as other, Life(fleet, other) as new:
                item = await fleet.ended("both")
                assert item["status"]["mediatorEpoch"] == new.mediating.epoch > old.mediating.epoch
                assert outcome(item) == ("True", "Moved")
                with pytest.raises(OperatorDeposedError):
                    await asyncio.wait_for(old.running, 300)

    with_fleet(brokers, test)


@pytest.mark.sweep
def test_an_older_mediator_without_watch_events_still_cannot_write(brokers: Brokers, traffic: Traffic):
    """It is shown no fleet with the new epoch: it finds out by its first write, before it sends anything."""

    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as old:
            old.expected = True
            await eventually(lambda: old.mediating.epochs_begun, "its epoch")
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            await fleet.ask("first", source={"name": source}, approval={"policy": "Manual"}, select={"count": 1})
            await fleet.in_phase("first", "Planned")
            old.mediating.update_objects = lambda objects: None  # its watches deliver nothing
            async with Api(proxy.configuration, "two") as other, Life(fleet, other) as new:
                await eventually(lambda: new.mediating.epochs_begun, "the next epoch")
                await fleet.change("first", stop=True)
                with pytest.raises(OperatorDeposedError, match=f"mediator epoch {old.mediating.epoch} is over"):
                    await asyncio.wait_for(old.running, 300)
                assert outcome(await fleet.ended("first"))[0] == "False"

    with_fleet(brokers, test)


# ---------------------------------------------------------------- killed at each point


class Deadly:
    """Counts a mediator's writes and messages; it dies at the Nth of them. `after`: the Nth is carried out first."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after = at, after
        self.count = 0
        self.died_at = 0.0
        self.last = ""

    def passes(self, what: str) -> bool:
        """Whether it is done at all; raises if it was never reached."""
        self.count += 1
        if self.count == self.at:
            self.last, self.died_at = what, time.monotonic()
        if self.count > self.at or (self.count == self.at and not self.after):
            raise Killed(what)
        return self.count == self.at

    async def around(self, ask: Any, *args: Any, **options: Any) -> Any:
        verb, kind = args[0], args[1]
        if verb in ("get", "list") or kind == "Event":
            return await ask(*args, **options)
        last = self.passes(f"{verb} {kind}")
        found = await ask(*args, **options)
        if last:
            raise Killed(f"{verb} {kind}", done="Session" in kind)
        return found


@contextlib.contextmanager
def deadly(monkeypatch: pytest.MonkeyPatch, api: Api, at: int, *, after: bool) -> Iterator[Deadly]:
    """In this block, a mediator with this client of the API server lives until it has reached its fail point."""
    way = Deadly(at, after=after)
    ask, plain = api._ask, control_plane.ControlPlane

    class Control(plain):  # type: ignore[valid-type]  # the class that stands there now
        def send(self, broker: str, record: Any) -> None:
            last = way.passes(f"send {type(record).__name__} {getattr(record, 'step', '')}")
            super().send(broker, record)
            if last:
                raise Killed("send")

    api._ask = lambda *args, **options: way.around(ask, *args, **options)
    monkeypatch.setattr(broker_poller, "ControlPlane", Control)
    try:
        yield way
    finally:
        api._ask = ask
        monkeypatch.setattr(broker_poller, "ControlPlane", plain)


NEVER = 1_000_000


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_killed_at_any_point_it_goes_on_where_it_stood(
    brokers: Brokers, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
):
    """`PLIMSOLL_FAIL_POINTS=all` takes every point, once before and once after it; else a seeded sample of them."""

    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        limits = {"maxInFlight": 1, "moveInterval": "0s"}
        rows: list[str] = []

        async def session(name: str, at: int, *, after: bool) -> Deadly:
            source, target = ("a", "b") if len(traffic.at("a")) >= len(traffic.at("b")) else ("b", "a")
            to_move, moved = traffic.at(source)[:2], 2
            with deadly(monkeypatch, api, at, after=after) as way:
                async with Life(fleet, api) as life:
                    life.expected = True
                    given = {"source": {"name": source}, "target": {"name": target}, "limits": limits}
                    await fleet.ask(name, select={"names": to_move}, **given)
                    ending = asyncio.create_task(fleet.ended(name))
                    await asyncio.wait((ending, life.running), return_when=asyncio.FIRST_COMPLETED)
                    if ending.done():
                        ending.result()
                        way.died_at = 0.0
                    else:
                        await cancelled(ending)
            if way.died_at:
                async with Life(fleet, api) as next_life:
                    item = await fleet.ended(name, RESUMED_SECONDS)
                    took = time.monotonic() - next_life.began_at
                    counts = item["status"]["progress"]
                    assert outcome(item)[0] == "True", (way.last, item["status"])
                    assert counts["moved"] + counts["stayed"] == 2, counts
                    moved = counts["moved"]  # a head gives up a batch whose mediator is away for too long
                when = "after" if after else "before"
                rows.append(f"{way.at:3} {when:6} {way.last:30} {moved} moved, ended after {took:5.2f} s")
                print(rows[-1], flush=True)
            await eventually(
                lambda: len(set(to_move) & set(traffic.at(target))) == moved,
                f"{name}: {moved} of {to_move} at {target}",
            )
            return way

        points = (await session("whole", NEVER, after=False)).count
        assert points > 12
        cases = [(at, after) for at in range(1, points + 1) for after in (False, True)]
        if os.environ.get("PLIMSOLL_FAIL_POINTS") != "all":
            seed = int(os.environ.get("PLIMSOLL_SEED", "7"))
            cases = sorted(random.Random(seed).sample(cases, 4))
            print(f"seed {seed}")
        for number, (at, after) in enumerate(cases):
            await session(f"killed-{number}", at, after=after)
        assert len(rows) > len(cases) / 2, "most points were reached"

    with_fleet(brokers, test)


# ---------------------------------------------------------------- the API server is away


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_an_outage_of_the_api_server_disturbs_no_delivery_and_status_is_right_after(brokers: Brokers, traffic: Traffic):
    """`PLIMSOLL_OUTAGE_SECONDS` says how long it is away: 300 for the figure that is promised."""
    away = float(os.environ.get("PLIMSOLL_OUTAGE_SECONDS", "4"))

    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as life:
            source = max("ab", key=lambda edge: len(traffic.at(edge)))
            limits = {"maxInFlight": 1, "moveInterval": "0s"}
            before = traffic.at(source)
            await fleet.ask("out", source={"name": source}, select={"count": 4}, limits=limits, retries=2)
            await fleet.in_phase("out", "Preparing", "Cutting", "Draining")
            await proxy.away()
            sent = traffic.sent
            gone_at = time.monotonic()
            await eventually(
                lambda: time.monotonic() - gone_at >= away and traffic.sent > sent + 50 * away,
                "publishing to go on through the outage",
                away + 20,
            )
            await eventually(
                lambda: min(traffic.last.values()) > sent, "all subscribers to have the publications of the outage", 5
            )
            looked_at = time.monotonic()

            def has_answered() -> bool:
                age = life.mediating.brokers.readings[HEAD].answer_age
                return age is not None and age < time.monotonic() - looked_at

            await eventually(has_answered, "brokers to be asked still")
            back_at = time.monotonic()
            await proxy.up()
            item = await fleet.ended("out", 60)
            print(f"away for {away:g} s: status right {time.monotonic() - back_at:.1f} s after")
            assert outcome(item)[0] == "True", item["status"]
            counts = item["status"]["progress"]
            moved = counts["moved"] + sum(one.get("moved", 0) for one in item["status"]["history"])
            assert moved + counts["stayed"] == min(4, len(before)), (counts, item["status"]["history"])
            await eventually(lambda: len(traffic.at(source)) == len(before) - moved, "what status says to be so")

    with_fleet(brokers, test)


@pytest.mark.sweep
def test_an_unreadable_session_is_reported_and_changes_nothing(brokers: Brokers):
    """The definitions refuse it at a real API server, so it comes by a watch that has an older one."""

    async def test(fleet: Fleet, api: Api, proxy: Faults) -> None:
        async with Life(fleet, api) as life:
            await eventually(lambda: life.mediating.epochs_begun, "its beginning")
            metadata = {"name": "odd", "namespace": fleet.namespace, "uid": "u", "generation": 1}
            life.mediating.session_changed("ADDED", {**asked("odd", scope="Everywhere"), "metadata": metadata})

            async def said() -> bool:
                return any(item["reason"] == "InvalidSpec" for item in await fleet.api.list("Event", fleet.namespace))

            await eventually(said, "an event")
            assert not life.mediating.sessions

    with_fleet(brokers, test)
