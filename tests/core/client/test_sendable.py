"""What no broker could read is said to its caller, before anything is queued, and hurts no other handle."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from plimsoll.core.client import Client
from plimsoll.core.client.errors import ListFullError, PublicationError
from plimsoll.core.client.limits import Address
from plimsoll.core.client.publisher import encoded_body
from plimsoll.core.protocol import messages as msg

LONE = "a\ud800"


def client(name: str = "app") -> Client:
    return Client(name, 1, count(1).__next__, [Address("tcp://127.0.0.1:7000", "")])


BAD: dict[str, Callable[[Client], object]] = {
    "publisher": lambda c: c.publisher(LONE),
    "subscriber": lambda c: c.subscriber(LONE),
    "prefer": lambda c: c.subscriber("s", prefer=LONE),
    "token": lambda c: c.subscriber("s", token="x"),  # type: ignore[arg-type]  # noqa: S106  # a place in a log
    "token of a lone surrogate": lambda c: c.subscriber("s", token=(LONE, 1, 1)),
    "watermark": lambda c: c.subscriber("s", watermarks=[("h", -1, 1)]),
    "since": lambda c: c.subscriber("s", since=1e300),
    "lease": lambda c: c.subscriber("s", lease_seconds=1e300),
    "location": lambda c: c.subscriber("s", location=(1e300, 0.0)),
    "policy": lambda c: c.subscriber("s", policy=msg.Policy(block_seconds=math.nan)),
    "slice": lambda c: c.subscriber("a@@1"),
    "group": lambda c: c.group_member(LONE, "m"),
    "member": lambda c: c.group_member("g", LONE),
    "slices -1": lambda c: c.group_member("g", "m", msg.GroupDefinition("", -1, "Hash")),
    "slices 1.5": lambda c: c.group_member("g", "m", msg.GroupDefinition("", 1.5, "Hash")),  # type: ignore[arg-type]  # the same
}


@pytest.mark.parametrize("case", BAD)
def test_a_handle_that_no_broker_could_read_is_not_made(case: str):
    machine = client()
    with pytest.raises(ValueError, match=r"^[ -~]+$"):  # the text is printable as well
        BAD[case](machine)
    assert not machine.publishers
    assert not machine.subscribers
    assert not machine.members
    machine.subscriber("s")  # the name is free, and others go on
    machine.publisher("p")


@pytest.mark.parametrize("name", ["x" * 256, LONE, ""])
def test_a_connection_has_a_name_that_brokers_can_read(name: str):
    with pytest.raises(ValueError, match="the name of a connection"):
        client(name)


def test_a_subscription_that_no_broker_could_read_is_not_taken_and_not_repeated_in_full():
    subscriber = client().subscriber("s")
    with pytest.raises(ListFullError, match="at most 65536") as caught:
        subscriber.subscribe("[a,in,(" + ",".join(f"'{'k' * 60}{i}'" for i in range(2000)) + ")]")
    assert len(str(caught.value)) < 300
    with pytest.raises(ValueError, match="subscription"):
        subscriber.subscribe(f"[a,=,'{LONE}']")
    with pytest.raises(ValueError, match="subscription"):
        subscriber.subscribe("[a,=,1]", {"k": LONE})
    assert not subscriber.subscriptions
    subscriber.subscribe("[a,=,1]")


@pytest.mark.parametrize("attributes", ["x", None, 5, ["a"], {LONE: 1}, {"a": LONE}])
def test_what_is_no_publication_is_an_error_of_a_publication(attributes: Any):
    with pytest.raises(PublicationError):
        encoded_body(attributes, b"", 1000)
