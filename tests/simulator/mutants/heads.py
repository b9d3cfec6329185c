"""Publishers that leave overloaded heads by themselves: docs/delay-sensitive.md."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.policies.delay_sensitive import head_fleet
from plimsoll.core.policies.delay_sensitive.head_relief import _ReliefMoves
from plimsoll.core.session.request import head_relief_plan
from plimsoll.core.session.triggers import head_overload

CALM, FAULTS = "sessions-deadlines-heads", "sessions-deadlines-heads-faults"

MUTANTS = [
    Mutant(
        "publisher-leaves-for-nothing",
        "A publisher leaves only if its head carries less of what is overloaded without it.",
        (Change(_ReliefMoves._moved_to, "not _is_less(after.heads[source], before, metric)", "False"),),
        (CALM,),
    ),
    Mutant(
        "what-comes-back-is-not-counted",
        "What subscribers on this side of a link ask for comes back over it.",
        (Change(head_fleet._share_back, "return _share(max(row.local_rate, behind_others), row)", "return 0.0"),),
        (CALM,),
    ),
    Mutant(
        "target-would-shed-next",
        "The target stays below its lower thresholds.",
        (Change(_ReliefMoves._too_much, "over.update(limits.above_lower(load))", "pass"),),
        (CALM,),
    ),
    Mutant(
        "heads-on-the-way-are-not-asked",
        "So do the heads on the way to it.",
        (Change(_ReliefMoves._refusal, "if self.policy.is_letter:", "if True:"),),
        (CALM,),
    ),
    Mutant(
        "publishers-of-a-topic-part",
        "Publishers go singly only if no head takes all of any topic.",
        (Change(_ReliefMoves._relieved_of, "if self._moved:", "if False:"),),
        (CALM,),
    ),
    Mutant(
        "one-report-is-enough",
        "A head is overloaded if two reports in a row say so.",
        (Change(head_overload._overload, "load.seq > first[1]", "True"),),
        (CALM,),
    ),
    Mutant(
        "heads-are-relieved-at-once",
        "Heads are relieved one after another.",
        (
            Change(head_overload._is_engaged, "context.now < until and all(", "False and all("),
            Change(head_overload._is_engaged, " or _is_relief(context, one)", ""),
        ),
        (CALM,),
    ),
    Mutant(
        "head-that-takes-some-is-asked",
        "A head that takes publishers of another session is no target.",
        (
            Change(
                head_relief_plan.make_head_relief_plan, "busy = _taking_heads(context, request)", "busy = frozenset()"
            ),
        ),
        (FAULTS,),
    ),
    Mutant(
        "who-stayed-is-asked-again",
        "Publishers whose clients did not move are left alone for a while.",
        (Change(head_overload._session_spec, "sorted(alone)[:EXCLUDED_AT_MOST]", "[]"),),
        (FAULTS,),
    ),
    Mutant(
        "no-pause-after-nothing",
        "After sessions that moved none the next one waits, longer each time.",
        (
            Change(
                head_overload._look_at, "if context.now < earliest_next(ended, policy.interval_seconds):", "if False:"
            ),
        ),
        (CALM,),
    ),
]
