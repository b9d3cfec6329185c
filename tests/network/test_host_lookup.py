"""Lookups of hosts: beside the caller, one for each host, bounded in all, and none outlives what it was for."""

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from plimsoll.network.host_lookup import LOOKUPS_AT_ONCE, HostAnswer, HostLookup

Found = list[tuple[socket.AddressFamily, int, int, str, tuple[str, int]]]


class NameServer:
    """Stands in for the system's lookup: answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.began = threading.Semaphore(0)
        self.answer: dict[str, Callable[[], Found]] = {}
        self.go_on: dict[str, threading.Event] = {}

    def look_up(self, host: str, *_: object, **__: object) -> Found:
        self.asked.append(host)
        self.began.release()
        if host in self.go_on:
            assert self.go_on[host].wait(300)
        return self.answer[host]() if host in self.answer else found("10.0.0.1")


def found(*addresses: str) -> Found:
    return [
        (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.look_up)
    return server


@pytest.fixture
def lookup() -> Iterator[HostLookup]:
    lookup = HostLookup()
    yield lookup
    lookup.close()


def wait_for(lookup: HostLookup, number: int) -> list[HostAnswer]:
    answers: list[HostAnswer] = []
    while len(answers) < number:
        assert select.select([lookup.fd], [], [], 30)[0], "no signal"
        answers += lookup.answers()
    return answers


def test_addresses_come_ipv4_first_and_once(server: NameServer, lookup: HostLookup):
    server.answer["edge-0"] = lambda: found("fd00::1", "10.0.0.7", "10.0.0.7", "10.0.0.6")
    lookup.ask("edge-0")
    assert wait_for(lookup, 1) == [HostAnswer("edge-0", ("10.0.0.7", "10.0.0.6", "fd00::1"))]


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_a_host_without_addresses_says_why(server: NameServer, lookup: HostLookup, error: Exception):
    def fail() -> Found:
        raise error

    server.answer["edge-9"] = fail
    lookup.ask("edge-9")
    assert wait_for(lookup, 1) == [HostAnswer("edge-9", (), str(error))]


def test_a_host_that_does_not_answer_holds_up_no_other_and_is_asked_for_once(server: NameServer, lookup: HostLookup):
    server.go_on["slow"] = threading.Event()
    for _ in range(3):
        lookup.ask("slow")
    lookup.ask("quick")
    assert [answer.host for answer in wait_for(lookup, 1)] == ["quick"]
    server.go_on["slow"].set()
    assert [answer.host for answer in wait_for(lookup, 1)] == ["slow"]
    assert sorted(server.asked) == ["quick", "slow"]
    lookup.ask("slow")  # what has been answered may be asked again
    wait_for(lookup, 1)
    assert server.asked.count("slow") == 2


def test_lookups_at_once_are_bounded_and_the_rest_follow(server: NameServer, lookup: HostLookup):
    hosts = [f"host-{number}" for number in range(LOOKUPS_AT_ONCE + 3)]
    server.go_on = {host: threading.Event() for host in hosts}
    for host in hosts:
        lookup.ask(host)
    for _ in range(LOOKUPS_AT_ONCE):
        assert server.began.acquire(timeout=300)
    assert sorted(server.asked) == sorted(hosts[:LOOKUPS_AT_ONCE])
    for event in server.go_on.values():
        event.set()
    assert sorted(answer.host for answer in wait_for(lookup, len(hosts))) == sorted(hosts)


def test_an_answer_that_comes_after_the_close_goes_nowhere(server: NameServer, monkeypatch: pytest.MonkeyPatch):
    server.go_on["slow"] = threading.Event()
    written: list[int] = []
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(fd))
    lookup = HostLookup()
    lookup.ask("slow")
    assert server.began.acquire(timeout=300)
    [thread] = [each for each in threading.enumerate() if each.name == "lookup of slow"]
    assert thread.daemon
    lookup.close()
    lookup.close()
    server.go_on["slow"].set()
    thread.join(300)
    assert written == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lookup.fd)
