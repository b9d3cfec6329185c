"""The two processes of a head under the test's own clock: who leads, who follows, and what is stored before."""

from __future__ import annotations

import sys
import time

import msgspec
import pytest

from plimsoll.core.config import BrokerConfig, DiskLog, HeadStandby, PeerBroker
from plimsoll.core.config import decode as read
from plimsoll.core.head.standby.leadership import HeadLeadership
from plimsoll.core.protocol import messages as msg
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.leadership_store import LeadershipStore
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.storage.state_files import StateWriteError, write_private
from plimsoll.local.supervision import supervised_head
from plimsoll.local.supervision.supervised_broker import WRITE_RETRY_SECONDS
from plimsoll.local.supervision.supervised_head import SILENT_SECONDS, SupervisedHead

CONFIG = BrokerConfig(
    name="h", role="head", cluster="east", data="tcp://127.0.0.1:1", control="tcp://127.0.0.1:2",
    standby=HeadStandby(head=PeerBroker(name="h", data="tcp://127.0.0.1:1"), control=""),
)  # fmt: skip


def sleeper(config):
    return [sys.executable, "-c", "import time; time.sleep(600)", str(config)]


class FakeControl:
    def __init__(self):
        self.dialled: dict[str, str] = {}
        self.sent: list[tuple[str, object]] = []

    def dial(self, peer, role):
        self.dialled[peer.name] = peer.control

    def hang_up(self, broker):
        self.dialled.pop(broker, None)

    def ask(self, broker):
        assert broker in self.dialled

    def ask_leadership(self, process):
        assert process == "h"

    def send(self, broker, record):
        self.sent.append((broker, record))


PLAIN = msgspec.structs.replace(CONFIG, standby=None)


class Pair:
    """A head and its standby, as a supervisor runs them; `events` are the reasons of what was recorded."""

    def __init__(self, store, config=CONFIG):
        self.control, self.store, self.events = FakeControl(), LeadershipStore(store, "east"), []
        folder = FleetFolder.of("f")
        folder.make()
        self.folder = folder
        self.head = SupervisedHead(
            config, "small", "", folder, self.store, self.control, ("tcp://127.0.0.1:3", "tcp://127.0.0.1:4")
        )
        self.now = 100.0

    def record(self, broker, type_, reason, message):
        self.events.append(reason)

    def poll(self, seconds=0.0):
        self.now += seconds
        self.head.poll(self.now, sleeper, self.record)

    def start(self):
        self.head.start(sleeper, self.record)
        self.poll()

    def standby_says(self, **fields):
        term = self.store.load().term
        status = {"role": "standby", "incarnation": 9, "term": term, "sync": 1, **fields}
        self.head.on_standby_status(status, self.now, self.record)

    def head_says(self, **fields):
        process = {"term": self.store.load().term, "standby_in_sync": 9, "standby_syncs": 1, **fields}
        self.head.on_status({"epoch": 5, "process": process}, self.now, self.record)

    def await_end(self, ends):
        deadline = time.monotonic() + 300
        while not ends():
            assert time.monotonic() < deadline
            self.poll()
            time.sleep(0.005)


@pytest.fixture
def pair(home, tmp_path):
    with ObjectStore(tmp_path / "leaders.db") as store:
        store.create({"kind": "BrokerCluster", "metadata": {"name": "east"}, "spec": {}}, "2026-01-01T00:00:00Z")
        pair = Pair(store)
        yield pair
        pair.head.kill()


def test_the_first_process_leads_in_a_term_of_its_own_and_the_other_follows(pair):
    pair.start()
    assert pair.store.load() == HeadLeadership(1, 0)
    assert pair.control.dialled == {"h.standby": "tcp://127.0.0.1:4"}
    leads, follows = (pair.folder.config(name).read_text() for name in ("h", "h.1"))
    assert '"term": 1' in leads
    assert '"follows": true' in follows
    assert pair.events == ["Started", "StandbyStarted"]


def test_a_standby_in_sync_is_promoted_when_the_head_ends(pair):
    pair.start()
    pair.standby_says()
    assert pair.store.load() == HeadLeadership(1, 0, standby=9, sync=1)
    follows = pair.head.standby_pid
    pair.head._process.kill()
    pair.await_end(lambda: "Promoted" in pair.events)
    assert pair.store.load() == HeadLeadership(2, 1, leads=9)
    assert pair.head.observed(pair.now).pid == follows
    assert ("h.standby", msg.Promote(2)) in pair.control.sent
    pair.control.sent.clear()
    pair.poll()
    assert pair.control.sent == [("h.standby", msg.Promote(2))], "until it leads"
    pair.head_says(standby_in_sync=0, standby_syncs=0)
    pair.control.sent.clear()
    pair.poll(2.0)
    assert (pair.control.sent, pair.events[-1]) == ([], "StandbyStarted")
    assert pair.control.dialled == {"h.standby": "tcp://127.0.0.1:3"}


def test_without_a_standby_in_sync_the_head_starts_again_in_the_next_term(pair):
    pair.start()
    pair.head._process.kill()
    pair.await_end(lambda: "Exited" in pair.events)
    assert "Promoted" not in pair.events
    pair.poll(2.0)
    assert pair.store.load() == HeadLeadership(2, 0)


def test_a_standby_that_ends_is_given_up_in_the_store_before_the_head_is_told(pair):
    pair.start()
    pair.standby_says()
    pair.head_says()
    pair.head._standby.process.kill()
    pair.await_end(lambda: "StandbyExited" in pair.events)
    assert pair.store.load() == HeadLeadership(1, 0, ended=1)
    assert pair.control.sent[-1] == ("h", msg.GoOnAlone(1, 1))
    pair.control.sent.clear()
    pair.head_says(standby_in_sync=0)
    pair.poll()
    assert pair.control.sent == []
    pair.poll(2.0)
    assert pair.events[-1] == "StandbyStarted"


def test_a_head_that_waits_for_a_standby_that_was_never_noted_is_told_to_go_on(pair):
    pair.start()
    pair.standby_says(incarnation=10, sync=0)
    pair.head_says()
    assert pair.store.load().ended == 1
    pair.poll()
    assert pair.control.sent == [("h", msg.GoOnAlone(1, 1))]


def test_one_that_is_silent_for_long_is_given_up(pair):
    pair.start()
    pair.standby_says()
    pair.head_says(standby_silent=True)
    pair.poll(SILENT_SECONDS - 0.1)
    assert pair.store.load().standby == 9
    pair.poll(0.2)
    assert (pair.store.load().standby, pair.events[-1]) == (0, "StandbySilent")


def test_nothing_follows_from_what_cannot_be_stored(pair, monkeypatch):
    pair.start()
    pair.standby_says()
    change = pair.store.change

    def full(before, after):
        raise StateWriteError(pair.folder.store, "no space is left on its disk", "free space there")

    monkeypatch.setattr(pair.store, "change", full)
    pair.head._process.kill()
    for _ in range(20):
        pair.poll()
        time.sleep(0.01)
    assert ("Promoted" in pair.events, pair.control.sent) == (False, [])
    monkeypatch.setattr(pair.store, "change", change)
    pair.await_end(lambda: "Promoted" in pair.events)
    assert pair.store.load() == HeadLeadership(2, 1, leads=9)


def test_a_standby_starts_again_when_what_a_head_has_to_know_changes(pair):
    pair.start()
    first = pair.head.standby_pid
    pair.head.config = msgspec.structs.replace(CONFIG, edges=("e",))
    pair.poll()
    pair.await_end(lambda: pair.head.standby_pid is None)
    pair.poll(2.0)
    assert pair.head.standby_pid not in (None, first)


def test_both_end_when_the_head_is_to_leave(pair):
    pair.start()
    pair.standby_says()
    pair.head.begin_drain(pair.now)
    assert pair.head.standby_pid is None
    pair.await_end(lambda: not pair.head.running)
    assert "Promoted" not in pair.events


def test_a_process_that_stands_still_is_ended_after_the_lease_and_its_standby_leads(pair):
    pair.start()
    pair.standby_says()
    pair.head_says()
    follows = pair.head.standby_pid
    for _ in range(7):
        pair.poll(0.5)
        pair.standby_says(head_silent=True)
    assert "Killed" in pair.events
    pair.await_end(lambda: "Promoted" in pair.events)
    assert pair.store.load() == HeadLeadership(2, 1, leads=9)
    assert pair.head.observed(pair.now).pid == follows


@pytest.mark.parametrize("why", ["heard", "heard by its standby", "no word of its standby", "a paused supervisor"])
def test_a_process_that_may_be_alive_is_not_ended(pair, why):
    pair.start()
    pair.standby_says(head_silent=True)
    pair.head_says()
    for _ in range(12):
        pair.poll(1.5 if why == "a paused supervisor" else 0.5)
        if why == "heard":
            pair.head_says()
        if why != "no word of its standby":
            pair.standby_says(head_silent=why != "heard by its standby")
    assert "Killed" not in pair.events


# -- a standby that is set, and removed, while the head runs


@pytest.fixture
def plain(home, tmp_path):
    with ObjectStore(tmp_path / "leaders.db") as store:
        store.create({"kind": "BrokerCluster", "metadata": {"name": "east"}, "spec": {}}, "2026-01-01T00:00:00Z")
        plain = Pair(store, PLAIN)
        yield plain
        plain.head.kill()


def test_a_head_without_a_standby_leads_in_no_term(plain):
    plain.start()
    assert plain.store.load() == HeadLeadership()
    assert (plain.control.dialled, plain.events) == ({}, ["Started"])
    assert '"standby": null' in plain.folder.config("h").read_text()
    plain.head._process.kill()
    plain.await_end(lambda: "Exited" in plain.events)
    plain.poll(2.0)
    assert (plain.head.running, plain.store.load()) == (True, HeadLeadership())


def test_it_takes_on_a_standby_in_the_same_process(plain):
    plain.start()
    pid = plain.head.observed(plain.now).pid
    plain.head.config = CONFIG
    plain.poll()
    assert plain.head.observed(plain.now).pid == pid
    assert plain.store.load() == HeadLeadership(1, 0)
    assert '"term": 1' in plain.folder.config("h").read_text(), "its process reads that again"
    assert plain.control.dialled == {"h.standby": "tcp://127.0.0.1:4"}
    assert plain.events == ["Started", "StandbyStarted"]
    plain.standby_says()
    plain.head._process.kill()
    plain.await_end(lambda: "Promoted" in plain.events)
    assert plain.store.load() == HeadLeadership(2, 1, leads=9)


def test_nothing_follows_from_a_term_that_cannot_be_stored(plain, monkeypatch):
    plain.start()

    def full(before, after):
        raise StateWriteError(plain.folder.store, "no space is left on its disk", "free space there")

    change = plain.store.change
    monkeypatch.setattr(plain.store, "change", full)
    plain.head.config = CONFIG
    plain.poll()
    assert plain.events == ["Started"]
    assert '"standby": null' in plain.folder.config("h").read_text()
    monkeypatch.setattr(plain.store, "change", change)
    plain.poll()
    assert plain.events == ["Started", "StandbyStarted"]


def test_a_standby_that_is_removed_is_over_in_the_store_before_it_ends_and_the_head_goes_on(pair):
    pair.start()
    pair.standby_says()
    pair.head_says()
    pid = pair.head.observed(pair.now).pid
    pair.head.config = PLAIN
    pair.poll()
    assert pair.store.load() == HeadLeadership(1, 0, ended=1)
    assert pair.head.standby_pid is None
    assert (pair.head.observed(pair.now).pid, pair.events[-1]) == (pid, "StandbyRemoved")
    assert '"standby": null' in pair.folder.config("h").read_text()
    assert pair.control.sent[-1] == ("h", msg.GoOnAlone(1, 1))
    pair.head_says(standby_in_sync=0)
    pair.control.sent.clear()
    pair.poll(2.0)
    assert (pair.control.sent, pair.events[-1]) == ([], "StandbyRemoved")


def relaxed(config, *, may_lag=True):
    return msgspec.structs.replace(config, disk_log=DiskLog(directory="logs/h", size_bytes=1 << 20, may_lag=may_lag))


def lags(pair, *names):
    logs = [read(pair.folder.config(name).read_bytes()).disk_log for name in names]
    return [log is not None and log.may_lag for log in logs]


def test_what_has_to_have_a_publication_is_read_by_both_processes_as_they_run(pair):
    pair.head.config = relaxed(CONFIG, may_lag=False)
    pair.start()
    pair.standby_says()
    pids = pair.head.observed(pair.now).pid, pair.head.standby_pid
    second = pair.folder.second("h")
    assert lags(pair, "h", second) == [False, False]
    for may_lag in (True, False):
        pair.head.config = relaxed(CONFIG, may_lag=may_lag)
        pair.poll(1.0)
        assert lags(pair, "h", second) == [may_lag, may_lag]
    pair.poll(1.0)
    assert (pair.head.observed(pair.now).pid, pair.head.standby_pid) == pids


def test_a_process_that_leads_is_told_how_far_its_log_is_known_to_be_safe(pair):
    pair.head.config = relaxed(CONFIG)
    known = {"head": {"logEpoch": 7, "logPosition": 90}}
    pair.store._store.set_status("BrokerCluster", "east", lambda item: {**item.get("status", {}), **known})
    pair.start()
    pair.standby_says()
    logs = [read(pair.folder.config(name).read_bytes()).disk_log for name in ("h", pair.folder.second("h"))]
    assert [log and (log.known_epoch, log.known_position) for log in logs] == [(7, 90), (0, 0)]
    pid = pair.head.standby_pid
    pair.store._store.set_status("BrokerCluster", "east", lambda item: {"head": {"logEpoch": 7, "logPosition": 99}})
    pair.poll(1.0)
    assert pair.head.standby_pid == pid, "it is of use at a start alone"


def test_a_standby_that_cannot_be_let_go_yet_stays_in_the_file_though_confirm_has_changed(pair, monkeypatch):
    pair.head.config = relaxed(CONFIG)
    pair.start()
    pair.standby_says()
    pair.head_says()

    def full(before, after):
        raise StateWriteError(pair.folder.store, "no space is left on its disk", "free space there")

    change = pair.store.change
    monkeypatch.setattr(pair.store, "change", full)
    pair.head.config = relaxed(PLAIN, may_lag=False)
    pair.poll(1.0)
    assert '"standby": null' not in pair.folder.config("h").read_text()
    monkeypatch.setattr(pair.store, "change", change)
    pair.poll(1.0)
    assert '"standby": null' in pair.folder.config("h").read_text()
    assert lags(pair, "h") == [False]


def test_one_that_came_in_sync_at_that_moment_is_given_up_as_well(pair):
    pair.start()
    pair.standby_says(sync=0)
    pair.head.config = PLAIN
    pair.poll()
    pair.head.on_leadership({"term": 1, "standby_in_sync": 9, "standby_syncs": 1}, pair.now)
    assert pair.store.load().ended == 1
    pair.poll()
    assert pair.control.sent[-1] == ("h", msg.GoOnAlone(1, 1))


def test_the_second_process_goes_on_alone_if_it_leads_and_keeps_its_term_for_the_next_standby(pair):
    pair.start()
    pair.standby_says()
    pair.head._process.kill()
    pair.await_end(lambda: "Promoted" in pair.events)
    pair.head_says(standby_in_sync=0, standby_syncs=0)
    pid = pair.head.observed(pair.now).pid
    pair.head.config = PLAIN
    pair.poll(2.0)
    assert pair.head.observed(pair.now).pid == pid
    pair.head.config = CONFIG
    pair.poll(2.0)
    assert pair.store.load() == HeadLeadership(2, 1, leads=9)
    assert '"term": 2' in pair.folder.config("h.1").read_text()
    assert pair.control.dialled == {"h.standby": "tcp://127.0.0.1:3"}


def test_a_standby_whose_file_cannot_be_written_starts_once_it_can(plain, monkeypatch):
    plain.start()
    write, files = write_private, []

    def full(path, text):
        if path == plain.folder.config("h.1"):
            files.append(path)
            raise StateWriteError(path, "no space is left on its disk", "free space there")
        write(path, text)

    monkeypatch.setattr(supervised_head, "write_private", full)
    plain.head.config = CONFIG
    plain.poll()
    plain.poll()
    assert (len(files), plain.head.standby_pid) == (1, None), "it is not tried in each round"
    monkeypatch.setattr(supervised_head, "write_private", write)
    plain.poll(WRITE_RETRY_SECONDS)
    assert plain.events == ["Started", "StandbyStarted"]


@pytest.mark.parametrize("fails", ["the store", "the file"])
def test_a_standby_that_cannot_be_let_go_yet_is_not_started_again_without_the_setting(pair, monkeypatch, fails):
    pair.start()
    pair.standby_says()
    follows = pair.folder.config("h.1").read_text()

    def full(*_):
        raise StateWriteError(pair.folder.store, "no space is left on its disk", "free space there")

    with monkeypatch.context() as patch:
        if fails == "the store":
            patch.setattr(pair.store, "change", full)
        else:
            patch.setattr(supervised_head, "write_private", full)
        pair.head.config = PLAIN
        for _ in range(3):
            pair.poll(2.0)
        assert (pair.head.standby_pid is not None) == (fails == "the store"), "it ends once that is stored"
    pair.poll(2.0)
    assert (pair.store.load(), pair.head.standby_pid) == (HeadLeadership(1, 0, ended=1), None)
    assert pair.folder.config("h.1").read_text() == follows, "no second head may start"
    assert pair.events == ["Started", "StandbyStarted", "StandbyInSync", "StandbyRemoved"]
