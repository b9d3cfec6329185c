"""The two libraries have the same names and the same parameters; with asyncio, what waits is awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll import client
from plimsoll.client import aio

TWINS = [
    (client.Connection, aio.AsyncConnection),
    (client.Publisher, aio.AsyncPublisher),
    (client.Subscriber, aio.AsyncSubscriber),
    (client.Receipt, aio.AsyncReceipt),
    (client.Group, aio.AsyncGroup),
    (client.GroupSubscriber, aio.AsyncGroupSubscriber),
]
PROTOCOLS = {"__iter__": "__aiter__", "__enter__": "__aenter__", "__exit__": "__aexit__"}
WAITS = {
    "close", "flush", "publish", "receive", "receive_many", "subscribe", "unsubscribe", "wait", "wait_acknowledged",
    "wait_member", "wait_open",
}  # fmt: skip


def names_of(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


@pytest.mark.parametrize(("threads", "tasks"), TWINS, ids=lambda kind: kind.__name__)
def test_twins_have_the_same_names(threads: type[Any], tasks: type[Any]) -> None:
    assert names_of(threads) == names_of(tasks)
    assert {PROTOCOLS[name] for name in PROTOCOLS if name in dir(threads)} == set(PROTOCOLS.values()) & set(dir(tasks))


@pytest.mark.parametrize(("threads", "tasks"), TWINS, ids=lambda kind: kind.__name__)
def test_twins_have_the_same_parameters(threads: type[Any], tasks: type[Any]) -> None:
    assert parameters(threads) == parameters(tasks)
    for name in names_of(threads):
        if inspect.isfunction(getattr(threads, name)):
            assert parameters(getattr(threads, name)) == parameters(getattr(tasks, name)), name


@pytest.mark.parametrize(("threads", "tasks"), TWINS, ids=lambda kind: kind.__name__)
def test_what_waits_blocks_or_is_awaited(threads: type[Any], tasks: type[Any]) -> None:
    for name in names_of(threads) & WAITS:
        assert not inspect.iscoroutinefunction(getattr(threads, name)), name
        assert inspect.iscoroutinefunction(getattr(tasks, name)), name
    assert set().union(*(names_of(kind) for kind, _ in TWINS)) >= WAITS
