"""The head of the target: which members are on the way here, the answers to their cuts, and when they are forgotten."""

from __future__ import annotations

import pytest
from tests.core.head.handover.hosts import B, C, FakeHost, items

from plimsoll.core.head.handover import remote_members as module
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.protocol import messages as msg

TOKEN = ("h", 5, 70)


def prepared(host: FakeHost, *members: str, session: str = "1.1", coordinator: str = "k") -> RemoteMembers:
    guests = RemoteMembers(host, host, host, 60.0)
    assert guests.reserve(msg.Prepare(session, list(members), 10.0, False), "b", coordinator)
    return guests


def request(*members: str, session: str = "1.1", epoch: tuple[int, int] = (1, 5)) -> msg.CutRequest:
    return msg.CutRequest(session, msg.Cover(1, [], []), items(*members, epoch=epoch))


def cut(host: FakeHost, *members: str) -> RemoteMembers:
    guests = prepared(host, *members)
    assert guests.on_cut_request(request(*members), B, TOKEN) == list(members)
    return guests


def test_the_cut_owns_its_guests_here_and_sends_the_marker_to_who_decides():
    host = FakeHost()
    guests = prepared(host, "x", "y")
    assert "x" in guests
    assert guests.on_cut_request(request("x", "stranger"), B, TOKEN) == ["x"]
    entry = host.owners.entries["x"]
    assert (entry.key, entry.epoch, entry.since) == (B, (1, 5), (5, 70))
    assert set(host.owners.entries) == {"x"}
    assert host.said == [("k", "", msg.Marker("1.1", ["x"], TOKEN))]


def test_guests_of_two_coordinators_are_told_apart():
    host = FakeHost()
    guests = prepared(host, "x")
    guests.reserve(msg.Prepare("1.1", ["y"], 10.0, False), "b", "m")
    assert sorted(guests.on_cut_request(request("y", "x"), B, TOKEN)) == ["x", "y"]
    assert [(to, record.members) for to, _, record in host.said] == [("k", ["x"]), ("m", ["y"])]


def test_a_guest_that_has_resumed_here_since_is_not_cut():
    host = FakeHost()
    guests = prepared(host, "x", "y")
    host.serve(C, "y", epoch=(1, 6))
    assert guests.on_cut_request(request("x", "y"), B, TOKEN) == ["x"]
    assert host.owners.entries["y"].key == C


def test_a_session_that_was_undone_behind_its_cut_does_not_bar_the_next_one():
    """The owner epoch at the source is as it was, so the next cut comes with the epoch of the one that was undone."""
    host = FakeHost()
    guests = cut(host, "x")
    guests.on_abort(msg.Abort("1.1", items("x")))
    assert host.owners.entries == {}
    assert host.owners.newest("x") == (1, 5)
    guests.reserve(msg.Prepare("1.2", ["x"], 10.0, False), "c", "k")
    assert guests.on_cut_request(request("x", session="1.2"), C, TOKEN) == ["x"]
    assert host.owners.entries["x"].key == C


def test_an_abort_takes_back_what_the_cut_gave_and_nothing_newer():
    host = FakeHost()
    guests = cut(host, "x", "y")
    host.owners.swap("y", C, (1, 6), (5, 0))
    guests.on_abort(msg.Abort("1.1", items("x", "y", "stranger")))
    assert set(host.owners.entries) == {"y"}
    assert len(guests) == 0
    assert "x" not in guests


def test_done_goes_home_and_ends_the_guest():
    host = FakeHost()
    guests = cut(host, "x", "y")
    guests.on_done(msg.Done("1.1", ["x", "stranger"]))
    assert host.of("k", msg.Done) == [msg.Done("1.1", ["x"])]
    assert [x in guests for x in "xy"] == [False, True]
    guests.on_done(msg.Done("1.1", ["x"]))
    assert len(host.of("k", msg.Done)) == 1


@pytest.mark.parametrize("was_cut", [False, True])
def test_a_resume_that_names_the_session_is_its_done(was_cut: bool):
    host = FakeHost()
    guests = cut(host, "x") if was_cut else prepared(host, "x")
    guests.resumed("x", "1.1", "b")
    assert host.of("k", msg.Done) == [msg.Done("1.1", ["x"])]
    assert len(guests) == 0


def test_a_resume_that_names_the_session_at_another_edge_has_left_the_source_and_is_not_at_the_target():
    host = FakeHost()
    guests = cut(host, "x", "y")
    guests.resumed("x", "1.1", "c")
    assert host.of("k", msg.Done) == []
    assert [nak.members for nak in host.of("k", msg.HandoverRejected)] == [["x"]]
    assert [x in guests for x in "xy"] == [False, True]


def test_a_resume_that_names_no_session_ends_the_remote_member_and_undoes_it_before_its_cut():
    host = FakeHost()
    guests = prepared(host, "x")
    guests.resumed("x", None, "b")
    assert [type(record) for _, _, record in host.said] == [msg.HandoverRejected]
    assert len(guests) == 0
    host = FakeHost()
    guests = cut(host, "x")
    guests.resumed("x", "1.0", "b")
    assert host.of("k", msg.Done) == []
    assert host.of("k", msg.HandoverRejected) == []
    assert len(guests) == 0


def test_of_two_sessions_a_resume_ends_both_and_is_the_done_of_the_named_one():
    host = FakeHost()
    guests = prepared(host, "x")
    guests.reserve(msg.Prepare("2.1", ["x"], 10.0, False), "c", "m")
    guests.resumed("x", "2.1", "c")
    assert [(to, type(record)) for to, _, record in host.said] == [("k", msg.HandoverRejected), ("m", msg.Done)]
    assert "x" not in guests


def test_guests_expire_with_their_time_but_those_that_are_cut_are_kept_for_their_done():
    host = FakeHost()
    guests = prepared(host, "x", "y")
    guests.on_cut_request(request("y"), B, TOKEN)
    host.now += 69.9
    guests.expire()
    assert len(guests) == 2
    host.now += 0.2
    guests.expire()
    assert [x in guests for x in "xy"] == [False, True]
    host.now += 3600.0
    guests.expire()
    guests.on_done(msg.Done("1.1", ["y"]))
    assert host.of("k", msg.Done) == [msg.Done("1.1", ["y"])], "however long it took to drain the source"


@pytest.mark.parametrize("newer", [False, True])
def test_a_cut_guest_goes_with_its_owner_entry(newer: bool):
    host = FakeHost()
    guests = cut(host, "x")
    host.owners.swap("x", C, (1, 9), (5, 0)) if newer else host.owners.forget("x")
    guests.expire()
    assert len(guests) == 0


def test_a_lease_that_ends_here_ends_the_guest():
    host = FakeHost()
    guests = cut(host, "x", "y")
    guests.lapsed("x", (1, 5))
    guests.lapsed("y", (1, 3))
    assert [x in guests for x in "xy"] == [False, True]


def test_the_end_of_an_older_lease_here_does_not_end_a_guest_that_is_on_its_way():
    guests = prepared(FakeHost(), "x")
    guests.lapsed("x", (1, 2))
    assert "x" in guests


def test_an_edge_that_is_lost_undoes_those_that_are_not_cut_in_one_record():
    host = FakeHost()
    guests = prepared(host, "x", "y", "z")
    guests.on_cut_request(request("z"), B, TOKEN)
    guests.reserve(msg.Prepare("1.2", ["v"], 10.0, False), "c", "k")
    host.said.clear()
    guests.edge_lost("b")
    assert host.said == [("k", "", msg.HandoverRejected("1.1", ["x", "y"], "b was lost"))]
    assert [x in guests for x in "xyzv"] == [False, False, True, True]
    guests.resumed("z", "1.1", "b")
    assert host.of("k", msg.Done) == [msg.Done("1.1", ["z"])], "it had restarted when z came back"


def test_a_head_that_is_lost_orphans_its_guests_and_no_others():
    host = FakeHost()
    guests = prepared(host, "x", "y")
    guests.reserve(msg.Prepare("2.1", ["z"], 10.0, False), "c", "m")
    assert guests.coordinators() == ["k", "m"]
    guests.heads_lost(["k", "q"])
    assert host.said == [("h", "b", msg.Orphan("1.1", ["x", "y"]))]
    assert [x in guests for x in "xyz"] == [False, False, True]


def test_part_shows_done_the_way_home_again_and_not_for_long():
    host = FakeHost()
    guests = cut(host, "x", "y")
    guests.on_done(msg.Done("1.1", ["x", "y"]))
    host.owners.swap("y", C, (1, 7), (5, 0))
    guests.on_force_detach(msg.ForceDetach("1.1", items("x", "y", "stranger")), "b", "k")
    assert [x in guests for x in ("x", "y", "stranger")] == [True, False, False]
    guests.on_done(msg.Done("1.1", ["x"]))
    assert host.of("k", msg.Done) == [msg.Done("1.1", ["x", "y"]), msg.Done("1.1", ["x"])]
    guests.on_force_detach(msg.ForceDetach("1.1", items("x")), "b", "k")
    host.now += 60.0
    guests.expire()
    assert len(guests) == 0


def test_who_the_edge_will_not_have_is_no_guest():
    host = FakeHost()
    guests = prepared(host, "x", "y")
    guests.on_cut_request(request("y"), B, TOKEN)
    guests.on_rejected("1.1", ["x", "y", "stranger"])
    assert [x in guests for x in "xy"] == [False, True]


def test_guests_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMOTE_MEMBERS_AT_MOST", 5)
    host = FakeHost()
    guests = prepared(host, "x", "y", "z")
    assert not guests.reserve(msg.Prepare("1.2", ["u", "v", "w"], 10.0, False), "b", "k")
    assert len(guests) == 3
    assert "u" not in guests
    guests.on_abort(msg.Abort("1.1", items("x")))
    assert guests.reserve(msg.Prepare("1.2", ["u", "v", "w"], 10.0, False), "b", "k")


def test_a_prepare_that_is_said_again_does_not_undo_a_cut():
    host = FakeHost()
    guests = cut(host, "x")
    guests.reserve(msg.Prepare("1.1", ["x"], 10.0, False), "b", "k")
    host.now += 1000.0
    guests.expire()
    assert "x" in guests
