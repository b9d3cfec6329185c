"""The successor of a killed process resumes behind the last delivery in the journals before it."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import DeliveryJournal, read_journal
from plimsoll.demo.workload import DemoScenario, PlannedSubscriber
from plimsoll.soak.harness.subscriber_worker import (
    EVERYTHING,
    RestartableSubscribers,
    SoakSubscriberTask,
    resume_points,
    token_file,
)

HEAD = ("head", 9)


def test_a_resume_point_is_behind_the_last_delivery_and_behind_gaps(tmp_path: Path) -> None:
    with DeliveryJournal(tmp_path / "0") as journal:
        journal.note(seen.SubscriptionObserved("s", 1, 1, (), 0.0))
        journal.note(seen.SubscriptionObserved("fresh", 1, 1, (), 0.0))
        journal.note(seen.DeliveryObserved("s", 1, ("p", 1, 1), (*HEAD, 4), 1.0, (*HEAD, 11)))
    with DeliveryJournal(tmp_path / "1") as journal:
        journal.note(seen.DeliveryObserved("s", 1, ("p", 1, 2), ("other", 3, 8), 2.0, (*HEAD, 12)))
        journal.note(seen.GapObserved("s", 1, "head", 9, 13, 9, 15, [(*HEAD, 7)], "log", 3.0))
    found = resume_points([str(tmp_path / "0"), str(tmp_path / "1")])
    assert found["s"].token == (*HEAD, 15)
    assert sorted(found["s"].watermarks) == [(*HEAD, 7), ("other", 3, 8)]
    assert (found["fresh"].token, found["fresh"].watermarks) == (None, [])
    assert resume_points([]) == {}


def test_a_token_saved_after_the_last_delivery_takes_precedence(tmp_path: Path) -> None:
    with DeliveryJournal(tmp_path / "0") as journal:
        for name in ("moved", "quiet", "behind"):
            journal.note(seen.SubscriptionObserved(name, 1, 1, (), 0.0))
        for name in ("moved", "behind"):
            journal.note(seen.DeliveryObserved(name, 1, ("p", 1, 1), (*HEAD, 4), 2.0, (*HEAD, 11)))
    lines = [
        b'[1.0,"behind",["head",9,3],[["head",9,1]]]', b'[3.0,"moved",["far",5,70],[["head",9,4]]]',
        b'[3.0,"quiet",["head",9,20],[]]', b'[9.0,"quiet",["head",9,9',
    ]  # fmt: skip
    token_file(tmp_path / "0").write_bytes(b"\n".join(lines))
    found = resume_points([str(tmp_path / "0")])
    assert found["moved"].token == ("far", 5, 70)
    assert found["quiet"].token == (*HEAD, 20)
    assert (found["behind"].token, found["behind"].watermarks) == ((*HEAD, 11), [(*HEAD, 4)])


class FakeSubscriber:
    """As much of a subscriber as the worker uses; it keeps what it was opened with."""

    def __init__(self, _connection: Any, *, name: str, **opened_with: Any) -> None:
        self.name, self.opened_with = name, opened_with
        self.token: Any = None
        self.watermarks: list[Any] = []
        self.asked: list[str] = []

    def subscribe(self, text: str, *, wait: bool) -> Any:
        assert not wait
        self.asked.append(text)
        return SimpleNamespace(id=len(self.asked))

    def statistics(self) -> Counter[str]:
        return Counter()

    def close(self) -> None:
        pass


def joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, life: int, *, wide: bool = False
) -> tuple[RestartableSubscribers, FakeSubscriber]:
    """One life of a worker with one subscriber, which joined and was attached to e1."""
    opened: list[FakeSubscriber] = []

    def opening(connection: Any, **arguments: Any) -> FakeSubscriber:
        opened.append(FakeSubscriber(connection, **arguments))
        return opened[-1]

    monkeypatch.setattr(client, "Subscriber", opening)
    connection: Any = SimpleNamespace(status=lambda: {"counters": {}})
    task = SoakSubscriberTask(
        journal=str(tmp_path / str(life)),
        before=tuple(str(tmp_path / str(n)) for n in range(life)),
        wide=wide,
        scenario=DemoScenario(),
        endpoint="tcp://127.0.0.1:1",
        head_key="",
        own_secret_key="",
    )
    plan = [PlannedSubscriber("s", "symbol", False, (("class", "=", "STOCK"), ("symbol", "=", "IBM")), 0.0)]
    with DeliveryJournal(Path(task.journal)) as journal:
        joining = RestartableSubscribers(plan, connection, journal, task)
        assert not joining.join_some()
        (one,) = opened
        one.token = ("head", 9, 4)
        one.opened_with["on_state"](client.Attached("e1", "head", again=False))
        one.opened_with["on_state"](client.Acknowledged((1,), "head", ()))
        joining.close()
    return joining, one


def test_the_callbacks_of_a_subscriber_that_joins_are_counted(monkeypatch, tmp_path):
    joining, one = joined(monkeypatch, tmp_path, 0)
    joining.reports_homes = True
    state = joining.state()
    assert (state["started"], state["subscribers"], state["unsettled"], state["homes"]) == (1, 1, 0, {"s": "e1"})
    assert (one.asked, one.opened_with["token"]) == (["[class,=,'STOCK'],[symbol,=,'IBM']"], None)


def test_a_second_life_resumes_and_the_subscription_is_recorded_once(monkeypatch, tmp_path):
    joined(monkeypatch, tmp_path, 0)
    _, again = joined(monkeypatch, tmp_path, 1)
    assert again.opened_with["token"] == ("head", 9, 4)
    recorded = [
        each for life in "01" for each in read_journal(tmp_path / life) if isinstance(each, seen.SubscriptionObserved)
    ]
    assert len(recorded) == 1


def test_subscribers_of_a_wide_workload_ask_for_everything(monkeypatch, tmp_path):
    _, one = joined(monkeypatch, tmp_path, 0, wide=True)
    assert one.asked == [f"[class,=,'{EVERYTHING[0][2]}']"]
