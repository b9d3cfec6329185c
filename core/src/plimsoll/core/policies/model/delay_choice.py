"""Which line describes a broker's matching delay: the one over subscriptions, or the one over matches.

Both are fitted to the same measurements, and each predicts the next one before it learns it. The line whose predictions
have been much better is believed. While neither is, a change is predicted by the one that promises less. Emulated
hardware takes a time for each subscription by definition, so there is nothing to wait for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.policies.model.match_delay import (
    HALF_LIFE,
    FittedMatchDelay,
    MatchDelayFitter,
    MatchDelayModel,
    MatchLoadChange,
    SubscriptionMatchDelay,
)
from plimsoll.core.policies.model.subscription_delay import SubscriptionDelayFitter

LEAST_PREDICTIONS = 5
"""Predictions before either line is believed more than the other."""

MUCH_BETTER = 0.5
"""The squared errors of one line beside those of the other, below which it is believed alone."""

NEGLIGIBLE = 1e-3
"""Errors below this part of what was measured say nothing."""

BY_SUBSCRIPTIONS, BY_MATCHES = "Subscriptions", "Matches"


@dataclass(frozen=True, slots=True)
class CarefulMatchDelay:
    """Several models of one broker: of a change, the longest delay that any of them expects."""

    models: tuple[MatchDelayModel, ...]

    @property
    def delay_seconds(self) -> float:
        """The matching delay without a change."""
        return max(model.delay_seconds for model in self.models)

    def after(self, change: MatchLoadChange) -> float:
        """The delay without a change, and the largest difference that a model expects."""
        return self.delay_seconds + max(model.after(change) - model.delay_seconds for model in self.models)


class MatchDelayFits:
    """Both lines of a broker, and how well each has predicted. `known`: the one that holds by definition, if any."""

    __slots__ = ("_errors", "_predictions", "by_matches", "by_subscriptions", "known")

    def __init__(self, known: str = "") -> None:
        self.known = known
        self.by_matches, self.by_subscriptions = MatchDelayFitter(), SubscriptionDelayFitter()
        self._errors = (0.0, 0.0)
        self._predictions = 0

    def note(self, subscriptions: float, matches: float, seconds: float, publications: int) -> None:
        """Add an observation: total matches and seconds of a number of publications, at a number of subscriptions."""
        if publications < 1:
            return
        each = seconds / publications
        one, other = self.by_subscriptions.model(round(subscriptions)), self.by_matches.model()
        if one is not None:
            expected = one.base_seconds + one.seconds_per_subscription * subscriptions
            line = other.base_seconds + other.seconds_per_match * matches / publications
            keep = math.exp(math.log(0.5) * publications / HALF_LIFE)
            floor = (NEGLIGIBLE * each) ** 2
            wrong = publications * ((expected - each) ** 2 + floor), publications * ((line - each) ** 2 + floor)
            self._errors = self._errors[0] * keep + wrong[0], self._errors[1] * keep + wrong[1]
            self._predictions += 1
        self.by_subscriptions.note(subscriptions, seconds, publications)
        self.by_matches.note(matches, seconds, publications)

    @property
    def believed(self) -> str:
        """The line that has predicted much better; empty while neither has."""
        one, other = self._errors
        if self.known:
            return self.known
        if self._predictions < LEAST_PREDICTIONS or one == other:
            return ""
        if one <= MUCH_BETTER * other:
            return BY_SUBSCRIPTIONS
        return BY_MATCHES if other <= MUCH_BETTER * one else ""

    def report(self, subscriptions: int) -> dict[str, Any]:
        """The fields of a load report from which `reported_model` makes the model again."""
        line, other = self.by_matches.model(), self.by_subscriptions.model(subscriptions)
        found = {"match_base_seconds": line.base_seconds, "match_seconds_per_match": line.seconds_per_match}
        if other is None:
            return found
        return {
            **found,
            "match_subscription_base_seconds": other.base_seconds,
            "match_seconds_per_subscription": other.seconds_per_subscription,
            "match_delay_grows_with": self.believed,
        }


def reported_model(report: Mapping[str, Any]) -> MatchDelayModel | None:
    """The model of the broker that has sent this load report; None if it has measured nothing yet."""
    by_subscriptions, by_matches = _line_over_subscriptions(report), fitted_line(report)
    believed = report.get("match_delay_grows_with")
    if by_subscriptions is None or believed == BY_MATCHES:
        return by_matches
    if by_matches is None or believed == BY_SUBSCRIPTIONS:
        return by_subscriptions
    return CarefulMatchDelay((by_subscriptions, by_matches))


def _line_over_subscriptions(report: Mapping[str, Any]) -> SubscriptionMatchDelay | None:
    names = ("match_subscription_base_seconds", "match_seconds_per_subscription", "subscriptions")
    numbers = _numbers(report, *names)
    return None if numbers is None else SubscriptionMatchDelay(numbers[0], numbers[1], int(numbers[2]))


def fitted_line(report: Mapping[str, Any]) -> FittedMatchDelay | None:
    """The line over matches that a broker has fitted, at its present rate of matching."""
    numbers = _numbers(report, "match_base_seconds", "match_seconds_per_match", "input_rate", "output_rate")
    if numbers is None or not numbers[2]:
        return None
    return FittedMatchDelay(numbers[0], numbers[1], numbers[3] / numbers[2])


def _numbers(report: Mapping[str, Any], *names: str) -> list[float] | None:
    values = [report.get(name) for name in names]
    if any(isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each < math.inf for each in values):
        return None
    return [float(each) for each in values if isinstance(each, int | float)]
