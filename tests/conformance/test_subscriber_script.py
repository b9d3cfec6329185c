"""RESUME and ATTACH are held to the state: a raw client gets one value wrong at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.conformance.raw_client import RawClient, data, hello

from plimsoll.conformance.expected_state import STOCK
from plimsoll.conformance.rules import RuleBrokenError
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import ATTACH_IS, SubscriberScript
from plimsoll.core.protocol import messages as msg

ITEMS = [msg.SubscriptionItem(1, STOCK)]
GOOD = msg.Resume(5, "s", (7, 4), 1, ITEMS, msg.Policy(), ("h", 11, 9), [("h", 11, 9)], None)
ATTACH = msg.AttachItem(6, "s", (7, 5), 1, ITEMS, msg.Policy())


def script() -> tuple[RawClient, SubscriberScript]:
    client = RawClient()
    x = SubscriberScript(Stage(client), token=("h", 11, 9), watermarks=[("h", 11, 9)])
    x.state.n, x.state.version = 2, 1
    return client, x


def resume(**wrong: Any) -> None:
    client, x = script()
    client.frames("e1", hello(), data(1, msgspec.structs.replace(GOOD, **wrong)))
    x.expect_resume("e1")


def test_a_resume_that_is_right():
    resume()


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("epoch", (7, 3), "RESUME has n 3; it was 2"),
        ("epoch", (8, 4), "incarnation 8, HELLO 7"),
        ("version", 0, "version 0"),
        ("subscriptions", [], r"the list is \[\]"),
        ("token", None, "RESUME has the token None"),
        ("watermarks", [], "RESUME has the watermarks"),
        ("session", "3.1", "RESUME names the session 3.1"),
    ],
)
def test_a_resume_with_one_value_wrong(field: str, value: Any, found: str):
    with pytest.raises(RuleBrokenError, match=found):
        resume(**{field: value})


def test_an_attachment_number_is_used_once_on_a_link():
    client, x = script()
    client.frames("e1", hello(), data(1, GOOD), data(2, msgspec.structs.replace(GOOD, epoch=(7, 6))))
    x.expect_resume("e1")
    with pytest.raises(RuleBrokenError, match="attachment 5 has been used"):
        x.expect_resume("e1")


def test_the_session_of_the_last_end_may_be_named_once():
    client, x = script()
    x.ended_session = "3.1"
    client.frames("e1", hello(), data(1, msgspec.structs.replace(GOOD, session="3.1")))
    x.expect_resume("e1")
    assert x.ended_session is None


@pytest.mark.parametrize(
    ("session", "item", "found"),
    [
        ("3.2", ATTACH, "ATTACH names 3.2"),
        ("3.1", msgspec.structs.replace(ATTACH, epoch=(7, 4)), "ATTACH has n 4"),
        ("3.1", msgspec.structs.replace(ATTACH, subscriptions=[]), r"the list is \[\]"),
    ],
)
def test_an_attach_with_one_value_wrong(session: str, item: msg.AttachItem, found: str):
    client, x = script()
    x.state.n = 4
    client.frames("e2", hello(), data(1, msg.Attach(session, [item])))
    with pytest.raises(RuleBrokenError, match=found):
        x.expect_attach("e2", ATTACH_IS)


def test_end_raises_n_and_sets_the_token():
    client, x = script()
    client.frames("e1", hello(), data(1, GOOD))
    x.expect_resume("e1")
    x.end(position=20)
    assert (x.state.n, x.state.token, x.ended_session) == (5, ("h", 11, 20), "3.1")
