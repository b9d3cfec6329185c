"""A standby keeps what it has been promised to have, and is a head once a mediator says so."""

from __future__ import annotations

import errno
import os

import pytest

from plimsoll.core.head.durability.commit import recovered_log
from plimsoll.core.head.standby.log_follower import StaleStandbyError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def promote(pair, term=2):
    pair.control(pair.follower, msg.Promote(term))


def test_a_promoted_standby_has_the_log_of_the_head_byte_for_byte(pair):
    pair.log(20)
    pair.exchange()
    promote(pair)
    assert pair.follower.done()
    found = pair.copy.recover()
    assert (found.is_whole, found.torn_bytes, pair.copy.position) == (True, 0, pair.store.position)
    recovered = recovered_log(pair.copy, found, is_synced=True, is_replica=True)
    assert recovered.is_whole
    assert [each.epoch for each in recovered.state.epochs] == [100]


def test_it_gives_the_old_head_no_word_any_more(pair):
    pair.exchange()
    place = pair.log()
    pair.to_follower()  # it has arrived, and is not stored yet
    promote(pair)
    pair.exchange(5.0)
    assert not pair.feed.is_safe(place)
    assert not pair.feed.is_safe(pair.feed.end)
    assert pair.feed.is_silent


def test_the_next_standby_follows_the_promoted_one(pair):
    pair.log(3)
    pair.exchange()
    promote(pair)
    pair.lead(2, 200, pair.copy)
    pair.follow(901)
    pair.log(3)
    pair.exchange()
    assert (pair.follower.term, pair.follower.epoch, pair.follower.sync) == (2, 200, 1)
    assert pair.copy.recover().state.position == 6


def test_one_that_is_not_in_sync_is_not_promoted(pair):
    promote(pair)
    assert not pair.follower.done()
    pair.exchange()
    promote(pair, term=1)
    assert not pair.follower.done(), "a term is given out once"
    pair.follower.receive_control("x", wire.control_frame(msg.Promote(2)), pair.now)
    assert not pair.follower.done(), "no mediator said so"


def test_what_was_promised_is_not_given_up_for_a_head_of_the_same_term(pair):
    pair.log(3)
    pair.exchange()
    pair.lead(1, 101)  # the head has started again, without a term of its own and without its log
    with pytest.raises(StaleStandbyError, match="begins another log"):
        pair.exchange(15.0)
    assert pair.copy.files.names() != []


def test_it_follows_a_head_of_a_later_term(pair):
    pair.log(3)
    pair.exchange()
    pair.lead(2, 101)
    pair.exchange(15.0)
    assert (pair.follower.term, pair.follower.sync, pair.follower.place) == (2, 1, pair.feed.end)


def test_parts_that_do_not_fit_are_an_error(pair):
    pair.exchange()
    pair.feed.say(pair.feed.standby, msg.LogPart(1, 99_999, b"x"))
    with pytest.raises(StaleStandbyError, match="bytes 99999 of segment 1"):
        pair.exchange()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
def test_one_whose_disk_refuses_ends_without_a_word_and_another_one_follows_once_there_is_room(pair, monkeypatch, code):
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    pair.exchange()
    monkeypatch.setattr(pair.copy.files, "write", refuse)
    place = pair.log()
    with pytest.raises(OSError, match=os.strerror(code)):
        pair.exchange()
    pair.follower.poll(pair.now)
    assert not pair.feed.is_safe(place), "nothing leaves the head that this standby may have to answer for"
    pair.control(pair.feed, msg.GoOnAlone(1, pair.feed.syncs))
    assert pair.feed.is_safe(place)
    pair.follow(901)
    pair.exchange()
    assert (pair.feed.in_sync, pair.copy.recover().state.position) == (901, pair.store.position)


def test_it_leaves_when_it_is_asked_to(pair):
    pair.follower.leave(1.0)
    assert (pair.follower.done(), pair.follower.promoted) == (True, 0)


def test_its_status_says_what_a_mediator_decides_by(pair):
    pair.exchange()
    pair.control(pair.follower, msg.StatusQuery(7))
    ((_, frame),) = pair.follower.control_to_send()
    decoded = wire.decode_frame(frame)
    assert isinstance(decoded, wire.Control)
    (reply,) = [msg.decode(msg.control, raw) for raw in decoded.records]
    assert isinstance(reply, msg.StatusReply)
    said = {name: reply.status[name] for name in ("role", "incarnation", "term", "sync", "promoted")}
    assert said == {"role": "standby", "incarnation": 900, "term": 1, "sync": 1, "promoted": 0}
