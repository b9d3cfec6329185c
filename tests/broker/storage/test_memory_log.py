"""The log of a head that keeps it in memory for its standby: found again by the process that has followed."""

from __future__ import annotations

import itertools

import pytest

from plimsoll.broker.storage.log_disk import LogDiskError, RoundOutput
from plimsoll.broker.storage.memory_log import MemoryLog
from plimsoll.core.config import BrokerConfig, LinkSecurity
from plimsoll.core.head.machine import Head

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:0", control="tcp://127.0.0.1:0",
    security=LinkSecurity(plain=True),
)  # fmt: skip
WORD = RoundOutput([], [], [("peer", b"accepted")])


def begun(log: MemoryLog, epoch: int, *, is_replica: bool = False) -> Head:
    head = Head(CONFIG, epoch, itertools.count(1).__next__, log.recover(is_replica=is_replica))
    log.attach(head, 0.0)
    return head


def test_a_round_is_written_and_says_its_word_at_once():
    log = MemoryLog("h", 1 << 20)
    head = begun(log, 1)
    head.distributor.log_uncertainty("")
    log.end_round(WORD, 0.0)
    assert (log.released(), log.released(), log.flush()) == ([WORD], [], [])
    assert (log.store.position, log.status()["log_segments"]) == (1, 1)


def test_what_was_followed_goes_on_in_the_next_epoch():
    log = MemoryLog("h", 1 << 20)
    head = begun(log, 1)
    head.distributor.log_uncertainty("")
    log.end_round(WORD, 0.0)
    copy = MemoryLog("h", 1 << 20)
    for name in log.store.files.names():
        copy.store.files.create(name, 0)
        copy.store.files.write(name, 0, log.store.files.read(name, 0, 1 << 20))
    successor = begun(copy, 2, is_replica=True)
    assert (successor.log.last, successor.info.memory) == (1, 1), "it has forgotten nothing"


def test_what_is_no_log_is_an_error():
    log = MemoryLog("h", 1 << 20)
    log.store.files.create("rubbish.log", 0)
    with pytest.raises(LogDiskError, match="cannot be read"):
        log.recover(is_replica=True)


def test_without_a_head_there_are_no_rounds():
    with pytest.raises(RuntimeError, match="no log attached"):
        MemoryLog("h", 1 << 20).end_round(WORD, 0.0)
