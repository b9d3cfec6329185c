"""Each fault of the account of a plan, and a plan without one."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from plimsoll.core.verify.plan_accounting import member_faults, reason_faults


@dataclass(frozen=True)
class Move:
    source: str
    target: str
    key: str
    subscribers: tuple[str, ...]
    reason: str = "the highest load falls"


def row(key: str, *names: str) -> SimpleNamespace:
    return SimpleNamespace(key=key, names=names)


FLEET = SimpleNamespace(
    profiles={"a": SimpleNamespace(rows=[row("x", "s1", "s2")]), "b": SimpleNamespace(rows=[row("y", "s3")])},
    takes={"b"},
    stays={"s3"},
    most=1,
)
PLAN = SimpleNamespace(rejected=[SimpleNamespace(key="y", subscribers=2, reason="no room")], stopped="done")
MOVE = Move("a", "b", "x", ("s1",))


def test_a_plan_that_accounts_for_all_has_no_fault() -> None:
    assert [*member_faults([MOVE], FLEET), *reason_faults(PLAN, [MOVE], FLEET)] == []


@pytest.mark.parametrize(
    ("moves", "fault"),
    [
        ([MOVE, MOVE], "s1 moves 2 times"),
        ([MOVE, replace(MOVE, subscribers=("s2",))], "2 move, and 1 may"),
        ([replace(MOVE, source="b", subscribers=("s3",))], "s3 may not move"),
        ([replace(MOVE, source="b")], "b would give to itself"),
        ([replace(MOVE, target="a")], "a may not take"),
        ([replace(MOVE, subscribers=())], "no subscriber moves with x"),
        ([replace(MOVE, subscribers=("unknown",))], "unknown is not at a"),
    ],
)
def test_each_fault_of_members_is_named(moves: list[Move], fault: str) -> None:
    assert fault in list(member_faults(moves, FLEET))


@pytest.mark.parametrize(
    ("plan", "move", "fault"),
    [
        (PLAN, replace(MOVE, reason=" "), "x moves without a reason"),
        (SimpleNamespace(rejected=[SimpleNamespace(key="y", subscribers=2, reason="")], stopped="done"), MOVE,
         "y is rejected without a reason"),
        (SimpleNamespace(rejected=PLAN.rejected, stopped=""), MOVE, "the plan does not say why it ends"),
        (SimpleNamespace(rejected=[], stopped="done"), MOVE, "of 3 subscribers 1 move and 0 have a reason to stay"),
    ],
)  # fmt: skip
def test_each_missing_reason_is_named(plan: SimpleNamespace, move: Move, fault: str) -> None:
    assert fault in list(reason_faults(plan, [move], FLEET))
