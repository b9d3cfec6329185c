"""What a plan for all brokers has to keep, whatever its policy: who moves, at most once, and why all others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from plimsoll.core.verify.offload_plan_checker import PlanMoveView, PlanRejectionView


class AccountedPlanView(Protocol):
    """A plan's reasons: of those that stay, and for its end."""

    @property
    def rejected(self) -> Sequence[PlanRejectionView]: ...
    @property
    def stopped(self) -> str: ...


class PlanContext(Protocol):
    """The data to check a plan against. `profiles`: of each broker, with its subscribers by row; `takes`: who may take.

    `stays`: subscribers that may not move; `most`: how many may.
    """

    @property
    def profiles(self) -> Mapping[str, Any]: ...
    @property
    def takes(self) -> Set[str]: ...
    @property
    def stays(self) -> Set[str]: ...
    @property
    def most(self) -> int | None: ...


def member_faults(moves: Sequence[PlanMoveView], fleet: PlanContext) -> Iterator[str]:
    """Subscribers that move twice, may not move or are elsewhere, and targets that may not take."""
    brokers = {name: broker for broker, profile in fleet.profiles.items() for row in profile.rows for name in row.names}
    times = Counter(name for move in moves for name in move.subscribers)
    yield from (f"{name} moves {count} times" for name, count in sorted(times.items()) if count > 1)
    yield from (f"{name} may not move" for name in sorted(times.keys() & fleet.stays))
    if fleet.most is not None and sum(times.values()) > fleet.most:
        yield f"{sum(times.values())} move, and {fleet.most} may"
    for move in moves:
        if move.source == move.target:
            yield f"{move.source} would give to itself"
        if move.target not in fleet.takes:
            yield f"{move.target} may not take"
        if not move.subscribers:
            yield f"no subscriber moves with {move.key}"
        yield from (f"{name} is not at {move.source}" for name in move.subscribers if brokers.get(name) != move.source)


def reason_faults(plan: AccountedPlanView, moves: Sequence[PlanMoveView], fleet: PlanContext) -> Iterator[str]:
    """Moves, rejections and an end without a reason, and subscribers that neither move nor have a reason to stay."""
    yield from (f"{move.key} moves without a reason" for move in moves if not move.reason.strip())
    yield from (f"{each.key} is rejected without a reason" for each in plan.rejected if not each.reason.strip())
    if not plan.stopped.strip():
        yield "the plan does not say why it ends"
    total = sum(len(row.names) for profile in fleet.profiles.values() for row in profile.rows)
    moved, stay = sum(len(move.subscribers) for move in moves), sum(each.subscribers for each in plan.rejected)
    if moved + stay != total:
        yield f"of {total} subscribers {moved} move and {stay} have a reason to stay"
