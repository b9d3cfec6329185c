"""What leaves a head waits for its standby: from when it is in sync, until a mediator has given it up."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.log_feed import ReplacedHeadError
from plimsoll.core.head.standby.log_follower import StaleStandbyError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info


def test_a_head_alone_waits_for_no_standby(pair):
    assert pair.feed.is_safe(pair.log())
    assert (pair.feed.in_sync, pair.feed.status()["standby_linked"]) == (0, 0)


def test_a_standby_gets_all_of_the_log_and_is_in_sync_behind_it(pair):
    pair.log(50)
    pair.exchange()
    assert (pair.feed.in_sync, pair.follower.sync, pair.follower.place) == (900, 1, pair.feed.end)
    assert pair.follower.status()["term"] == 1


def test_what_is_logged_is_held_until_the_standby_has_it(pair):
    pair.exchange()
    place = pair.log()
    assert not pair.feed.is_safe(place)
    pair.to_follower()
    assert not pair.feed.is_safe(place), "sent is not stored"
    pair.to_feed()
    pair.to_feed()
    assert pair.feed.is_safe(place)


def test_nothing_leaves_while_a_standby_in_sync_is_silent(pair):
    pair.exchange()
    place = pair.feed.end
    assert pair.feed.is_safe(place)
    pair.is_linked = False
    pair.exchange(4.0)
    assert pair.feed.is_silent
    assert not pair.feed.is_safe(place), "it may have been promoted"
    pair.is_linked = True
    pair.exchange(2.0)
    assert pair.feed.is_safe(place)


def test_only_a_mediator_has_the_head_go_on_alone(pair):
    pair.exchange()
    pair.is_linked = False
    place = pair.log()
    pair.exchange(30.0)
    assert not pair.feed.is_safe(place), "no time is long enough"
    pair.feed.receive_control("x", wire.control_frame(msg.GoOnAlone(1, 1)), pair.now)
    assert pair.feed.in_sync, "it is no mediator"
    pair.control(pair.feed, msg.GoOnAlone(2, 1))
    assert pair.feed.in_sync, "of another term"
    pair.control(pair.feed, msg.GoOnAlone(1, 1))
    assert pair.feed.is_safe(place)


def test_one_that_was_given_up_comes_in_sync_again_and_an_old_command_does_not_end_that(pair):
    pair.exchange()
    pair.control(pair.feed, msg.GoOnAlone(1, 1))
    pair.log(3)
    pair.exchange(3.0)
    assert (pair.feed.syncs, pair.follower.sync, pair.follower.place) == (2, 2, pair.feed.end)
    pair.control(pair.feed, msg.GoOnAlone(1, 1))
    assert pair.feed.in_sync == 900


def test_another_standby_is_not_waited_for_in_place_of_the_one_in_sync(pair):
    pair.exchange()
    place = pair.log()
    pair.follow(901)
    pair.exchange()
    assert pair.feed.in_sync == 900
    assert not pair.feed.is_safe(place), "901 has it, and 900 is what the store counts on"
    pair.control(pair.feed, msg.GoOnAlone(1, 1))
    pair.exchange()
    assert (pair.feed.in_sync, pair.follower.sync) == (901, 2)


def test_a_link_that_breaks_goes_on_where_it_was(pair):
    pair.log(5)
    pair.exchange()
    before = pair.feed.counters["said_LogPart"]
    pair.follower.handshakes.reopen(pair.follower.head, "the connection has broken")
    place = pair.log()
    pair.exchange(2.0)
    assert pair.feed.is_safe(place)
    assert (pair.feed.counters["said_LogBegins"], pair.feed.counters["said_LogPart"]) == (1, before + 1)


def test_segments_that_go_at_the_head_go_at_the_standby(pair):
    pair.exchange()
    for _ in range(60):
        pair.log(40)
        pair.exchange(0.1)
    names = [segment.name for segment in pair.store.segments]
    assert pair.store.first > 1
    assert set(pair.copy.files.names()) >= set(names)
    assert len(pair.copy.files.names()) <= len(names) + 1
    assert pair.follower.place == pair.feed.end


def test_a_standby_that_lags_behind_what_is_kept_begins_again(pair):
    pair.exchange()
    pair.control(pair.feed, msg.GoOnAlone(1, 1))
    pair.follow(901)
    pair.is_linked = False
    pair.log(3000)
    pair.is_linked = True
    pair.exchange(3.0)
    assert pair.store.first > 1
    assert (pair.follower.place, pair.feed.in_sync) == (pair.feed.end, 901)
    assert pair.copy.recover().is_whole


def test_only_a_standby_of_this_head_is_admitted(pair):
    assert pair.feed.admits(Info("h", "head", 5)) == ""
    assert "no standby of h" in pair.feed.admits(Info("n", "head", 5))
    hello = wire.hello_frame(1, 0, False, Info("n", "head", 5))
    assert not pair.feed.claims(b"x", [hello])
    assert not pair.feed.claims(b"x", [wire.who_frame()])
    assert not pair.feed.claims(b"x", [b"\x96\x01\x02rubbish"])


def test_what_is_no_message_of_a_standby_is_counted(pair):
    pair.exchange()
    pair.follower.put(pair.follower.head, wire.encode(msg.Leaving()))
    pair.exchange()
    assert pair.feed.counters["records_refused_malformed"] == 1


def test_a_word_about_what_was_not_sent_counts_for_nothing(pair):
    pair.exchange()
    pair.is_linked = False
    place = pair.log()
    pair.is_linked = True
    pair.follower.say(pair.follower.head, msg.LogStored(*place))
    pair.to_feed()
    assert not pair.feed.is_safe(place)


def control(pair, node, record, *, known=True):
    """What a node answers a mediator on its control socket."""
    if known:
        node.receive_control("m", wire.control_frame(msg.Identify("m", "mediator", 0)), pair.now)
    node.receive_control("m", wire.control_frame(record), pair.now)
    frames = [wire.decode_frame(data) for _, data in node.control_to_send()]
    assert all(isinstance(frame, wire.Control) for frame in frames)
    return [msg.decode(msg.control, raw) for frame in frames for raw in getattr(frame, "records", ())]


def test_a_mediator_is_told_who_waits_for_whom_while_nothing_else_leaves(pair):
    pair.exchange()
    pair.is_linked = False
    pair.exchange(4.0)
    (answer,) = control(pair, pair.feed, msg.LeadershipQuery(3))
    said = {"role": "head", "term": 1, "standby_in_sync": 900, "standby_silent": True}
    assert answer.id == 3
    assert said.items() <= answer.status.items()
    (standby,) = control(pair, pair.follower, msg.LeadershipQuery(5))
    said = {"role": "standby", "incarnation": 900, "term": 1, "sync": 1, "head_silent": True}
    assert said.items() <= standby.status.items()


def test_a_head_that_was_replaced_ends_at_once(pair):
    control(pair, pair.feed, msg.Replaced(1))
    with pytest.raises(ReplacedHeadError, match="another process leads in term 2; this one led in term 1"):
        control(pair, pair.feed, msg.Replaced(2))


def test_a_standby_of_a_head_that_was_replaced_starts_over(pair):
    pair.exchange()
    with pytest.raises(StaleStandbyError, match="term 2"):
        control(pair, pair.follower, msg.Replaced(2))


def test_a_head_that_leaves_says_so_to_its_standby_last(pair):
    pair.exchange()
    pair.feed.leave()
    pair.exchange()
    assert pair.follower.leadership()["linked"] is False
    assert pair.follower.sync == 1, "it may be promoted"


def test_a_head_that_has_no_term_yet_admits_no_standby_and_takes_the_first_that_it_is_given(pair):
    pair.feed.term, pair.feed.incarnation = 0, 100
    pair.exchange()
    assert (pair.feed.standby, pair.feed.leadership()["term"]) == (None, 0)
    pair.control(pair.feed, msg.Lead(4, 99))
    assert pair.feed.term == 0, "it was given to another process"
    pair.control(pair.feed, msg.Lead(4, 100))
    pair.control(pair.feed, msg.Lead(5, 100))
    assert pair.feed.term == 4, "it leads in one term"
    pair.exchange(3.0)
    assert (pair.follower.sync, pair.follower.term) == (1, 4)


def test_a_standby_is_admitted_only_while_the_heads_own_file_names_one(pair):
    """Else a process that starts in the place of the head would lead beside the standby: `standby_switch`."""
    named = False
    pair.feed.wants = lambda: named
    pair.exchange()
    assert pair.feed.standby is None, "no standby while the file names none"
    named = True
    pair.exchange(3.0)
    assert pair.follower.sync == 1
