"""Subscriptions of feeds are read when a Feed is applied."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.spec import InvalidResourcesError, Resources, SourceDocument, parse
from plimsoll.feeds.checks import check_feeds, subscription_problems


def feeds(**subscriptions: str) -> Resources:
    def document(name: str, text: str) -> SourceDocument:
        content: dict[str, Any] = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Feed", "metadata": {"name": name}}
        return SourceDocument({**content, "spec": {"subscription": text}})

    return parse(document(name, text) for name, text in subscriptions.items())


def test_a_subscription_that_cannot_be_read_is_located() -> None:
    found = feeds(good="[class,=,'STOCK']", wrong="[class,=,STOCK")
    assert [(each.subject, each.path) for each in subscription_problems(found)] == [
        ("Feed/wrong", ("spec", "subscription"))
    ]
    with pytest.raises(InvalidResourcesError, match=r"Feed/wrong spec.subscription: .*\n.*Write one as"):
        check_feeds(found)
    check_feeds(feeds(good="[class,=,'STOCK']"))
