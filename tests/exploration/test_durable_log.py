"""The rules of a head that recovers from its disk, explored in every reachable state, with all rules and without each.

The head crashes at any moment and loses any suffix of what it has not synced; it may crash again while it recovers.
With every sync waited for, no accepted publication is lost, none is given twice, order holds, and there is no gap.
Without, what may be lost is inside a gap, and nothing is given twice.
"""

from __future__ import annotations

import pytest
from tests.exploration.durable_log import Config, explore

RULES = [
    ("sent-behind-its-sync", True, ""),
    ("relays-acknowledged-behind-their-sync", True, "complete"),
    ("numbers-of-publishers-recovered", True, "once"),
    ("offsets-of-neighbours-recovered", True, "once"),
    ("a-memory-that-goes-on-is-named", True, "answered"),
    ("E-goes-on-from-its-position", True, "no gap"),
    ("N-goes-on-from-its-position", True, "no gap"),
    ("nothing-is-sent-back", True, "sent back"),
    ("an-unsure-log-has-a-gap", False, "complete"),
    ("a-position-is-of-its-epoch", False, "complete"),
]
"""Each rule with whether syncs are waited for, and the law that is broken without it (empty: any of them)."""


@pytest.mark.parametrize("always", [True, False], ids=["always", "interval"])
def test_no_reachable_state_breaks_a_law(always: bool) -> None:
    result = explore(Config(always, relays=int(always)))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["recovered"] > 0, "a world without a recovery tests nothing"
    assert (result.outcomes["with a gap"] > 0) is not always


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("always", [True, False], ids=["always", "interval"])
def test_nor_with_a_crash_during_recovery(always: bool) -> None:
    result = explore(Config(always, publications=1, relays=int(always), crashes=2))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.sampled(without=("relays-acknowledged-behind", "a-memory-that-goes-on"))
@pytest.mark.parametrize(("rule", "always", "law"), RULES)
def test_each_rule_is_needed(rule: str, always: bool, law: str) -> None:
    result = explore(Config(always, relays=int(always), without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
