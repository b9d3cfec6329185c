"""Plays one scenario against a client, and says whether it kept the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from plimsoll.conformance.client_under_test import ClientUnderTest
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import Scenario
from plimsoll.conformance.stage import Stage


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rule` and `found` are set where a rule was broken; `exchange`: the lines up to there."""

    scenario: Scenario
    is_kept: bool
    seconds: float
    exchange: list[str]
    lines: list[dict[str, Any]]
    rule: Rule | None = None
    found: str = ""


def play(scenario: Scenario, start: Callable[[], ClientUnderTest], patience: float = 1.0) -> Verdict:
    """Start a client, play the scenario against it, end it."""
    with closing(start()) as client:
        stage, began = Stage(client, patience), client.now()
        broken: RuleBrokenError | None = None
        try:
            scenario.play(stage)
        except RuleBrokenError as error:
            broken = error
        exchange = stage.exchange
        return Verdict(
            scenario=scenario, is_kept=broken is None, seconds=client.now() - began, exchange=exchange.text(),
            lines=[line._asdict() for line in exchange.lines],
            rule=broken.rule if broken else None, found=broken.found if broken else "",
        )  # fmt: skip


def play_all(
    scenarios: Sequence[Scenario], start: Callable[[], ClientUnderTest], jobs: int = 1, patience: float = 1.0
) -> Iterator[Verdict]:
    """Play scenarios, several at a time, each against a client of its own; verdicts come in the order of scenarios."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda scenario: play(scenario, start, patience), scenarios)
