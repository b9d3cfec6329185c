"""Checks of channels over several fields, each with its place and a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.spec.channels import channels

from plimsoll.core.spec import InvalidResourcesError
from plimsoll.core.spec.validation.updates import refused_changes

NEW = {"name": "r", "feed": "reports"}
ALL = {"name": "past", "feed": "reports", "rows": "All"}


@pytest.mark.parametrize(
    ("spec", "path", "found"),
    [
        ({"parameters": []}, "spec.parameters", "this list is empty"),
        ({"parameters": [{"name": "batch", "type": "String"}]}, "spec.parameters[0].name", 'an attribute "batch"'),
        ({"feeds": [{"name": "parameters", "feed": "reports"}]}, "spec.feeds[0].name", 'a view "parameters" already'),
        ({"tables": [{"name": "R", "path": "x"}]}, "spec.tables[0].name", 'a view "R" already'),
        ({"tables": [{"name": "t", "path": "http://h/x"}]}, "spec.tables[0].path", "no place in an object store"),
        ({"feeds": [{"name": "r", "feed": "report"}]}, "spec.feeds[0].feed", 'there is no Feed "report"'),
        ({"feeds": []}, "spec.feeds", "no feed of the query has `rows: New`"),
        ({"feeds": [ALL]}, "spec.feeds", "no feed of the query has `rows: New`"),
        ({"feeds": [{**NEW, "within": "1m"}]}, "spec.feeds[0].within", "new rows are seen once"),
        ({"feeds": [NEW, {**NEW, "name": "s"}]}, "spec.feeds[1].feed", "another view has the new rows"),
        ({"mode": "Repetitive"}, "spec.every", "a Repetitive channel needs a period"),
        ({"every": "10s"}, "spec.every", "a Continuous channel has no period"),
    ],
)
def test_a_wrong_channel_is_refused_with_its_place(spec: dict[str, Any], path: str, found: str) -> None:
    with pytest.raises(InvalidResourcesError) as caught:
        channels(spec)
    assert f"Channel/c0 {path}: " in str(caught.value)
    assert found in str(caught.value)


def test_a_repetitive_channel_may_look_at_what_is_kept_alone() -> None:
    spec = channels({"feeds": [{**ALL, "within": "1m"}], "mode": "Repetitive", "every": "10s"}).channels["c0"].spec
    assert [(each.rows, each.within and each.within.seconds) for each in spec.feeds] == [("All", 60)]


def test_a_running_channel_keeps_its_places_in_feeds_and_may_change_all_else() -> None:
    running = channels({})
    assert list(refused_changes(running, channels({"query": "SELECT 1", "feeds": [NEW, ALL]}))) == []
    assert list(refused_changes(running, channels())) == []
    repetitive = {"feeds": [ALL], "mode": "Repetitive", "every": "10s"}
    [problem] = refused_changes(running, channels(repetitive))
    assert (problem.subject, problem.path) == ("Channel/c0", ("spec", "feeds"))
