"""Which changes of the place of datasets are refused, and what is said to do."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.problems import path_text
from plimsoll.core.spec.resources import Resource
from plimsoll.core.spec.validation.datasets import moved_datasets

ON_VOLUME, IN_STORE = FeedSpec(subscription="[a,=,1]"), FeedSpec(subscription="[a,=,1]", path="s3a://b/f")


def fleet(**datasets: str) -> Resource[Any]:
    ([found], []) = parse_each([SourceDocument({
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"},
        "spec": {"datasets": datasets},
    })])  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("had", "feeds", "has_channels", "words"),
    [
        ({"volumeClaim": "a"}, [ON_VOLUME], False, "delete the feeds first"),
        ({"volumeClaim": "a"}, [IN_STORE, ON_VOLUME], True, "delete the feeds and channels first"),
        ({"volumeClaim": "a"}, [IN_STORE], True, "channels have their ledgers on the volume a"),
        ({"volumeClaim": "a"}, [IN_STORE], False, ""),
        ({"volumeClaim": "a"}, [], False, ""),
        ({"volumeClaim": "a", "ledgers": "s3a://b/l"}, [IN_STORE], True, ""),
        ({"volumeClaim": "b"}, [ON_VOLUME], True, ""),
        ({}, [ON_VOLUME], True, ""),
    ],
)
def test_a_volume_is_kept_while_something_on_it_is_in_use(
    had: dict[str, str], feeds: list[FeedSpec], has_channels: bool, words: str
) -> None:
    after = fleet(volumeClaim="b", **{key: value for key, value in had.items() if key == "ledgers"})
    found = list(moved_datasets(fleet(**had).spec.datasets, after, feeds, has_channels=has_channels))
    assert [path_text(each.path) for each in found] == (["spec.datasets.volumeClaim"] if words else [])
    assert all(words in each.sentence for each in found)
