"""How long members of groups and their head wait for each other, in seconds.

A head takes a member to be gone only when that has stopped by itself, and before the edges give up the places of its
slices: lease of a member < gone < lease of a place.
"""

from __future__ import annotations

from dataclasses import dataclass

GONE_SECONDS = 6.0
SESSION_SECONDS = 5.0
BALANCE_SECONDS = 10.0
UNUSED_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class GroupTimes:
    """`beat`: the interval of beats. `lease`: how long a member goes on without an answer; `gone`: how long its head
    waits for it. `session`: how long two members hold up the next two. `balance`: the interval of plans. `kept`: how
    long a declared group is that was removed; `unused`: one that members have made and that has none.
    """

    beat: float
    lease: float
    gone: float
    session: float
    balance: float
    kept: float
    unused: float

    @classmethod
    def of(cls, place_lease_seconds: float, factor: float) -> GroupTimes:
        """`place_lease_seconds`: how long an edge keeps a place; `factor`: of all times of a broker."""
        gone = min(GONE_SECONDS, 0.6 * place_lease_seconds) * factor
        return cls(
            beat=gone / 6, lease=gone * 2 / 3, gone=gone,
            session=min(SESSION_SECONDS, 0.5 * place_lease_seconds) * factor,
            balance=min(BALANCE_SECONDS, place_lease_seconds) * factor,
            kept=max(3600.0, 100 * place_lease_seconds) * factor,
            unused=max(UNUSED_SECONDS, 4 * place_lease_seconds) * factor,
        )  # fmt: skip
