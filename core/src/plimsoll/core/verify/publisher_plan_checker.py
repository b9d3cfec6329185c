"""Faults of a plan by which publishers leave an overloaded head, found without the code that made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol


class PublisherMoveView(Protocol):
    """One move of a plan. `subscribers`: the publishers that go together."""

    @property
    def subscribers(self) -> tuple[str, ...]: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PublisherPlanContext:
    """The data to check a plan against. `publishers`: of the source, each with the bytes per second that it brings with
    each topic; `takes`: heads that may take some; `stays`: publishers that may not move; `most`: how many may.
    """

    source: str
    publishers: Mapping[str, Mapping[int | None, float]]
    takes: Set[str]
    stays: Set[str] = frozenset()
    most: int | None = None


def publisher_plan_faults(moves: Iterable[PublisherMoveView], context: PublisherPlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    A publisher goes once, from the source to a head that may take it, with a reason, if it may move at all; no more go
    than may. All publishers of a topic go together to one head, or else every move is of a single publisher.
    """
    some = list(moves)
    return [*_member_faults(some, context), *_end_faults(some, context), *_bundle_faults(some, context)]


def _member_faults(moves: Sequence[PublisherMoveView], context: PublisherPlanContext) -> Iterator[str]:
    times = Counter(name for move in moves for name in move.subscribers)
    for name, count in sorted(times.items()):
        if count > 1:
            yield f"{name} moves {count} times"
        if name not in context.publishers:
            yield f"{name} is no publisher of {context.source}"
        if name in context.stays:
            yield f"{name} may not move"
    if context.most is not None and times.total() > context.most:
        yield f"{times.total()} publishers move, and {context.most} may"


def _end_faults(moves: Sequence[PublisherMoveView], context: PublisherPlanContext) -> Iterator[str]:
    for move in moves:
        if move.source != context.source or move.target == context.source:
            yield f"a move leads from {move.source} to {move.target}"
        if move.target not in context.takes:
            yield f"{move.target} takes no publishers"
        if not move.reason:
            yield f"the move of {', '.join(move.subscribers[:3])} has no reason"


def _bundle_faults(moves: Sequence[PublisherMoveView], context: PublisherPlanContext) -> Iterator[str]:
    bundles: dict[int, set[str]] = {}
    for name, topics in context.publishers.items():
        if (main := _main_topic(topics)) is not None:
            bundles.setdefault(main, set()).add(name)
    parted = [bundles[topic] for topic in sorted(bundles) if not _is_together(bundles[topic], moves)]
    if parted and any(len(move.subscribers) > 1 for move in moves):
        yield f"{', '.join(sorted(parted[0])[:3])} publish one topic and part, and others go together"


def _is_together(bundle: Set[str], moves: Sequence[PublisherMoveView]) -> bool:
    touched = [move for move in moves if bundle & set(move.subscribers)]
    return not touched or (len(touched) == 1 and set(touched[0].subscribers) == bundle)


def _main_topic(topics: Mapping[int | None, float]) -> int | None:
    """The topic that brings most; the lowest hash among equals, and none before all."""
    most = max(topics.values(), default=0.0)
    named = [topic for topic, size in topics.items() if size == most]
    return None if None in named else min((topic for topic in named if topic is not None), default=None)
