"""The name of the subscriber of a dataset."""

from __future__ import annotations

from plimsoll.feeds.names import recorder_name, subscriber_name


def test_a_dataset_has_a_subscriber_of_its_own_in_every_life() -> None:
    assert subscriber_name("/a") == subscriber_name("/a") != subscriber_name("/b")
    assert len(subscriber_name("/a" * 5000)) == 21


def test_the_recorder_of_a_feed_has_a_name_that_clients_may_not_use() -> None:
    assert recorder_name("/a") == f"recorder.{subscriber_name('/a')}"
