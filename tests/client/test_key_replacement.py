"""A client whose key is revoked comes back with the key that its file holds by then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from tests.client.conftest import Fleet

from plimsoll.client import ClientLimits, Delivery, Publisher, Subscriber
from plimsoll.client.errors import StalledError
from plimsoll.core.transport.link import LinkLimits


def replace_key(fleet: Fleet) -> None:
    """Authorise another key in place of the application's, and put it into its file."""
    public, secret = zmq.curve_keypair()
    old = fleet.pairs["app"][0].decode()
    authorized = fleet.folder / "authorized"
    write(authorized, authorized.read_text().replace(old, public.decode()))
    write(fleet.folder / "app.key", secret.decode() + "\n")


def write(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_a_connection_whose_key_was_revoked_comes_back_with_the_new_one(
    own_fleet: Callable[..., Fleet], eventually: Callable[..., None]
) -> None:
    fleet = own_fleet(curve=True, client="app")
    with fleet.connection(name="app") as connection:
        received: list[object] = []
        subscriber = Subscriber(
            connection,
            on_batch=lambda batch: received.extend(
                each.attributes["n"] for each in batch if isinstance(each, Delivery)
            ),
        )
        subscriber.subscribe("[kind,=,'a']", timeout=300)
        publisher = Publisher(connection)
        publisher.publish({"kind": "a", "n": 1}).wait(300)
        assert connection.status()["connected"]
        replace_key(fleet)
        eventually(lambda: not connection.status()["connected"], 300)
        assert "no longer authorised" in connection.status()["last_error"]
        publisher.publish({"kind": "a", "n": 2}).wait(300)
        assert connection.status()["connected"]
        assert "no longer authorised" in connection.status()["last_error"]
        eventually(lambda: received == [1, 2], 300)
        subscriber.close()


@pytest.mark.timeout(1200)
def test_a_publisher_without_an_answer_says_so_and_goes_on_when_it_can(
    own_fleet: Callable[..., Fleet], eventually: Callable[..., None]
) -> None:
    fleet = own_fleet(curve=True, client="app")
    limits = ClientLimits(stall_seconds=1.0, link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0))
    with fleet.connection(name="app", limits=limits) as connection:
        publisher = Publisher(connection)
        publisher.publish({"n": 0}).wait(300)
        authorized = fleet.folder / "authorized"
        allowed = authorized.read_text()
        write(authorized, "".join(line for line in allowed.splitlines(keepends=True) if "client" not in line))

        def is_refused() -> bool:
            try:
                publisher.publish({"n": 1})
            except StalledError as error:
                return "unanswered" in str(error)
            return False

        eventually(is_refused, 300)
        eventually(lambda: not connection.status()["connected"], 300)
        eventually(lambda: connection.status()["since_seconds"] > 0.5, 300)
        write(authorized, allowed)
        replace_key(fleet)
        assert publisher.flush(300).unknown == 0
        publisher.publish({"n": 2}).wait(300)
