"""Why a subscriber or a member of a group gives nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.client import Connection, GapNotice, GroupSubscriber, Subscriber, errors

Receiver = Subscriber | GroupSubscriber


def member_of(connection: Connection) -> GroupSubscriber:
    return connection.group("readings").subscribe(wait=False)


@pytest.mark.parametrize(("make", "said"), [(Subscriber, "subscriber"), (member_of, "member")])
def test_it_says_what_it_is_when_it_waits_in_vain_and_when_it_is_closed(
    connection: Connection, make: Callable[[Connection], Receiver], said: str
) -> None:
    one = make(connection)
    with pytest.raises(errors.WaitTimeoutError, match=f"{said} '{one.name}': nothing was delivered within 0 s"):
        one.receive(0.0)
    one.close()
    with pytest.raises(errors.ClosedError, match=f"{said} '{one.name}' is closed"):
        one.receive()


@pytest.mark.parametrize("make", [Subscriber, member_of])
def test_a_callback_that_has_raised_comes_before_its_end(
    connection: Connection, make: Callable[[Connection], Any]
) -> None:
    one = make(connection)
    one._callback_error = KeyError("mine")
    one.close()
    with pytest.raises(errors.CallbackError, match="has raised") as raised:
        one.receive()
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_member_that_was_told_to_stop_says_so(connection: Connection) -> None:
    member = member_of(connection)
    member.stop()
    with pytest.raises(errors.ClosedError, match="was told to stop"):
        member.receive()
    assert list(member) == []


def test_a_member_and_a_subscriber_end_with_their_connection(connection: Connection) -> None:
    subscriber = Subscriber(connection)
    member = connection.group("readings").subscribe(wait=False)
    with pytest.raises(errors.WaitTimeoutError, match="nothing was delivered within 0 s"):
        subscriber.receive(0.0)
    with pytest.raises(errors.WaitTimeoutError, match="nothing was delivered within 0 s"):
        member.receive(0.0)
    connection.close(timeout=0.0)
    for receive in (subscriber.receive, member.receive):
        with pytest.raises(errors.ClosedError):
            receive()
    assert [item for item in subscriber if isinstance(item, GapNotice)] == []
    member.close()
