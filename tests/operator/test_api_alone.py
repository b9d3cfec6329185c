"""Pauses of the API client while another writer is quicker again and again."""

import asyncio
import random
from typing import Any

import pytest

from plimsoll.core.session import Session
from plimsoll.operator.api import LONGEST_PAUSE_SECONDS, Api, ApiConflictError
from plimsoll.operator.mediator.session_store import ApiSessionStore


class Busy(Api):
    """Every write conflicts, `times` times."""

    def __init__(self, times: int) -> None:
        self._random = random.SystemRandom()
        self.left = times

    async def get(self, kind: str, namespace: str, name: str, *, retry: bool = False) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": name, "uid": name}, "status": {"left": self.left}}

    async def replace_status(self, obj: Any, *, retry: bool = False) -> dict[str, Any]:
        self.left -= 1
        if self.left >= 0:
            raise ApiConflictError("another writer was quicker")
        return dict(obj)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return found


def judge(slept: list[float]) -> None:
    assert len(slept) == 12
    assert all(pause > 0 for pause in slept)
    assert slept[6] > 10 * slept[0]
    assert max(slept) <= LONGEST_PAUSE_SECONDS
    assert sum(slept) > 2 * LONGEST_PAUSE_SECONDS


def test_a_status_that_conflicts_is_written_again_after_longer_pauses(slept: list[float]):
    asyncio.run(Busy(12).set_status("Pod", "ns", "p", lambda item: {"mine": True}))
    judge(slept)


def test_a_session_that_conflicts_is_stored_again_after_longer_pauses(slept: list[float]):
    async def story() -> None:
        base = {"kind": "LoadBalancingSession", "metadata": {"name": "s", "uid": "s"}, "status": {}}
        await ApiSessionStore(Busy(12), "ns", 1)._replace(session, base, {"record": "x", "mediatorEpoch": 1})

    given: dict[str, Any] = {"requested_at": 1.0, "queued_at": 1.5, "phase_at": 2.0, "deadline_at": 99.0}
    session = Session(uid="s", name="s", generation=1, **given)
    asyncio.run(story())
    judge(slept)
