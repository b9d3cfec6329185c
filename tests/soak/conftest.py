"""A result of the kill matrix and a finished hand-over, to be varied by tests."""

from typing import Any

import msgspec
import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.soak.harness.handover_driver import DrivenHandover
from plimsoll.soak.kill_matrix.cells import KillMatrixCell, KillMatrixResult

CELL = KillMatrixCell("drain", "cut sent", "target", "KILL")


def found(**changes: Any) -> KillMatrixResult:
    passed = KillMatrixResult(
        cell=CELL, at="cutting", state="done", reason="", outcomes={"moved": 16}, homes={"target": 16},
        silence_seconds=0.52, session_seconds=0.08, delivered=2400, lost=0, duplicated=0, reordered=0, gaps=0,
        excused=0, orphaned=0, settle_seconds=0.1,
    )  # fmt: skip
    return msgspec.structs.replace(passed, **changes)


def handover(**changes: Any) -> DrivenHandover:
    plan = msg.HandoverPlan("e1", "e2", "head", ["a", "b"], False, 5.0, 10.0)
    ended = DrivenHandover(
        session="1.1", head="head", head_epoch=7, plan=plan, began_at=100.0, state="done",
        members=[("a", "moved"), ("b", "moved")], ended_at=101.0,
    )  # fmt: skip
    return msgspec.structs.replace(ended, **changes)


@pytest.fixture(name="found")
def found_fixture() -> Any:
    return found


@pytest.fixture(name="handover")
def handover_fixture() -> Any:
    return handover
