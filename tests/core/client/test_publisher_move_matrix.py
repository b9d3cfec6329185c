"""Each party of a publisher's move is hit before and behind each step: killed, or frozen for a short or a long time.

The kill matrix of hand-overs (docs/kill-matrix.md) is of processes; this one is of the same machines in virtual time,
so a step is hit exactly. A head that is killed may take what it alone had with it; nothing comes twice or out of order.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.core.client.test_publisher_moves import CHAIN, Moves
from tests.core.fleet import tree

from plimsoll.core.client.publisher_moves import MoveState

VICTIMS = {"old head": "a", "new head": "c", "head between": "b", "client": "app", "mediator": "mediator"}
SIGNALS = {"KILL": 0.5, "STOP": 0.7, "HANG": 4.0}
"""Seconds until the victim is back. Links are given up after 2 s."""


def _state(*states: MoveState) -> Callable[[Moves], bool]:
    return lambda moves: any(each.move is not None and each.move.state in states for each in moves.publishers.values())


def _is_asked(moves: Moves) -> bool:
    return bool(moves.fleet.head("a").publisher_moves.sessions)


def _is_on_standby(moves: Moves) -> bool:
    return bool(moves.fleet.head("c").publisher_arrivals.standbys)


def _is_cut(moves: Moves) -> bool:
    return any(each.left for each in moves.fleet.head("a").publishers.by_name.values())


def _is_marked(moves: Moves) -> bool:
    return any(each.arrived for each in moves.fleet.head("c").publishers.by_name.values())


STEPS: dict[str, Callable[[Moves], bool]] = {
    "commanded": lambda moves: True,
    "asked": _is_asked,
    "client asks the other head": _state(MoveState.ASKED),
    "on standby": _is_on_standby,
    "silent": _state(MoveState.GOING, MoveState.GONE),
    "GO": _state(MoveState.GONE),
    "cut": _is_cut,
    "MARKER has come": _is_marked,
    "opened there": lambda moves: "c" in moves.heads(),
    "done": lambda moves: moves.heads() == {"c"},
}
CELLS = [
    pytest.param(victim, signal, step, marks=[] if signal == "KILL" or step in ("GO", "cut") else pytest.mark.sweep)
    for victim in VICTIMS for signal in SIGNALS for step in STEPS
    if not (signal == "KILL" and victim == "client")
]  # fmt: skip
"""A killed client has no publisher that could go on: the simulator kills those."""


@pytest.mark.sampled(15)
@pytest.mark.parametrize(("victim", "signal", "step"), CELLS)
def test_each_party_at_each_step(victim: str, signal: str, step: str):
    moves, name = Moves(tree(CHAIN)), VICTIMS[victim]
    moves.run(0.1)
    moves.command("a", "c", seconds=1.0)
    for _ in range(200):
        if STEPS[step](moves):
            break
        moves.publish()
        moves.fleet.round()
        if not moves.fleet.round():
            moves.run(0.01)
    assert STEPS[step](moves), f"the move has not come to {step}"
    _hit(moves, name, signal)
    moves.run(0.3)
    moves.fleet.run(8.0)
    moves.run(0.2)
    # Heads that are killed lose their memory; a link between heads that is silent for long may cost a gap.
    moves.check(may_lose=name in "abc" and signal != "STOP")
    assert moves.heads() <= {"a", "c"}


def _hit(moves: Moves, name: str, signal: str) -> None:
    is_killed = signal == "KILL"
    if is_killed:
        moves.fleet.crash(name)
    else:
        moves.fleet.freeze(name)
    moves.run(0.2)
    moves.fleet.run(SIGNALS[signal] - 0.2)
    if is_killed and name in "abc":
        moves.fleet.start(name)
    elif is_killed:  # a mediator that does not come back: the head decides alone
        moves.run(0.1)
    else:
        moves.fleet.thaw(name)
