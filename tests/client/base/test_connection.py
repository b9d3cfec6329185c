"""What is decided of a connection, whichever way its users wait: no broker answers here."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.base.conftest import NOWHERE

from plimsoll.client import Connection, Publisher, errors
from plimsoll.client.aio import AsyncConnection, AsyncPublisher
from plimsoll.client.base.connection import connection_for
from plimsoll.client.waiting import run
from plimsoll.core.client import Answered
from plimsoll.core.client.publisher_position import PublisherPosition

EARLIER = PublisherPosition(incarnation=3, number=7, seq=7, head="h", epoch=1)


def test_a_connection_is_shared_as_it_is_and_made_only_with_its_security(connection: Connection) -> None:
    assert connection_for(Connection, connection, None) == (connection, False)
    with pytest.raises(ValueError, match="has its security already"):
        connection_for(Connection, connection, "plain")
    with pytest.raises(ValueError, match="security='plain'"):
        connection_for(Connection, NOWHERE, None)
    own, is_own = connection_for(Connection, NOWHERE, "plain")
    own.close(timeout=0.0)
    assert is_own


def test_what_does_not_come_true_says_so_until_the_connection_has_ended(connection: Connection) -> None:
    with connection.lock, pytest.raises(errors.WaitTimeoutError, match="not here within 0 s: no head answers"):
        run(connection.wait_for(lambda: False, 0.0, "here"))
    connection.close(timeout=0.0)
    with connection.lock, pytest.raises(errors.ClosedError, match="is closed"):
        run(connection.wait_for(lambda: False, None, "here"))


def test_parts_of_a_definition_need_its_slices(connection: Connection) -> None:
    assert connection.group("readings").definition is None
    with pytest.raises(TypeError, match="group 'readings': by without slices="):
        connection.group("readings", by="sensor")
    assert "readings" in connection.group("readings").stamp


def test_what_an_earlier_life_has_sent_is_published_with_either_library(connection: Connection) -> None:
    async def main() -> list[int]:
        async with AsyncConnection(NOWHERE, security="plain") as own:
            publisher = AsyncPublisher(own, position=EARLIER, unanswered=[({"n": 1}, b""), ({"n": 2}, b"")])
            assert (publisher.position, publisher.is_open) == (EARLIER, False)
            await publisher.close(timeout=0.0)
            await own.close(timeout=0.0)
            return [receipt.number for receipt in publisher.resumed]

    publisher = Publisher(connection, position=EARLIER, unanswered=[({"n": 1}, b""), ({"n": 2}, b"")])
    assert [receipt.number for receipt in publisher.resumed] == asyncio.run(main()) == [8, 9]


def test_answers_of_a_closed_publisher_are_given_to_its_callback(connection: Connection) -> None:
    answers: list[Answered] = []
    publisher = Publisher(connection, on_answer=answers.extend)
    receipt = publisher.publish({"n": 1})
    publisher.close(timeout=0.0)
    assert [answer.answer for answer in answers] == ["refused"]
    with pytest.raises(errors.NotAcceptedError, match="refused"):
        receipt.wait(0)
