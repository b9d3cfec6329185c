"""Feeds as resources: what is read, and where a wrong one is located."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.spec import InvalidResourcesError, Resources, SourceDocument, parse
from plimsoll.core.spec.kinds import kind_named
from plimsoll.core.spec.validation.updates import refused_changes

SUBSCRIPTION = "[class,=,'STOCK']"


def feeds(*specs: dict[str, Any]) -> Resources:
    return parse(
        SourceDocument(
            {
                "apiVersion": "plimsoll.dev/v1alpha1",
                "kind": "Feed",
                "metadata": {"name": f"f{index}"},
                "spec": {"subscription": SUBSCRIPTION, **spec},
            }
        )
        for index, spec in enumerate(specs)
    )


def test_a_feed_needs_a_subscription_alone() -> None:
    spec = feeds({}).feeds["f0"].spec
    assert (spec.subscription, spec.path, spec.schema) == (SUBSCRIPTION, "", None)
    assert (spec.commit_interval.seconds, spec.retain.age, spec.retain.size) == (10, None, None)
    assert (kind := kind_named("fd")) is not None
    assert kind.name == "Feed"


def test_a_declared_feed() -> None:
    columns = [{"name": "price", "type": "Number"}, {"name": "class", "type": "String", "required": True}]
    given = {"schema": {"columns": columns, "unknownAttributes": "Drop"}, "retain": {"age": "168h", "size": "10Gi"}}
    resources = feeds(given)
    spec = resources.feeds["f0"].spec
    assert spec.schema is not None
    assert [(each.name, each.type, each.required) for each in spec.schema.columns] == [
        ("price", "Number", False), ("class", "String", True),
    ]  # fmt: skip
    assert resources.feeds["f0"].mapping()["spec"] == {"subscription": SUBSCRIPTION, **given}


@pytest.mark.parametrize(
    ("spec", "path", "found"),
    [
        ({"subscription": 5}, "spec.subscription", "5 is not text"),
        ({"schema": {"columns": []}}, "spec.schema.columns", "this list is empty"),
        ({"schema": {"columns": [{"name": "_seq", "type": "Integer"}]}}, "spec.schema.columns[0].name",
         'every feed has a column "_seq" of its own'),
        ({"schema": {"columns": [{"name": "a b", "type": "Integer"}]}}, "spec.schema.columns[0].name",
         '"a b" is not of the right form'),
        ({"schema": {"columns": [{"name": "a", "type": "Float"}]}}, "spec.schema.columns[0].type",
         '"Float" is not a choice here'),
        ({"commitInterval": "10ms"}, "spec.commitInterval", "is too small"),
        ({"retain": {"age": "0s"}}, "spec.retain.age", "is too small"),
        ({"path": "s3a://bucket"}, "spec.path", "is no place in an object store"),
        ({"retain": {"size": "0"}}, "spec.retain.size", "is too small"),
    ],
)  # fmt: skip
def test_a_wrong_feed_is_located(spec: dict[str, Any], path: str, found: str) -> None:
    with pytest.raises(InvalidResourcesError) as caught:
        feeds(spec)
    [problem] = caught.value.problems
    assert path in str(problem)
    assert found in problem.found


def test_two_feeds_have_two_folders() -> None:
    with pytest.raises(InvalidResourcesError, match=r"Feed/f1 spec.path: Feed/f0 is recorded there, too"):
        feeds({"path": "/data/stocks"}, {"path": "/data/stocks/"})
    with pytest.raises(InvalidResourcesError, match="is recorded there, too"):
        feeds({"path": "feeds/f1"}, {})


def test_a_dataset_that_was_begun_keeps_its_subscription_and_schema() -> None:
    before = feeds({"path": "/a"})
    [problem] = refused_changes(before, feeds({"path": "/a", "subscription": "[class,=,'BOND']"}))
    assert "spec.subscription: this cannot change for a dataset that was begun" in str(problem)
    assert not list(refused_changes(before, feeds({"path": "/b", "subscription": "[class,=,'BOND']"})))
    assert not list(refused_changes(before, feeds({"path": "/a", "commitInterval": "1s"})))
    assert not list(refused_changes(before, feeds()))
