"""The rules of hand-over, explored in every reachable state of small worlds, with all rules and without each of them.

The worlds are within a cluster and across clusters, by drain and by replay, with one or two subscribers and one fault
at any time: a connection breaks, an edge crashes, or a subscriber falls behind and is served from the log in slices.
Commands may be missing, or arrive again at any time. These worlds have no leases, no drain deadline, and a log that
evicts nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.exploration.explore import explore
from tests.exploration.world import Config

ONE_HEAD = (("A", "H"), ("B", "H"), ("C", "H"))
TWO_HEADS = (("A", "H1"), ("B", "H2"))
TWO_HEADS_AND_SPARE = (("A", "H1"), ("B", "H2"), ("C", "H1"), ("D", "H2"))
AGAIN = ("PREPARE", "CUT", "ABORT")
WORLDS: dict[str, dict[str, Any]] = {
    "local, one publication": {"pubs": ("H",)},
    "local": {"pubs": ("H",) * 3},
    "local, connection to the source breaks": {"pubs": ("H",), "faults": ("wire A",)},
    "local, connection to the target breaks": {"pubs": ("H",), "faults": ("wire B",)},
    "local, an edge crashes": {"heads": ONE_HEAD, "pubs": ("H",), "faults": ("crash A", "crash B")},
    "local, two subscribers, no publication": {"subscribers": ("x", "y"), "pubs": ()},
    "local, two subscribers": {"subscribers": ("x", "y"), "pubs": ("H",)},
    "replay": {"mode": "replay", "pubs": ("H",) * 3},
    "replay, any fault": {"mode": "replay", "pubs": ("H",) * 2, "faults": ("wire A", "wire B", "crash A", "crash B")},
    "local, falls behind with one": {"pubs": ("H",), "faults": ("behind A",)},
    "local, falls behind": {"pubs": ("H",) * 2, "faults": ("behind A", "behind B")},
    "local, falls behind in three": {"pubs": ("H",) * 3, "faults": ("behind A",)},
    "replay, falls behind": {"mode": "replay", "pubs": ("H",) * 2, "faults": ("behind A", "behind B")},
    "local, commands come again": {"pubs": ("H",), "again": AGAIN},
    "replay, commands come again": {"mode": "replay", "pubs": ("H",), "again": AGAIN, "faults": ("wire A",)},
    "across, falls behind": {"heads": TWO_HEADS, "pubs": ("H2",), "faults": ("behind A", "behind B")},
    "across, one publication": {"heads": TWO_HEADS, "pubs": ("H2",)},
    "across": {"heads": TWO_HEADS, "pubs": ("H1", "H2")},
    "across, the source fails, no publication": {
        "heads": TWO_HEADS_AND_SPARE,
        "pubs": (),
        "faults": ("wire A", "crash A"),
    },
    "across, the source fails": {"heads": TWO_HEADS_AND_SPARE, "pubs": ("H1",), "faults": ("wire A", "crash A")},
    "across, the target fails": {"heads": TWO_HEADS_AND_SPARE, "pubs": ("H2",), "faults": ("wire B", "crash B")},
}
SWEPT = ("local, two subscribers", "local, falls behind in three", "across", "across, the source fails")
"""The largest worlds; the default run has a smaller one of each kind. The tests of rules use these as well."""

RULES = [
    ("first-of-cut-or-abort-wins", "local, one publication", "I5"),
    ("remember-go", "local, one publication", "I5"),
    ("buffer-before-go", "local, one publication", "I1"),
    ("standby-leaves-the-cover", "local, one publication", "I5"),
    ("drain-before-end", "local, falls behind with one", "I1"),
    ("nothing-after-the-cut", "local, falls behind", "I2"),
    ("live-when-the-log-is-read", "local, falls behind in three", "I1"),
    ("a-repeated-command-returns-the-state", "local, commands come again", "I5"),
    ("resume-voids-the-session", "replay, any fault", "I5"),
    ("older-resume-is-refused", "replay, any fault", "I5"),
    ("resume-raises-by-two", "across, the source fails, no publication", "I4"),
    ("stayed-is-the-word-of-the-source", "local, connection to the source breaks", "I8"),
    ("end-carries-the-token", "across, the target fails", "I5"),
]
"""Each rule with the smallest world in which its absence shows, and the law that is broken there."""


@pytest.mark.sampled(
    without=(
        "local, falls",
        "across, falls",
        "across, the",
        "connection to",
        "commands come",
        "two sub",
        "an edge crashes",
    )
)
@pytest.mark.slow
@pytest.mark.timeout(1200)  # up to a hundred thousand states
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.sweep) if name in SWEPT else name for name in WORLDS]
)
def test_no_reachable_state_breaks_a_law(name: str) -> None:
    result = explore(Config(**WORLDS[name]))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["moved"] > 0, "a world in which no subscriber moves tests nothing"
    assert result.outcomes["stayed"] > 0, "a world in which no hand-over is undone tests nothing"
    assert result.outcomes["unknown"] > 0, "a world in which the source always answers in time tests nothing"


@pytest.mark.sampled(
    without=(
        "nothing-after-the-cut",
        "live-when-the-log",
        "a-repeated-command",
        "end-carries-the-token",
        "raises-by-two",
    )
)
@pytest.mark.slow
@pytest.mark.timeout(1200)  # the same worlds, up to the violation
@pytest.mark.parametrize(("rule", "name", "law"), RULES)
def test_each_rule_is_needed(rule: str, name: str, law: str) -> None:
    result = explore(Config(**WORLDS[name], without=(rule,)))
    assert result.violation.startswith(law), (
        result.violation or f"{result.states} states without {rule}, and no violation"
    )
