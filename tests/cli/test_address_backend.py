"""What can be seen of a fleet by an address alone: the head that answers, or that none does."""

from __future__ import annotations

import socket

import pytest

from plimsoll.cli import address_backend
from plimsoll.cli.address_backend import AddressBackend
from plimsoll.cli.contexts.context_file import StoredContext
from plimsoll.cli.contexts.fleet_choice import AddressChoice
from plimsoll.cli.exit_codes import BAD_INPUT, CommandError


def backend(address: str = "tcp://127.0.0.1:1") -> AddressBackend:
    return AddressBackend(AddressChoice("prod", StoredContext(addresses=(address,), plain=True)))


def test_a_head_that_does_not_answer_is_not_ready(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(address_backend, "ANSWER_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        [item] = backend(f"tcp://127.0.0.1:{silent.getsockname()[1]}").objects("BrokerCluster")
    condition = item["status"]["conditions"][0]
    assert (item["metadata"]["name"], condition["status"], condition["reason"]) == ("prod", "False", "NoAnswer")


@pytest.mark.parametrize(
    "ask",
    [
        lambda place: place.objects("EdgeBroker"),
        lambda place: place.watch(),
        lambda place: place.watch_object("BrokerCluster", "east"),
        lambda place: place.events(),
        lambda place: place.log_lines("east-head", None, None, follow=False),
        lambda place: place.not_running_reason(),
        lambda place: place.create_session("one", {}),
        lambda place: place.stop_session("one"),
        lambda place: place.approve_session("one", ""),
        lambda place: place.set_cordoned("edge-0", cordoned=True),
        lambda place: place.apply([]),
        lambda place: place.delete("EdgeBroker", "edge-0"),
    ],
)
def test_what_an_address_does_not_lead_to_is_refused(ask):
    with pytest.raises(CommandError, match="context prod is an address, which does not show or change") as caught:
        ask(backend())
    assert caught.value.code == BAD_INPUT
