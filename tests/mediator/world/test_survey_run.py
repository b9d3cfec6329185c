"""A survey over control sockets: whom it asks, with whose name, and what it says when a broker keeps silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.control_plane import ListingReceived, MediatorKeyPair
from plimsoll.mediator.world import survey_run
from plimsoll.mediator.world.traffic_survey import SurveyError


def status(name: str) -> dict[str, Any]:
    ends = {"data": f"tcp://{name}:1", "control": f"tcp://{name}:2", "publicKey": f"key of {name}"}
    return {"name": name, "endpoints": ends}


def cluster(name: str) -> dict[str, Any]:
    return {"kind": "BrokerCluster", "metadata": {"name": name}, "status": {"head": status(f"{name}-head")}}


def edge(name: str, of: str) -> dict[str, Any]:
    return {
        "kind": "EdgeBroker", "metadata": {"name": name}, "spec": {"clusterRef": {"name": of}}, "status": status(name),
    }  # fmt: skip


FLEET = [
    cluster("east"), cluster("west"), edge("e", "east"), edge("w", "west"), {"kind": "BrokerFleet"},
    {"kind": "BrokerCluster", "metadata": {"name": "new"}},
]  # fmt: skip


class FakeControlPlane:
    """Answers every query but those of `silent` brokers, one at each poll."""

    silent: ClassVar[set[str]] = set()
    made: ClassVar[list[FakeControlPlane]] = []

    def __init__(self, name: str, curve: object, epoch: int) -> None:
        self.name, self.curve, self.epoch = name, curve, epoch
        self.dialled: dict[str, tuple[PeerBroker, str]] = {}
        self.waiting: list[ListingReceived] = []
        self.is_closed = False
        self.made.append(self)

    def dial(self, peer: PeerBroker, role: str) -> None:
        self.dialled[peer.name] = peer, role

    def ask_for_page(self, broker: str, request: msg.ListPublications | msg.ListSubscriptions) -> None:
        if broker in self.silent:
            return
        page: msg.PublicationPage | msg.SubscriptionPage
        if isinstance(request, msg.ListPublications):
            items = [msg.PublicationItem("p", 1, n, n * 1_000_000, {"n": n}, 0) for n in (1, 2)]
            page = msg.PublicationPage(request.id, 7, 1, 2, 2, items)
        else:
            page = msg.SubscriptionPage(request.id, 7, [msg.SubscriptionListItem(f"s of {broker}", ["[n,>,0]"])])
        self.waiting.append(ListingReceived(broker, page))

    def poll(self, seconds: float) -> Iterator[ListingReceived]:
        assert seconds == survey_run.POLL_SECONDS
        yield from [self.waiting.pop(0)] if self.waiting else []

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _control(monkeypatch) -> None:
    monkeypatch.setattr(survey_run, "ControlPlane", FakeControlPlane)
    monkeypatch.setattr(FakeControlPlane, "made", [])
    monkeypatch.setattr(FakeControlPlane, "silent", set())


def test_all_heads_and_the_edges_of_the_cluster_are_asked():
    curve = MediatorKeyPair("public", "secret")
    found = survey_run.run_survey("m", curve, FLEET, "east", 30.0)
    assert [(each.name, each.per_second) for each in found.heads["west-head"].publishers] == [("p", 1.0)]
    assert found.subscribers == {"e": {"s of e": ("[n,>,0]",)}}
    [control] = FakeControlPlane.made
    assert {name: role for name, (_, role) in control.dialled.items()} == {
        "east-head": "head", "west-head": "head", "e": "edge",
    }  # fmt: skip
    assert control.dialled["e"][0] == PeerBroker(name="e", data="tcp://e:1", control="tcp://e:2", public_key="key of e")
    assert (control.name, control.curve, control.epoch, control.is_closed) == ("m", curve, 0, True)


def test_the_edges_of_all_clusters_are_asked():
    assert sorted(survey_run.run_survey("m", None, FLEET, "", 30.0).subscribers) == ["e", "w"]


def test_answers_are_timed(monkeypatch):
    ticks = iter(range(100_000))
    monkeypatch.setattr("plimsoll.mediator.world.survey_run.time.monotonic", lambda: next(ticks) / 1000)
    found = survey_run.run_survey("m", None, FLEET, "", 30.0)
    assert found.round_trip_seconds == pytest.approx(0.001)  # the clock is read when it is asked, and when it answers


def test_times_of_lost_answers_do_not_count(monkeypatch):
    monkeypatch.setattr(survey_run, "LOST_SECONDS", -1.0)
    assert survey_run.run_survey("m", None, FLEET, "", 30.0).round_trip_seconds is None


def test_a_broker_that_keeps_silent_is_named(monkeypatch):
    monkeypatch.setattr(survey_run, "SURVEY_SECONDS", -1.0)
    FakeControlPlane.silent.add("e")
    with pytest.raises(SurveyError, match="e does not answer: `plimsoll logs e` may say why"):
        survey_run.run_survey("m", None, FLEET[2:3], "", 30.0)
    assert FakeControlPlane.made[0].is_closed


def test_a_broker_without_an_address_is_named():
    lost = {**edge("e", "east"), "status": {}}
    with pytest.raises(SurveyError, match="e has no address in its status yet"):
        survey_run.run_survey("m", None, [lost], "", 30.0)
