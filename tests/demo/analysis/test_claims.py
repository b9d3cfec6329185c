"""Claims are shown, judged on a quiet machine only, and decide the exit code under `--strict` alone."""

from __future__ import annotations

import pytest

from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.analysis.machine_load import MachineLoad

QUIET = MachineLoad(2, 100.0, 0.9, 0.02)
BUSY = MachineLoad(2, 100.0, 0.9, 1.0)


@pytest.mark.parametrize(
    ("unmet", "machine", "strict", "state", "faults"),
    [
        ([], QUIET, False, "held", []),
        ([], BUSY, True, "held", []),
        (["apart"], QUIET, False, "not held", []),
        (["apart"], BUSY, False, "not judged", []),
        (["apart"], QUIET, True, "not held", ["apart"]),
        (["apart"], BUSY, True, "not held", ["apart"]),
    ],
)
def test_what_becomes_of_a_claim(unmet: list[str], machine: MachineLoad, strict: bool, state: str, faults: list[str]):
    found = ClaimsVerdict(unmet, machine, strict)
    assert (found.state, found.faults) == (state, faults)
    assert found.plain() == {"state": state, "unmet": unmet, "strict": strict}


def test_lines_name_each_claim_and_say_that_the_machine_was_busy():
    assert ClaimsVerdict([], QUIET).lines() == ["claims on balancing: all held"]
    quiet = ClaimsVerdict(["b1 and b2 differ by 0.105"], QUIET).lines()
    assert quiet == [
        "claims on balancing: 1 not held in this run (they do not decide the exit code)", "  b1 and b2 differ by 0.105",
    ]  # fmt: skip
    busy = ClaimsVerdict(["b1 and b2 differ by 0.105"], BUSY).lines()
    assert "too busy: other processes used 1.00" in busy[0]
    assert busy[1:] == quiet[1:]
    assert "--strict was given" in ClaimsVerdict(["x"], BUSY, True).lines()[0]
