"""One broker that cannot be dialled keeps no other waiting, and is said once."""

from __future__ import annotations

import logging

import pytest

from plimsoll.core.config import PeerBroker
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.operator.mediator.broker_poller import BrokerPoller
from plimsoll.operator.security.keys import make_key_pair


def test_a_broker_with_an_invalid_key_keeps_no_other_from_being_dialled(caplog: pytest.LogCaptureFixture):
    poller = BrokerPoller(lambda message: None, lambda reply: None, lambda: None)
    own = make_key_pair()
    odd, good = (
        PeerBroker(name=name, control="tcp://127.0.0.1:1", public_key=key)
        for name, key in (("a", "no key"), ("b", make_key_pair().public))
    )
    poller.open("mediator", MediatorKeyPair(own.public, own.secret), 1)
    try:
        with caplog.at_level(logging.ERROR):
            for _ in range(3):
                poller.update_peers({"a": (odd, "head"), "b": (good, "edge")}, {})
        assert poller._control is not None
        assert poller._control.dialled == {"b"}
        assert len(caplog.records) == 1
    finally:
        poller.close()
