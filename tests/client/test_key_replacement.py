"""A client whose key is revoked comes back with the key that its file holds by then; and so it does to a head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
import zmq
from tests.client.conftest import MEDIATOR, Fleet

from plimsoll.client import ClientLimits, Connection, Curve, Delivery, Publisher, Receipt, Subscriber
from plimsoll.client.errors import StalledError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import LinkLimits
from plimsoll.mediator.control_plane import ControlPlane, HeadMessageReceived, MediatorKeyPair, StatusReceived


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


class Mover:
    """A mediator that moves one publisher from the head h to the head w."""

    def __init__(self, fleet: Fleet) -> None:
        public, secret = (key.decode() for key in fleet.pairs[MEDIATOR])
        self.control = ControlPlane(MEDIATOR, MediatorKeyPair(public, secret), 1)
        self.control.dial(fleet.peer("h"), "head")
        plan = msg.PublisherPlan("w", fleet.data["w"], fleet.pairs["w"][0].decode(), ["p"], 30.0)
        self.command = msg.PublisherCommand(1, 0, "1.1", "move", plan)
        self.states: set[str] = set()

    def has_moved_it(self) -> bool:
        self.control.ask("h")
        for event in self.control.poll(0.1):
            if isinstance(event, StatusReceived):
                epoch = int(event.status["epoch"])
                self.control.send("h", msg.PublisherCommand(1, epoch, "1.1", "move", self.command.plan))
            elif isinstance(event, HeadMessageReceived) and isinstance(event.said, msg.PublisherOutcome):
                self.states.add(event.said.state)
        return "done" in self.states


@contextmanager
def publishing(publisher: Publisher) -> Iterator[list[Receipt]]:
    """A publication every 10 ms, from a thread of its own."""
    receipts: list[Receipt] = []
    stopped = Event()

    def run() -> None:
        for number in count():
            if stopped.wait(0.01):
                return
            receipts.append(publisher.publish({"n": number}))

    thread = Thread(target=run)
    thread.start()
    try:
        yield receipts
    finally:
        stopped.set()
        thread.join(300)


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_a_moved_publisher_goes_on_through_a_replacement_of_the_key_of_the_head_that_it_was_moved_to(
    own_fleet: Callable[..., Fleet], eventually: Callable[..., None]
) -> None:
    """The application was given the files of both heads' keys, and connects to one of them."""
    fleet = own_fleet(curve=True, west=True)
    files = {head: fleet.folder / "mounted" / f"{head}-head.key" for head in ("h", "w")}
    (fleet.folder / "mounted").mkdir()
    for head, file in files.items():
        write(file, fleet.pairs[head][0].decode() + "\n")
    old, (new, new_secret) = fleet.pairs["w"][0].decode(), zmq.curve_keypair()
    keys, authorized = Curve(secret=fleet.folder / "app.key", server=files["h"]), fleet.folder / "authorized"
    limits = ClientLimits(link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0))
    mover = Mover(fleet)
    with closing(mover.control), Connection(fleet.head, security=keys, limits=limits) as connection:
        publisher = Publisher(connection, name="p")
        publisher.publish({"n": -1}).wait(300)
        with publishing(publisher) as receipts:
            eventually(mover.has_moved_it, 300)
            eventually(lambda: publisher.statistics()["head"] == "w", 300)
            write(authorized, f"{authorized.read_text()}{new.decode()} head w\n")
            write(files["w"], f"{old}\n{new.decode()}\n")
            write(fleet.folder / "w.key", new_secret.decode() + "\n")
            eventually(lambda: "reloaded this broker's key" in (fleet.folder / "w.log").read_text(), 300)
            write(authorized, authorized.read_text().replace(f"{old} head w\n", ""))
            write(files["w"], new.decode() + "\n")
            receipts[-1].wait(300)
            after = len(receipts)
            eventually(lambda: len(receipts) > after + 20, 300)
        answers = publisher.flush(300)
        assert (answers.unknown, answers.refused) == (0, 0)
        assert publisher.statistics()["head"] == "w"
        assert {receipt.wait(300).answer for receipt in receipts} == {"accepted"}
        assert connection.status()["counters"].get("heads_left", 0) == 0
