"""The claims of a run beyond correct delivery: convergence, overhead, spread of load. All depend on the machine.

Correct delivery alone decides the exit code. Claims are reported as measured, and not judged if the machine was too
busy. `--strict` fails a run over its claims all the same, for benchmarks on a quiet machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.demo.analysis.machine_load import MachineLoad

ClaimsState = Literal["held", "not held", "not judged"]


@dataclass(frozen=True, slots=True)
class ClaimsVerdict:
    """`unmet`: the claims that the run did not show, one sentence each. `is_strict`: unmet claims fail the run."""

    unmet: Sequence[str]
    machine: MachineLoad
    is_strict: bool = False

    @property
    def state(self) -> ClaimsState:
        if not self.unmet:
            return "held"
        return "not judged" if self.machine.is_too_busy and not self.is_strict else "not held"

    @property
    def faults(self) -> list[str]:
        """The reasons why the run fails."""
        return list(self.unmet) if self.is_strict else []

    def lines(self) -> list[str]:
        """For the terminal: the state first, then each unmet claim."""
        if self.state == "held":
            return ["claims on balancing: all held"]
        if self.is_strict:  # the faults have been printed with the verdict
            return [f"claims on balancing: not held, and --strict was given; {self.machine.text()}"]
        if self.state == "not judged":
            head = f"claims on balancing: not judged, the machine was too busy: {self.machine.text()}"
        else:
            head = f"claims on balancing: {len(self.unmet)} not held in this run (they do not decide the exit code)"
        return [head, *(f"  {text}" for text in self.unmet)]

    def plain(self) -> dict[str, Any]:
        """The section of the report."""
        return {"state": self.state, "unmet": list(self.unmet), "strict": self.is_strict}
