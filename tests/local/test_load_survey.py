"""The survey of a local fleet: whom it asks, with whose name, and what it says when a broker keeps silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.local import keys, load_survey
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.mediator.control_plane import ListingReceived
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
        assert seconds == load_survey.POLL_SECONDS
        yield from [self.waiting.pop(0)] if self.waiting else []

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def folder(tmp_path, monkeypatch) -> FleetFolder:
    monkeypatch.setattr(load_survey, "ControlPlane", FakeControlPlane)
    monkeypatch.setattr(FakeControlPlane, "made", [])
    monkeypatch.setattr(FakeControlPlane, "silent", set())
    found = FleetFolder(tmp_path / "fleet")
    found.make()
    return found


def test_all_heads_and_the_edges_of_the_cluster_are_asked(folder):
    found = load_survey.survey_load(folder, FLEET, "east", 30.0, plain=False)
    assert [(each.name, each.per_second) for each in found.heads["west-head"].publishers] == [("p", 1.0)]
    assert found.subscribers == {"e": {"s of e": ("[n,>,0]",)}}
    [control] = FakeControlPlane.made
    assert {name: role for name, (_, role) in control.dialled.items()} == {
        "east-head": "head", "west-head": "head", "e": "edge",
    }  # fmt: skip
    assert control.dialled["e"][0] == PeerBroker(name="e", data="tcp://e:1", control="tcp://e:2", public_key="key of e")
    assert (control.name, control.epoch, control.is_closed) == (keys.SUPERVISOR, 0, True)
    assert control.curve is not None


def test_without_keys_and_of_all_clusters(folder):
    found = load_survey.survey_load(folder, FLEET, "", 30.0, plain=True)
    assert sorted(found.subscribers) == ["e", "w"]
    assert FakeControlPlane.made[0].curve is None


def test_a_broker_that_keeps_silent_is_named(folder, monkeypatch):
    monkeypatch.setattr(load_survey, "SURVEY_SECONDS", -1.0)
    FakeControlPlane.silent.add("e")
    with pytest.raises(SurveyError, match="e does not answer: `plimsoll logs e` may say why"):
        load_survey.survey_load(folder, FLEET[2:3], "", 30.0, plain=True)
    assert FakeControlPlane.made[0].is_closed
