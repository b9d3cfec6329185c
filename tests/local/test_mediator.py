"""Sessions of a real fleet: live subscribers change edges while publications flow, even if the mediator dies."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import alive, wait_for
from tests.local.traffic import Traffic

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import SendMessage, SessionUpserted
from plimsoll.core.spec import API_VERSION, parse
from plimsoll.local import manifests, mediator, runtime, store_edits
from plimsoll.local.storage import mediator_epoch
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.mediator_epoch import LocalMediatorDeposedError
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.mediator import fleet_view
from plimsoll.mediator.control_plane import LoadReportReceived
from plimsoll.mediator.steady_clock import SteadyClock

QUICKSTART = (Path(__file__).parents[2] / "examples" / "quickstart.yaml").read_text()
PATIENT = "  name: quickstart\nspec: {defaults: {timing: {deadAfter: 2m}}}\n"
"""No process counts as dead because a test, or a busy machine, pauses it."""
MOVE = {
    "scope": "Local", "source": {"name": "edge-0"}, "target": {"name": "edge-1"}, "mode": "Execute",
    "select": {"sharePercent": 100}, "limits": {"moveInterval": "0s"}, "deadline": "2m",
}  # fmt: skip


class Live:
    """A fleet of real brokers in the background."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder

    def object(self, kind: str, name: str) -> dict[str, Any]:
        with ObjectStore(self.folder.store) as store:
            return next((item for item in store.objects(kind)[1] if item["metadata"]["name"] == name), {})

    def status(self, session: str) -> dict[str, Any]:
        found: dict[str, Any] = self.object("LoadBalancingSession", session).get("status", {})
        return found

    def begin(self, name: str, **changes: Any) -> None:
        store_edits.create_session(self.folder, name, {**MOVE, **changes})

    def end(self, name: str, seconds: float = 300.0) -> dict[str, Any]:
        """The status of a session that has ended."""
        return self.wait_until(name, lambda status: "endedAt" in status, seconds)

    def wait_until(self, name: str, check: Callable[[dict[str, Any]], bool], seconds: float = 300.0) -> dict[str, Any]:
        """The status of a session once a condition holds; fails with the last one, and at once after its end."""
        status: dict[str, Any] = {}

        def is_so() -> bool:
            nonlocal status
            status = self.status(name)
            assert check(status) or "endedAt" not in status, f"{name} has ended: {status}"
            return check(status)

        wait_for(is_so, seconds, f"{name}: {status}")
        return status

    def is_clean(self, name: str, moved: int) -> None:
        """All moved subscribers have counted; the last may have reported after the end."""
        wait_for(lambda: self.status(name)["audit"]["subscribers"] == moved, 300.0, f"{name}: {self.status(name)}")
        sums = dict.fromkeys(("lost", "duplicated", "reordered", "suppressed"), 0)
        assert self.status(name)["audit"] == {"subscribers": moved, **sums}

    @property
    def mediator_pid(self) -> int:
        return int(self.object("BrokerFleet", "quickstart").get("status", {}).get("mediator", {}).get("pid", 0))

    @property
    def epoch(self) -> int:
        return int(self.object("BrokerFleet", "quickstart")["status"]["mediatorEpoch"])


@pytest.fixture
def live(home: Path) -> Iterator[Live]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    assert "  name: quickstart\n" in QUICKSTART
    resources = parse(manifests.parse_text(QUICKSTART.replace("  name: quickstart\n", PATIENT), "quickstart.yaml"))
    runtime.up_detached(resources, lambda line: None)
    folder = FleetFolder.of("quickstart")
    fleet = Live(folder)
    pids = {fleet.mediator_pid}
    yield fleet
    pids.add(fleet.mediator_pid)
    runtime.down(folder)
    wait_for(lambda: not any(pid and alive(pid) for pid in pids))


def test_live_subscribers_move_and_nothing_is_lost(live: Live):
    with Traffic(live.folder, 20) as traffic:
        before = traffic.at("edge-0")
        assert before
        live.begin("one")
        status = live.end("one")
        assert (status["phase"], status["progress"]["moved"]) == ("Succeeded", len(before)), status
        live.is_clean("one", len(before))
        wait_for(lambda: not traffic.at("edge-0"))
        live.begin("back", source={"name": "edge-1"}, target={"name": "edge-0"}, select={"count": 7}, handover="Replay")
        status = live.end("back")
        assert (status["phase"], status["progress"]["moved"]) == ("Succeeded", 7), status
        live.is_clean("back", 7)
        wait_for(lambda: len(traffic.at("edge-0")) == 7)
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)
    assert verdict.expected == verdict.delivered > 0


def frozen_mediator(live: Live) -> Callable[[], None]:
    """It will not see the request."""
    os.kill(live.mediator_pid, signal.SIGSTOP)
    live.begin("one")
    return lambda: None


def frozen_target(live: Live) -> Callable[[], None]:
    """It cannot get any further than its preparation."""
    pid = int(live.object("EdgeBroker", "edge-1")["status"]["pid"])
    live.begin("one", approval={"policy": "Manual"})
    live.wait_until("one", lambda status: status.get("phase") == "Planned")
    os.kill(pid, signal.SIGSTOP)  # while it was not, it was fit to be a target
    store_edits.approve_session(live.folder, "one")
    live.wait_until("one", lambda status: status.get("phase") == "Preparing")
    return lambda: os.kill(pid, signal.SIGCONT)


def at_first_sight(live: Live) -> Callable[[], None]:
    """Somewhere between the first command and the last outcome."""
    live.begin("one")
    with ObjectStore(live.folder.store) as store:
        while store.get("LoadBalancingSession", "one").get("status", {}).get("phase") in (None, "Requested"):
            pass
    return lambda: None


def behind_the_last_cut(live: Live) -> Callable[[], None]:
    live.begin("one")
    live.wait_until("one", lambda status: status.get("phase") in ("Stabilizing", "Succeeded"))
    return lambda: None


KILLED = [
    frozen_mediator,  # before it has begun
    frozen_target,  # in the middle
    pytest.param(at_first_sight, marks=pytest.mark.sweep),  # anywhere
    pytest.param(behind_the_last_cut, marks=pytest.mark.sweep),  # when all is done
]


@pytest.mark.sweep
@pytest.mark.parametrize("until", KILLED)
def test_wherever_the_mediator_is_killed_the_session_comes_to_its_end(live: Live, until: Callable[..., Any]):
    with Traffic(live.folder, 20) as traffic:
        first, began, before = live.mediator_pid, live.epoch, traffic.at("edge-0")
        wake = until(live)
        os.kill(first, signal.SIGKILL)
        wake()
        status = live.end("one")
        # a head does not wait long for a mediator: if that was too late, all is as it was before
        assert status["phase"] in ("Succeeded", "RolledBack"), status
        assert status["progress"]["unknown"] == 0, status
        wait_for(lambda: traffic.at("edge-0") == ([] if status["phase"] == "Succeeded" else before))
        wait_for(lambda: live.epoch > began)
        live.begin("again", source={"name": "edge-1"}, target={"name": "edge-0"}, select={"count": 3})
        assert live.end("again")["phase"] == "Succeeded"
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)
    wait_for(
        lambda: live.object("BrokerFleet", "quickstart")["status"]["mediator"]["lastEnd"] == "was ended by SIGKILL"
    )


@pytest.mark.slow
def test_an_edge_that_is_not_wanted_any_more_is_empty_before_it_leaves(live: Live):
    with Traffic(live.folder, 20) as traffic:
        moved = traffic.at("edge-1")
        text = QUICKSTART.replace("  name: quickstart\n", PATIENT).replace("replicas: 2", "replicas: 1")
        runtime.apply(live.folder, manifests.parse_text(text, "new.yaml"))
        wait_for(lambda: not live.object("EdgeBroker", "edge-1"))
        with ObjectStore(live.folder.store) as store:
            sessions = store.objects("LoadBalancingSession")[1]
        [parent] = [one for one in sessions if one["spec"].get("action") == "Drain"]
        assert (parent["status"]["phase"], parent["status"]["progress"]["moved"]) == ("Succeeded", len(moved))
        wait_for(lambda: len(traffic.at("edge-0")) == 20)
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)


@pytest.mark.sweep
def test_a_drained_edge_stays_empty_and_its_session_goes_with_its_time_to_live(live: Live):
    with Traffic(live.folder, 4):
        store_edits.set_cordoned(live.folder, "edge-0", cordoned=True)
        drain = {"scope": "Global", "source": {"name": "edge-0"}, "action": "Drain", "mode": "Execute", "ttl": "1s"}
        store_edits.create_session(live.folder, "empty", drain)
        status = live.end("empty")
        assert status["phase"] == "Succeeded"
        with Traffic(live.folder, 4, "later") as later:
            assert later.at("edge-0") == []
        wait_for(lambda: not live.object("LoadBalancingSession", "empty"))
        with ObjectStore(live.folder.store) as store:  # its children go with it
            wait_for(lambda: store.objects("LoadBalancingSession")[1] == [])


def test_it_ends_with_its_supervisor(live: Live):
    pid = live.mediator_pid
    supervisor = live.folder.running_pid()
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not alive(pid))


def test_a_second_mediator_deposes_the_first(home: Path):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))
    with ObjectStore(folder.store) as store:
        first = mediator.LocalMediatorRunner(folder, store, os.getppid())
        first.run_once()
        second = mediator.LocalMediatorRunner(folder, store, os.getppid())
        assert second.epoch == first.epoch + 1
        store_edits.create_session(folder, "one", MOVE)
        with pytest.raises(LocalMediatorDeposedError, match=f"epoch {first.epoch} is over"):
            first.run_once()
        second.run_once()
        assert store.get("LoadBalancingSession", "one")["status"]["phase"] == "Negotiating"
        first.close()
        second.close()


def test_what_cannot_be_read_is_told(home: Path):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))
    with ObjectStore(folder.store) as store:
        shell = mediator.LocalMediatorRunner(folder, store, os.getppid())
        broken = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "metadata": {"name": "x"}, "spec": {}}
        store.create(broken, "now")
        shell.run_once()
        [event] = store.events("LoadBalancingSession", "x")
        assert (event.reason, "spec.scope" in event.message) == ("InvalidSpec", True)
        shell.close()


def test_an_input_that_cannot_be_read_for_a_fault_ends_nothing_and_is_told(home: Path, monkeypatch: pytest.MonkeyPatch):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))

    def fail(*given: Any, **named: Any) -> Any:
        raise OverflowError("cannot convert float infinity to integer")

    with ObjectStore(folder.store) as store:
        shell = mediator.LocalMediatorRunner(folder, store, os.getppid())
        shell.run_once()
        report = LoadReportReceived("edge-0", {"broker": "edge-0", "epoch": 1, "seq": 1})
        monkeypatch.setattr(shell._control, "poll", lambda seconds: iter([report]))
        monkeypatch.setattr(shell._control, "dial", fail)
        peer = PeerBroker(name="east-head", control="tcp://127.0.0.1:1")
        monkeypatch.setattr(fleet_view, "head_peers", lambda items: [peer])
        monkeypatch.setattr(shell._fleet_view, "note_report", fail)
        monkeypatch.setattr(fleet_view, "build_view", fail)
        store_edits.create_session(folder, "one", MOVE)
        for _ in range(10):
            shell._view_at = shell._ask_at = 0.0
            shell.run_once()
        assert store.get("LoadBalancingSession", "one")["status"]["phase"] == "Negotiating", "the rest goes on"
        told = [event.message for event in store.events("BrokerFleet", "quickstart") if event.reason == "PartFailed"]
        for what in ("LoadReportReceived of edge-0", "the connection to east-head", "the view of the fleet"):
            assert sum(text.startswith(f"{what} failed (") for text in told) in (1, 2), told
        assert "OverflowError: cannot convert float infinity" in told[0]
        assert len(told) <= 6, "of ten faults the first and the tenth are told"
        shell.close()


def test_a_fault_of_the_engine_ends_this_life_and_names_the_input(home: Path, monkeypatch: pytest.MonkeyPatch):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))

    def fail(event: Any, now: float) -> Any:
        raise RuntimeError("the sessions go in circles")

    with ObjectStore(folder.store) as store:
        shell = mediator.LocalMediatorRunner(folder, store, os.getppid())
        monkeypatch.setattr(shell._mediator, "handle", fail)
        with pytest.raises(RuntimeError) as raised:
            shell.run_once()
        assert raised.value.__notes__ == [
            "RuntimeError: the sessions go in circles, at an input (FleetObserved); "
            "the next life begins with what is stored"
        ]
        shell.close()


def test_a_step_that_cannot_be_stored_is_not_taken_and_goes_on_from_there(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))
    with ObjectStore(folder.store) as store:
        shell = mediator.LocalMediatorRunner(folder, store, os.getppid())
        shell.run_once()
        sent: list[Any] = []
        monkeypatch.setattr(shell._control, "send", lambda head, record: sent.append(record))
        handle, command = shell._mediator.handle, SendMessage("east-head", msg.ListSubscribers(1, "edge-0", ""))

        def commanding(event: Any, now: float) -> list[Any]:
            return [*handle(event, now), *([command] if isinstance(event, SessionUpserted) else [])]

        monkeypatch.setattr(shell._mediator, "handle", commanding)
        store_edits.create_session(folder, "one", MOVE)
        broken = {"apiVersion": API_VERSION, "kind": "LoadBalancingSession", "metadata": {"name": "x"}, "spec": {}}
        store.create(broken, "now")
        real, is_full = store.set_status, True

        def set_status(*given: Any) -> Any:
            if is_full:
                raise StateWriteError(folder.store, "no space is left on its disk", "free space there")
            return real(*given)

        monkeypatch.setattr(store, "set_status", set_status)
        monkeypatch.setattr(mediator, "RETRY_SECONDS", 0.0)
        for _ in range(3):
            shell._run_round()
        assert store.get("LoadBalancingSession", "one").get("status") is None
        assert (sent, store.events("LoadBalancingSession")) == ([], [])
        is_full = False
        for _ in range(2):
            shell._run_round()
        assert store.get("LoadBalancingSession", "one")["status"]["phase"] == "Negotiating"
        assert [event.reason for event in store.events("LoadBalancingSession", "x")] == ["InvalidSpec"]
        assert sent == [command.message]  # once, and only now
        shell.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"cannot write {folder.store}: no space is left on its disk; free space there; "
        "sessions wait until that is done",
        "the store is written again; sessions go on",
    ]


@pytest.mark.parametrize("step", [86_400.0, -86_400.0])
def test_a_step_of_the_clock_ends_no_session(home: Path, monkeypatch: pytest.MonkeyPatch, step: float):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))
    with ObjectStore(folder.store) as store:
        shell = mediator.LocalMediatorRunner(folder, store, os.getppid())
        of_day = time.time
        shell._clock = SteadyClock(lambda: time.time())
        times: list[float] = []
        handle = shell._mediator.handle

        def noted(event, now):
            times.append(now)
            return handle(event, now)

        monkeypatch.setattr(shell._mediator, "handle", noted)
        store_edits.create_session(folder, "one", {**MOVE, "deadline": "1h"})
        for _ in range(2):
            shell.run_once()
        assert store.get("LoadBalancingSession", "one")["status"]["phase"] == "Negotiating"
        monkeypatch.setattr(time, "time", lambda: of_day() + step)
        before = len(times)
        for _ in range(2):
            shell.run_once()
        assert len(times) > before
        assert max(times) - min(times) < 3_600.0, "time goes on without the step"
        assert store.get("LoadBalancingSession", "one")["status"]["phase"] == "Negotiating"
        shell.close()


def test_a_mediator_that_cannot_store_its_epoch_waits(home: Path, monkeypatch: pytest.MonkeyPatch):
    folder = FleetFolder.of("quickstart")
    folder.make()
    runtime.prepare_store(folder, parse(manifests.parse_text(QUICKSTART, "quickstart.yaml")))
    monkeypatch.setattr(mediator, "RETRY_SECONDS", 0.0)
    real, tries = mediator_epoch.claim_next_epoch, []

    def claim(store: ObjectStore, fleet: str) -> int:
        tries.append(fleet)
        if len(tries) < 4:
            raise StateWriteError(folder.store, "no space is left on its disk", "free space there")
        return real(store, fleet)

    monkeypatch.setattr(mediator_epoch, "claim_next_epoch", claim)
    with ObjectStore(folder.store) as store:
        shell = mediator._begin_life(folder, store, os.getppid())
        assert (shell.epoch, len(tries)) == (1, 4)
        shell.close()
        tries.clear()
        with pytest.raises(StateWriteError):  # the process that started it has ended
            mediator._begin_life(folder, store, 1)


def test_a_log_on_a_full_disk_loses_lines_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    class Full:
        code = errno.ENOSPC

        def write(self, text: str) -> None:
            raise OSError(self.code, "no")

    monkeypatch.setattr(sys, "stdout", Full())
    mediator.write_log("line")
    Full.code = errno.EPIPE
    with pytest.raises(OSError, match="no"):
        mediator.write_log("line")
