"""The sockets of a broker, and the context of its peers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq
from tests.broker.network.lanes import KEPT, LIMITS

from plimsoll.broker.network.sockets import BrokerSockets


@pytest.fixture
def sockets() -> Iterator[BrokerSockets]:
    made = BrokerSockets(LIMITS)
    yield made
    made.close()


@pytest.fixture
def context() -> Iterator[zmq.Context]:
    made: zmq.Context = zmq.Context()
    yield made
    made.destroy(0)
    KEPT.clear()
