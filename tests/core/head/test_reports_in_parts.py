"""An edge reports a large cover on a new link while publications flow: nothing comes early, twice, or not at all."""

import pytest
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume

from plimsoll.core.head import cover_turns

TEXTS = [f"[a,=,{i}],[b,>,{i}]" for i in range(400)]


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round takes one part of a report."""
    monkeypatch.setattr(cover_turns, "HALF_ROUND_UNITS", 200)


def served() -> tuple[Fleet, Client, Publishing]:
    fleet = one_cluster(edges=2)
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s", *TEXTS, "[n,>,0]"))
    client.tell("e2", resume(2, "other", "[n,>,0]"))
    publisher = Publishing(client, "h")
    fleet.run(2.0)
    publisher.publish(3)
    fleet.run(0.5)
    assert client.numbers("e1", 1) == [1, 2, 3]
    return fleet, client, publisher


def reopen(fleet: Fleet) -> None:
    edge = fleet.edge("e1")
    edge.handshakes.reopen(edge.head, "a test")


def sizes_of_report(fleet: Fleet) -> list[int]:
    """How much of a cover that is being reported is there; empty when none is."""
    head = fleet.head()
    return [head.routes.size(key) for key in head.outboxes.joining]


def test_publications_during_a_report_arrive_once_and_in_order():
    fleet, client, publisher = served()
    reopen(fleet)
    seen: list[int] = []
    while not seen or sizes_of_report(fleet):
        fleet.round()
        fleet.now += 0.001
        if sizes := sizes_of_report(fleet):
            seen.append(sizes[0])
            publisher.publish(1)
    assert len(set(seen)) > 5, "several rounds have seen a part of the cover"
    client.tell("e1", resume(3, "s", *TEXTS, "[n,>,0]", n=2, token=("h", fleet.head().epoch, 3)))
    fleet.run(1.0)
    publisher.publish(2)
    fleet.run(1.0)
    published = list(range(1, 3 + len(seen) + 2 + 1))
    assert client.numbers("e1", 3) == published[3:]
    assert client.gaps("e1", 3) == []
    assert client.numbers("e2", 2) == published


def test_an_edge_is_offered_nothing_before_its_welcome():
    fleet, _, publisher = served()
    reopen(fleet)
    while not sizes_of_report(fleet):
        fleet.round()
        fleet.now += 0.001
    while sizes_of_report(fleet) and sizes_of_report(fleet)[0] < 300:
        fleet.round()
    publisher.publish(1, a=5, b=6)
    fleet.round()
    fleet.round()
    head = fleet.head()
    (joining,) = head.outboxes.joining
    assert joining in head.routes.match({"a": 5, "b": 6}), "what it has reported so far needs this publication"
    assert head.outboxes.by_key[joining].offered == 0


def test_a_link_that_ends_within_its_report_leaves_nothing():
    fleet, client, publisher = served()
    head = fleet.head()
    reopen(fleet)
    while not any(sizes_of_report(fleet)):
        fleet.round()
        fleet.now += 0.001
    (first,) = head.outboxes.joining
    reopen(fleet)
    fleet.run(2.0)
    assert head.outboxes.joining == set()
    assert first not in head.routes
    client.tell("e1", resume(3, "s", *TEXTS, "[n,>,0]", n=2, token=("h", head.epoch, 3)))
    publisher.publish(4)
    fleet.run(1.0)
    assert client.numbers("e1", 3) == [4, 5, 6, 7]
