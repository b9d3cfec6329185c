"""Who may subscribe to which channels: what is refused and why, and that no other subscription gets their results."""

from __future__ import annotations

import pytest
from tests.core.edge.test_client_requests import start
from tests.core.fleet import Fleet, one_cluster, resume

from plimsoll.core.edge.channel_rights import channel_refusal
from plimsoll.core.permissions import NOT_PERMITTED, ClientPermissions
from plimsoll.core.predicates import parse
from plimsoll.core.protocol import messages as msg

FLOODS = ClientPermissions("ann", channels=("floods", "quakes"))
NONE = ClientPermissions("eve", channels=())


@pytest.mark.parametrize(
    ("grant", "text", "why"),
    [
        (ClientPermissions("bob"), "[channel,=,'fires']", ""),
        (FLOODS, "[channel,=,'floods'],[area,=,7]", ""),
        (FLOODS, "[channel,in,('floods','quakes')]", ""),
        (FLOODS, "[area,=,7]", ""),
        (FLOODS, "[channel,=,'fires']",
         "not permitted: ann may not subscribe to the channel fires; it may subscribe to floods, quakes"),
        (FLOODS, "[channel,in,('floods','fires')]",
         "not permitted: ann may not subscribe to the channel fires; it may subscribe to floods, quakes"),
        (FLOODS, "[channel,exists]",
         "not permitted: name each channel, as in [channel,=,'NAME']; ann may subscribe to floods, quakes"),
        (NONE, "[channel,prefix,'f']",
         "not permitted: name each channel, as in [channel,=,'NAME']; eve may subscribe to no channel"),
        (NONE, "[channel,!=,'floods']",
         "not permitted: name each channel, as in [channel,=,'NAME']; eve may subscribe to no channel"),
        (NONE, "[channel,=,1]",
         "not permitted: eve may not subscribe to the channel 1; it may subscribe to no channel"),
    ],
)  # fmt: skip
def test_a_refusal_says_who_what_and_what_to_do(grant: ClientPermissions, text: str, why: str):
    assert channel_refusal(grant, parse(text)) == why


def granted(grant: ClientPermissions) -> Fleet:
    fleet = one_cluster()
    fleet.edge("e1").grant_of = lambda peer: grant
    return fleet


def test_no_subscription_gets_results_that_its_identity_may_not_have():
    """A hostile identity leaves the channel out, asks for what results have, and comes back with a token."""
    fleet = granted(NONE)
    hostile = (resume(1, "s", "[area,=,7]"), resume(2, "t", "[n,>,0]"), resume(3, "u", "[channel,exists]"))
    client, publisher = start(fleet, *hostile)
    assert [refused.id for refused in client.of("e1", msg.SubRefused)] == [1]
    publisher.publish(1, area=7)
    publisher.publish(1, area=7, channel="fires")
    publisher.publish(1, area=7)
    fleet.run(0.3)
    assert client.numbers("e1", 1) == client.numbers("e1", 2) == [1, 3]
    assert client.numbers("e1", 3) == []
    client.tell("e1", resume(4, "s", "[area,=,7]", n=2, token=("h", fleet.head().epoch, 0)))
    fleet.run(0.5)
    assert client.numbers("e1", 4) == [1, 3], "what is replayed from the log is judged as well"


def test_a_channel_that_is_granted_is_delivered_and_its_neighbour_is_not():
    fleet = granted(FLOODS)
    client, publisher = start(fleet, resume(1, "s", "[channel,=,'floods']"), resume(2, "t", "[n,>,0]"))
    publisher.publish(1, channel="floods")
    publisher.publish(1, channel="fires")
    fleet.run(0.3)
    assert client.numbers("e1", 1) == [1]
    assert client.numbers("e1", 2) == []


def test_a_grant_that_becomes_smaller_ends_the_place_and_closes_other_subscriptions():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", "[channel,=,'fires']"), resume(2, "t", "[n,>,0]"))
    edge = fleet.edge("e1")
    edge.grant_of = lambda peer: FLOODS
    edge.regrant(fleet.now)
    fleet.run(0.2)
    (shut,) = client.of("e1", msg.AttachmentClosed)
    assert (shut.attachment, shut.code) == (1, NOT_PERMITTED)
    assert "may not subscribe to the channel fires" in shut.text
    publisher.publish(1, channel="fires")
    publisher.publish(1)
    fleet.run(0.3)
    assert client.numbers("e1", 2) == [2]
    edge.grant_of = lambda peer: ClientPermissions("ann")
    edge.regrant(fleet.now)
    publisher.publish(1, channel="fires")
    fleet.run(0.3)
    assert client.numbers("e1", 2) == [2, 3], "and one that grows opens them again"


def test_a_place_that_ends_leaves_nothing_behind():
    fleet = granted(NONE)
    client, _ = start(fleet, resume(1, "s", "[n,>,0]"))
    table = fleet.edge("e1").subscription_table
    assert len(table.closed.numbers) == 1
    client.tell("e1", msg.Detach([1], True))
    fleet.run(0.5)
    assert table.closed.numbers == set()
