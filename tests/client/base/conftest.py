"""A connection to nowhere: what is decided without a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plimsoll.client import Connection

NOWHERE = "tcp://127.0.0.1:1"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Connection(NOWHERE, security="plain") as made:
        yield made
        made.close(timeout=0.0)
