"""Checks of feeds that need to read subscriptions, which specifications alone do not."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.predicates import ParseError
from plimsoll.core.predicates import parse as parse_subscription
from plimsoll.core.spec import InvalidResourcesError, ResourceProblem, Resources


def subscription_problems(resources: Resources) -> Iterator[ResourceProblem]:
    """Subscriptions of feeds that cannot be read, with their columns."""
    for _, feed in sorted(resources.feeds.items()):
        try:
            parse_subscription(feed.spec.subscription)
        except ParseError as error:
            remedy = "Write one as [class,=,'STOCK'],[price,>,25.0]."
            yield feed.problem(("spec", "subscription"), str(error), remedy)


def check_feeds(resources: Resources) -> None:
    """Raises InvalidResourcesError for subscriptions that cannot be read."""
    if problems := list(subscription_problems(resources)):
        raise InvalidResourcesError(problems)
