"""What an API server refuses, and one that does not answer: an error says what was asked, and why it failed."""

from __future__ import annotations

import socket

import pytest
from tests.cli.api_server import say, served, there

from plimsoll.cli.exit_codes import FAILED, CommandError


def test_who_does_not_answer_is_said_to():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CommandError, match="the API server does not answer") as told:
        there(port).objects("EdgeBroker")
    assert told.value.code == FAILED


def test_undefined_kinds_are_no_missing_object():
    with (
        served(lambda handler: say(handler, 404, {"message": "could not find the requested resource"})) as port,
        pytest.raises(CommandError, match="cannot list EdgeBroker in namespace ns: could not find"),
    ):
        there(port).objects("EdgeBroker")
