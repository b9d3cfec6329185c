"""Test vectors of queries for what brokers hold, page by page; `make.py` writes them."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol import messages as msg

DATASET = "7f3a9c2e51d80b64"
STOCK = "[class,=,'STOCK']"
LISTINGS: list[tuple[str, str, Any]] = [
    ("list-publications", "a query for what the head has logged after position 40", msg.ListPublications(16, 40)),
    (
        "publication-page",
        "positions 41 and 42 of a log of 1 to 42: one of them was accepted here",
        msg.PublicationPage(
            16, 11, 1, 42, 42, [msg.PublicationItem("p", 7, 3, 1700000000000000, {"class": "STOCK", "high": 25.5}, 5)]
        ),
    ),
    (
        "list-subscriptions",
        "a query for the lists of all from s on, without one of s",
        msg.ListSubscriptions(17, "s", 1),
    ),
    (
        "subscription-page",
        "s asks for one thing more; t is next",
        msg.SubscriptionPage(17, 12, [msg.SubscriptionListItem("s", [STOCK], 9)], "t"),
    ),
    (
        "list-parameters",
        "a query for the parameters of channels that have changed since revision 7",
        msg.ListParameters(18, 12, 7),
    ),
    (
        "parameter-page",
        "two subscriptions ask for fires; nothing else holds any more",
        msg.ParameterPage(18, 12, 9, [msg.ParameterItem("[channel,=,'near'],[kind,=,'fire']", 2)], True),
    ),
    (
        "list-feed-files",
        "which files of the feed stocks hold rows from 101 on?",
        msg.ListFeedFiles(1, "stocks", "rows", 101),
    ),
    (
        "feed-files-page",
        "one file holds them; retention has deleted the rows up to 60",
        msg.FeedFilesPage(
            1,
            DATASET,
            STOCK,
            150,
            0,
            60,
            [msg.FeedFileItem(61, 150, 88, 9000, 1764000000000000, 1764000009000000)],
        ),
    ),
    (
        "read-feed-file",
        "the beginning of that file",
        msg.ReadFeedFile(2, "stocks", DATASET, "rows", 61, 150, 0, 4096),
    ),
    ("feed-file-part", "its first four bytes", msg.FeedFilePart(2, b"PAR1")),
    ("feed-refused", "there is no such file any more", msg.FeedRefused(3, "gone", "list again")),
]
