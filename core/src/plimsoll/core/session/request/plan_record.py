"""What is stored of a policy's plan: its pairs of edges, and the reasons of what moves and of what stays, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.session.inputs import EdgeView
from plimsoll.core.session.request import planner
from plimsoll.core.session.session_plan import MoveGroup, PlannedPair, SessionPlan, StayGroup

REASONS_AT_MOST = 100
"""The most reasons of moves, and of stays, that are stored one by one."""

KEY_CHARACTERS_AT_MOST = 200
FAULTS_AT_MOST = 10


def pairs_of(waves: Sequence[Sequence[PlanMove]], edges: Mapping[str, EdgeView]) -> list[PlannedPair]:
    """The pairs of edges between which subscribers move, wave by wave."""
    return [
        _pair(edges[source], edges[target], wave, number)
        for number, wave in enumerate(waves) for source, target in _ends_of(wave)
    ]  # fmt: skip


def _pair(source: EdgeView, target: EdgeView, wave: Sequence[PlanMove], number: int) -> PlannedPair:
    ends = source.name, target.name
    return PlannedPair(
        source=source.name,
        target=target.name,
        source_head=source.head,
        target_head=target.head,
        members=[name for move in wave if (move.source, move.target) == ends for name in move.subscribers],
        wave=number,
    )


def in_order(waves: Sequence[Sequence[PlanMove]]) -> list[PlanMove]:
    """All moves in the order of the members of their pairs."""
    return [
        move for wave in waves for ends in _ends_of(wave) for move in wave if (move.source, move.target) == ends
    ]  # fmt: skip


def _ends_of(wave: Sequence[PlanMove]) -> Iterable[tuple[str, str]]:
    return dict.fromkeys((move.source, move.target) for move in wave)


def session_plan(
    policy: str,
    metric: str,
    pairs: list[PlannedPair],
    moves: Sequence[PlanMove],
    rejected: Sequence[PlanRejection],
    kept: Mapping[str, str],
    stop: str,
    now: float,
) -> SessionPlan:
    """The plan of a session. `kept`: subscribers that may not move, with the reason in a word."""
    return SessionPlan(
        hash=planner.hash_pairs(pairs),
        pairs=pairs,
        made_at=now,
        rejected=group_by_reason(kept),
        policy=policy,
        metric=metric,
        moves=move_groups(moves),
        stays=[
            StayGroup(kind=each.kind, reason=each.reason, count=each.subscribers, what=shorten_key(each.key))
            for each in rejected[:REASONS_AT_MOST]
        ],
        stop=stop,
    )


def stop_sentence(ended: str, stopped: str) -> str:
    """Why there are no more moves: the word, and the sentence if there is one."""
    return f"{ended}: {stopped}" if stopped else ended


def group_by_reason(kept: Mapping[str, str]) -> dict[str, list[str]]:
    """Subscribers that stay, by reason."""
    rejected: dict[str, list[str]] = {}
    for name, reason in sorted(kept.items()):
        rejected.setdefault(reason, []).append(name)
    return rejected


def move_groups(moves: Sequence[PlanMove]) -> list[MoveGroup]:
    """Reasons of the moves, in the order of the members; beyond a limit only their number."""
    told = [
        MoveGroup(count=len(move.subscribers), reason=move.reason, what=shorten_key(move.key))
        for move in moves[:REASONS_AT_MOST]
    ]
    if more := moves[REASONS_AT_MOST:]:
        reason = f"{len(more)} more sets of subscriptions; the first: {more[0].reason}"
        told.append(MoveGroup(count=_subscriber_count(more), reason=reason))
    return told


def _subscriber_count(moves: Iterable[PlanMove]) -> int:
    return sum(len(move.subscribers) for move in moves)


def shorten_key(text: str) -> str:
    """A subscription key, cut to the length that is stored."""
    return text if len(text) <= KEY_CHARACTERS_AT_MOST else f"{text[: KEY_CHARACTERS_AT_MOST - 3]}..."
