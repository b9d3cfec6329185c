"""The end of a run: a settled fleet has no state left over, and each kind of leftover is reported."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.core import client
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.quiescence import is_busy, leftovers, serving_edges
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

AT = 99.0
NOTHING: Any = None


@pytest.fixture
def over() -> SimulationRun:
    """A run that has ended: three clusters, with every subscriber served."""
    one = SimulationRun(SCENARIOS["sessions-across"], 3)
    outcome = one.go()
    assert outcome.ok, outcome.verdict
    return one


def head(one: SimulationRun) -> Head:
    node = one.fleet.heads()[0].host.node
    assert isinstance(node, Head)
    return node


def edges(one: SimulationRun) -> list[Edge]:
    return [node for broker in one.fleet.edges() if isinstance(node := broker.host.node, Edge)]


def attachment(one: SimulationRun) -> EdgeAttachment:
    return next(a for edge in edges(one) for a in edge.attachments.by_subscriber.values())


def left(one: SimulationRun) -> list[str]:
    found = list(leftovers(one.fleet, one.apps, AT))
    assert {residue.at for residue in found} <= {AT}
    return [residue.what for residue in found]


def test_a_settled_fleet_has_nothing_left_over(over: SimulationRun):
    assert left(over) == []
    assert not is_busy(over.fleet, over.apps)


def subscriber(one: SimulationRun) -> Any:
    return next(s for p in one.apps.processes.values() if p.client for s in p.client.subscribers.values())


# ---------------------------------------------------------------- each leaves one kind of state over


def lose_an_owner_entry(one: SimulationRun) -> None:
    heads = (broker.host.node for broker in one.fleet.heads())
    owners = next(node.owners.entries for node in heads if isinstance(node, Head) and node.owners.entries)
    del owners[next(iter(owners))]


def keep_an_open_session(one: SimulationRun) -> None:
    head(one).coordinator.sessions["1.9"] = NOTHING


def keep_a_remote_member(one: SimulationRun) -> None:
    assert head(one).remote_members.reserve(msg.Prepare("1.9", ["x"], 5.0, False), "h0e0", "h1")


def keep_a_slot(one: SimulationRun) -> None:
    edges(one)[0].handover_target.slots["x"] = SimpleNamespace(session="1.9")  # type: ignore[assignment]  # a stand-in


def keep_a_closed_attachment(one: SimulationRun) -> None:
    attachment(one).state = AttachmentState.CLOSED


def keep_the_cover_of_a_dead_edge(one: SimulationRun) -> None:
    head(one).membership.ghosts["e#1"] = 1.0


def miss_a_report(one: SimulationRun) -> None:
    head(one).startup.missing.add("h9")


def keep_a_hand_over(one: SimulationRun) -> None:
    subscriber(one).handover = SimpleNamespace(next=None)


def keep_a_subscriber_resuming(one: SimulationRun) -> None:
    subscriber(one).current.state = client.attachment.ClientAttachmentState.RESUMING


def miss_an_acknowledgement(one: SimulationRun) -> None:
    subscriber(one).subscription_list.unreached = {1: 1}


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (lose_an_owner_entry, {"owner entries that do not match the serving edges"}),
        (keep_an_open_session, {"open hand-overs: ['1.9']"}),
        (keep_a_remote_member, {"remote members of other heads' hand-overs"}),
        (keep_a_slot, {"slots: ['x of 1.9']"}),
        (keep_a_closed_attachment, {"attachments that are not live"}),
        (keep_the_cover_of_a_dead_edge, {"covers of edges that are gone: ['e#1']"}),
        (miss_a_report, {"edges or neighbours that have not reported"}),
        (keep_a_hand_over, {"a hand-over that neither ended nor was undone"}),
        (keep_a_subscriber_resuming, {"subscriber not served", "owner entries that do not match the serving edges"}),
        (miss_an_acknowledgement, {"subscriptions that were never acknowledged"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_each_leftover_is_reported(over: SimulationRun, leave: Callable[[SimulationRun], None], words: set[str]):
    leave(over)
    reported = left(over)
    assert reported
    for word in words:
        assert any(word in one for one in reported), (word, reported)
    assert all(any(word in one for word in words) for one in reported), reported


# ---------------------------------------------------------------- each keeps the fleet busy


def be_down(one: SimulationRun) -> None:
    one.fleet.heads()[0].host.node = None


def wait_for_an_acknowledgement(one: SimulationRun) -> None:
    next(iter(head(one).handshakes.accepted_links())).unacked.append(NOTHING)


def have_a_full_buffer(one: SimulationRun) -> None:
    next(iter(edges(one)[0].dialled.values())).buffer.append(b"")


def have_a_queue(one: SimulationRun) -> None:
    attachment(one).queue.append(b"")


def catch_up(one: SimulationRun) -> None:
    edges(one)[0].cursor.members[attachment(one)] = None


@pytest.mark.parametrize(
    "do", [be_down, wait_for_an_acknowledgement, have_a_full_buffer, have_a_queue, catch_up],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
def test_a_fleet_with_work_under_way_is_busy(over: SimulationRun, do: Callable[[SimulationRun], None]):
    do(over)
    assert is_busy(over.fleet, over.apps)


def test_an_edge_serves_its_live_attachments(over: SimulationRun):
    before = list(serving_edges(over.fleet, AT))
    names = sorted(one.subscriber for one in before)
    assert names == sorted({name for process in over.apps.processes.values() for name in process.subscribers})
    one = attachment(over)
    edge = next(edge for edge in edges(over) if one.subscriber in edge.attachments.by_subscriber)
    assert seen.ServingEdgeObserved(edge.config.name, one.subscriber, one.epoch, AT) in before
    one.state = AttachmentState.CLOSED
    assert len(list(serving_edges(over.fleet, AT))) == len(before) - 1
