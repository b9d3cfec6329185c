from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import zmq

from plimsoll.client.errors import ResourceLimitError
from plimsoll.client.system_limits import check_socket_room, make_context, raise_open_files


def test_the_limit_of_open_files_is_raised_to_the_hard_one():
    script = (
        "import resource; from plimsoll.client.system_limits import raise_open_files\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))\n"
        "assert raise_open_files() == hard == resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_a_full_table_of_files_is_named_before_the_system_refuses():
    script = (
        "import resource; from plimsoll.client.system_limits import check_socket_room, ResourceLimitError\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "files = [open('/dev/null') for _ in range(22)]\n"
        "try: check_socket_room(3, 1000)\n"
        "except ResourceLimitError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=300, capture_output=True, text=True)
    assert "the limit is 32 (hard limit 32); raise it with `ulimit -n`" in done.stdout


def test_a_connection_without_room_is_refused_with_the_limit():
    script = (
        "import resource; from plimsoll.client import Connection, errors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "files = [open('/dev/null') for _ in range(32)]\n"
        "try: Connection('tcp://127.0.0.1:1', security='plain')\n"
        "except errors.ResourceLimitError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=300, capture_output=True, text=True)
    assert "the limit is 40" in done.stdout


def test_a_full_context_is_named():
    with pytest.raises(ResourceLimitError, match="9 of at most 10 ZeroMQ sockets"):
        check_socket_room(9, 10)


def test_there_is_room_here():
    assert raise_open_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    check_socket_room(3, 1000)


def test_a_context_takes_as_many_sockets_as_libzmq_can():
    context = make_context()
    try:
        assert context.get(zmq.MAX_SOCKETS) == context.get(zmq.SOCKET_LIMIT)
    finally:
        context.term()
