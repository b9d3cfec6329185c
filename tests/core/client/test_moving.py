"""A subscriber that is handed over, between scripted edges `e` and `o`: one test for each rule."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core import records as r
from plimsoll.core.client import Acknowledged, Attached, Delivery, Detached, Failed, Forgotten, SubscriptionRefused
from plimsoll.core.client.attachment import State

SESSION = "4.7"
CUT = ("h", 5, 20)


class Move:
    """A subscriber at `e`, and what the brokers say when it is to go to `o`."""

    def __init__(self, stage: Any, kit: Any, **options: Any) -> None:
        self.stage, self.kit = stage, kit
        self.source: Any = stage.edge
        self.target: Any = stage.wire.add(kit.script("o", "edge", 1), kit.other)
        self.subscriber = stage.attach(position=10, **options)
        self.id = self.subscriber.current.id

    def run(self, seconds: float = 0.0) -> None:
        self.stage.run(seconds)

    def begin(self, session: str = SESSION, **fields: Any) -> None:
        what = {"epoch": self.subscriber.epoch, "edge": "o", "endpoint": self.kit.other, **fields}
        self.source.tell(r.MoveTo(self.id, session, what["epoch"], what["edge"], what["endpoint"], ""))
        self.run()

    @property
    def next(self) -> int:
        """The number of the second attachment."""
        return int(self.target.last_of(r.Attach).attachment)

    def held(self, version: int | None = None) -> None:
        self.target.tell(r.Held(self.next, self.subscriber.version if version is None else version))
        self.run()

    def suback(self, version: int | None = None, *, edge: Any = None, unreached: tuple[str, ...] = ()) -> None:
        """`edge` acknowledges; the source if it is left out."""
        at = self.next if edge is self.target else self.id
        version = self.subscriber.version if version is None else version
        (edge or self.source).tell(r.Suback(at, version, list(unreached)))
        self.run()

    def end(self, token: Any = CUT, session: str = SESSION) -> None:
        self.source.tell(r.End(self.id, session, token))
        self.run()

    def stay(self, session: str = SESSION) -> None:
        self.source.tell(r.Stay(self.id, session))
        self.run()

    def change(self) -> int:
        """Another subscription, said to whoever has the list."""
        new = int(self.subscriber.subscribe(f"[n,=,{self.subscriber.version}]"))
        self.run()
        return new

    def acknowledged(self) -> list[tuple[int, ...]]:
        return [each.ids for each in self.stage.app.of(Acknowledged)]

    def lose_target(self) -> None:
        self.stage.wire.remove(self.target)
        self.run(10.0)


@pytest.fixture
def move(stage: Any, kit: Any) -> Move:
    return Move(stage, kit)


# -- MOVE_TO


def test_it_attaches_at_the_target_while_it_is_served(move: Move):
    move.begin()
    attach = move.target.last_of(r.Attach)
    inc, n = move.subscriber.epoch
    assert (attach.subscriber, attach.epoch, attach.session) == ("s", (inc, n + 1), SESSION)
    assert (attach.version, attach.subscriptions) == (
        move.subscriber.version,
        [*move.subscriber.subscriptions.values()],
    )
    assert move.subscriber.current.id == move.id
    assert move.source.all(r.Detach) == []
    assert move.stage.app.of(Detached) == []


def test_the_policy_goes_with_it(stage: Any, kit: Any):
    move = Move(stage, kit, policy=r.Policy(slow="drop-oldest"))
    move.begin()
    assert move.target.last_of(r.Attach).policy.slow == "drop-oldest"


def test_a_link_to_the_target_is_shared(stage: Any, kit: Any):
    move = Move(stage, kit)
    stage.head.edge = ("o", kit.other)
    other = stage.client.subscriber("other")
    stage.run()
    stage.answer(10, move.target)
    links = len(stage.client.links)
    move.begin()
    assert len(stage.client.links) == links
    assert move.subscriber.handover.next.port is other.current.port
    move.stay()
    move.run(3.0)
    assert stage.app.of(Detached) == []


@pytest.mark.parametrize("wrong", ["epoch", "same edge", "under way", "attaching"])
def test_what_is_not_meant_for_it_now_is_passed_over(move: Move, wrong: str):
    if wrong == "epoch":
        move.begin(epoch=(move.subscriber.epoch[0], move.subscriber.epoch[1] + 1))
    elif wrong == "same edge":
        move.begin(edge="e", endpoint="tcp://elsewhere")
    elif wrong == "under way":
        move.begin()
        move.begin("4.8")
    else:
        move.source.tell(r.Shut(move.id, "head", "again"))
        move.run(1.0)
        move.id = move.subscriber.current.id
        assert move.subscriber.current.state is State.RESUMING
        move.begin()
    assert len(move.target.all(r.Attach)) == (wrong == "under way")
    assert move.stage.client.counters["moves_passed_over"] == 1
    assert move.subscriber.current.port.edge == "e"


def test_the_target_asks_in_vain_for_a_move(move: Move):
    move.begin()
    move.target.tell(r.MoveTo(move.next, "4.8", move.subscriber.epoch, "e", "tcp://edge", ""))
    move.run()
    assert move.stage.client.counters["moves_passed_over"] == 1


def test_it_stays_where_the_target_cannot_be_reached(move: Move, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    new = move.change()
    move.suback()
    assert move.acknowledged()[-1] == (new,)
    move.run(20.0)
    move.stay()
    move.run(3.0)
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []


# -- END


def test_the_target_takes_over_where_the_source_ends(move: Move, kit: Any):
    move.begin()
    move.held()
    n = move.subscriber.number
    move.source.tell(r.Deliver(move.id, kit.pub(15)))
    move.end()
    assert (move.subscriber.token, move.subscriber.number) == (CUT, n + 1)
    assert move.target.last_of(r.Go) == r.Go(move.next, SESSION)
    assert move.source.all(r.Detach) == [r.Detach(move.id, False)]
    assert move.subscriber.current.id == move.next
    assert move.subscriber.handover is None
    move.target.tell(r.Deliver(move.next, kit.pub(21)), r.Deliver(move.next, kit.pub(22)))
    move.run()
    assert move.stage.app.seqs() == [15, 21, 22]
    assert move.stage.app.of(Attached)[-1] == Attached("o", "h", True)
    assert move.stage.app.of(Detached) == []
    assert move.subscriber.token == ("h", 5, 22)
    assert move.subscriber.statistics()["moves"] == 1
    assert move.subscriber.statistics()["edge"] == "o"


def test_it_need_not_have_heard_that_the_target_has_it(move: Move):
    move.begin()
    move.end()
    assert len(move.target.all(r.Go)) == 1


def test_the_link_to_the_source_is_closed_behind_it(move: Move):
    move.begin()
    move.end()
    move.run(3.0)
    assert set(move.stage.client.ports) == {"o"}


def test_the_stream_may_go_on_at_another_head(move: Move, kit: Any):
    move.begin()
    move.held()
    move.source.tell(r.Deliver(move.id, kit.pub(15, offset=3, head="g", epoch=9)))
    move.end(("g", 9, 4))
    move.target.tell(
        r.Deliver(move.next, kit.pub(5, offset=3, head="g", epoch=9)),
        r.Deliver(move.next, kit.pub(6, offset=6, head="g", epoch=9)),
    )
    move.run()
    assert [each.offset for each in (d.pub for d in move.stage.app.of(Delivery))] == [3, 6]
    assert move.subscriber.statistics()["duplicates_suppressed"] == 1
    assert move.stage.app.of(Delivery)[-1].token == move.subscriber.token == ("g", 9, 6)
    assert move.stage.app.of(Attached)[-1].head == "g"


def test_nothing_is_taken_from_the_target_before_the_end(move: Move, kit: Any):
    move.begin()
    move.held()
    move.target.tell(
        r.Deliver(move.next, kit.pub(12)),
        r.Deliver(move.next, r.Gap("h", 5, 11, 5, 18, [], "test")),
        r.Progress(19),
        r.Epoch(move.next, r.Gap("h", 5, 11, 6, 1, [], "restart")),
    )
    move.run()
    assert move.stage.app.of(Delivery) == []
    assert move.subscriber.token == ("h", 5, 10)
    assert move.stage.client.counters["records_for_nobody"] == 2
    assert move.stage.client.counters["records_refused_misplaced"] == 1


def test_progress_of_the_target_counts_after_the_end(move: Move):
    move.begin()
    move.target.tell(r.Progress(15))
    move.end()
    move.target.tell(r.Progress(25))
    move.run()
    assert move.subscriber.token == ("h", 5, 25)


def test_what_still_comes_from_the_source_behind_the_end_is_of_no_concern(move: Move, kit: Any):
    move.begin()
    move.end()
    move.source.tell(r.Deliver(move.id, kit.pub(25)), r.Progress(90), r.Shut(move.id, "head", "late"))
    move.run()
    assert move.stage.app.of(Delivery) == []
    assert move.subscriber.token == CUT
    assert move.subscriber.current.id == move.next


def test_it_can_be_moved_on(move: Move, kit: Any):
    move.begin()
    move.end()
    move.source, move.target, move.id = move.target, move.source, move.next
    move.begin("4.8", edge="e", endpoint=kit.edge)
    move.end(("h", 5, 30), "4.8")
    assert move.subscriber.statistics()["moves"] == 2
    assert move.subscriber.current.port.edge == "e"
    assert move.subscriber.token == ("h", 5, 30)


def test_a_pause_is_carried_over(move: Move):
    move.subscriber.pause()
    move.begin()
    move.end()
    said = [each for each in move.target.heard if isinstance(each, r.Pause | r.Go)]
    assert said == [r.Pause(move.next), r.Go(move.next, SESSION)]
    move.subscriber.resume()
    move.run()
    assert move.target.last_of(r.Continue).attachment == move.next
    assert move.source.all(r.Continue) == []


def test_the_target_is_not_paused_before_it_delivers(move: Move):
    move.begin()
    move.subscriber.pause()
    move.run()
    move.subscriber.resume()
    move.run()
    move.end()
    assert move.target.all(r.Pause) == []
    assert len(move.source.all(r.Pause)) == len(move.source.all(r.Continue)) == 1


# -- END without a target


def test_without_a_target_it_resumes_there(move: Move):
    move.begin()
    n = move.subscriber.number
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    move.end()
    resume = move.target.last_of(r.Resume)
    assert (resume.token, resume.session) == (CUT, SESSION)
    assert resume.epoch[1] == n + 3
    assert move.source.last_of(r.Detach) == r.Detach(move.id, False)
    assert move.target.all(r.Go) == []
    move.stage.answer(20, move.target)
    assert move.stage.app.of(Attached)[-1] == Attached("o", "h", True)
    assert move.subscriber.session is None


@pytest.mark.parametrize("how", ["link lost", "leaving", "moved"])
def test_a_target_that_is_gone_is_not_asked_again(move: Move, kit: Any, how: str):
    move.begin()
    if how == "link lost":
        move.lose_target()
    else:
        code = r.Shut(move.next, "leaving", "") if how == "leaving" else r.Moved(move.next, "", "", "")
        move.target.tell(code)
        move.run()
    assert move.subscriber.current.id == move.id
    assert move.stage.app.of(Detached) == []
    move.end(("g", 9, 4))
    join = move.stage.head.last_of(r.Join)
    assert (join.exclude, join.head) == (["o"], "g")
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (("g", 9, 4), SESSION)


def test_an_end_before_it_could_ask_the_target(move: Move, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.end()
    move.stage.wire.cut.clear()
    move.run(3.0)
    assert move.target.last_of(r.Resume).token == CUT
    assert move.target.all(r.Attach) == []


def test_an_end_that_nobody_asked_for_ends_the_stream_all_the_same(move: Move):
    move.begin()
    move.held()
    move.end(session="4.9")
    assert move.target.last_of(r.Detach) == r.Detach(move.next, False)
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (CUT, "4.9")


def test_a_target_that_fails_after_the_end_is_left_with_the_session_named(move: Move, kit: Any):
    move.begin()
    move.end()
    move.stage.wire.remove(move.target)
    move.run(10.0)
    resume = move.source.last_of(r.Resume)
    assert (resume.token, resume.session) == (CUT, SESSION)
    assert move.stage.head.last_of(r.Join).exclude == ["o"]


def test_a_full_hold_that_the_end_has_crossed_is_resumed_there(move: Move):
    move.begin()
    move.source.tell(r.End(move.id, SESSION, CUT))
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    resume = move.target.last_of(r.Resume)
    assert (resume.token, resume.session) == (CUT, SESSION)
    assert len(move.stage.head.all(r.Join)) == 1


# -- the hand-over is off


def test_stay_ends_it(move: Move, kit: Any):
    move.begin()
    move.stay("4.8")
    assert move.target.all(r.Detach) == []
    move.stay()
    assert move.target.all(r.Detach) == [r.Detach(move.next, False)]
    move.source.tell(r.Deliver(move.id, kit.pub(11)))
    move.run(3.0)
    assert move.stage.app.seqs() == [11]
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []
    assert move.subscriber.statistics()["moves"] == 0


def test_after_stay_it_can_be_asked_again(move: Move):
    move.begin()
    move.stay()
    move.begin("4.8")
    assert [each.session for each in move.target.all(r.Attach)] == [SESSION, "4.8"]


def test_a_target_that_refuses_changes_nothing(move: Move, kit: Any):
    move.begin()
    move.target.tell(r.Shut(move.next, "session", "no slot"))
    move.run()
    move.begin("4.8")
    move.source.tell(r.Deliver(move.id, kit.pub(11)))
    move.run()
    assert move.stage.app.seqs() == [11]
    assert len(move.target.all(r.Attach)) == 1
    move.run(3.0)
    assert set(move.stage.client.ports) == {"e"}
    assert move.stage.app.of(Detached) == []


@pytest.mark.parametrize("code", ["epoch", "slow", "released"])
def test_no_code_of_the_target_is_meant_for_the_subscriber(move: Move, code: str):
    move.begin()
    move.target.tell(r.Shut(move.next, code, ""))
    move.run()
    assert move.stage.app.of(Failed) == []
    assert move.subscriber.conflicts == 0
    assert move.subscriber.current.id == move.id


@pytest.mark.parametrize("how", ["shut", "link", "moved"])
def test_who_loses_the_source_resumes_and_leaves_the_target(move: Move, kit: Any, how: str):
    move.begin()
    n = move.subscriber.number
    move.stage.head.edge = ("o", kit.other)
    if how == "shut":
        move.source.tell(r.Shut(move.id, "parted", "too long"))
    elif how == "moved":
        move.source.tell(r.Moved(move.id, "", "", ""))
    else:
        move.stage.wire.remove(move.source)
    move.run(10.0)
    resume = move.target.last_of(r.Resume)
    assert (resume.session, resume.token, resume.epoch[1]) == (None, ("h", 5, 10), n + 2)
    heard = [each for each in move.target.heard if isinstance(each, r.Detach | r.Resume)]
    assert [type(each) for each in heard] == [r.Detach, r.Resume]
    assert move.subscriber.handover is None


def test_a_restart_of_the_head_ends_it(move: Move):
    move.begin()
    move.source.tell(r.Epoch(move.id, r.Gap("h", 5, 11, 6, 2, [], "restart")))
    move.run()
    assert move.target.last_of(r.Detach) == r.Detach(move.next, False)
    assert move.subscriber.token == ("h", 6, 2)
    assert move.subscriber.current.id == move.id
    move.begin("5.1")
    assert move.target.last_of(r.Attach).session == "5.1"


def test_who_is_moved_by_replay_names_the_session(move: Move, kit: Any):
    move.source.tell(r.Moved(move.id, "o", kit.other, "", "4.9"))
    move.run()
    assert move.target.last_of(r.Resume).session == "4.9"
    assert [move.subscriber.statistics()[each] for each in ("moves", "redirects")] == [1, 1]


def test_a_redirect_without_a_session_does_not_forget_one(move: Move):
    move.begin()
    move.end()
    move.target.tell(r.Moved(move.next, "", "", ""))
    move.run()
    assert move.source.last_of(r.Resume).session == SESSION


@pytest.mark.parametrize("withdraw", [True, False])
def test_closing_detaches_from_both(move: Move, withdraw: bool):
    move.begin()
    move.subscriber.close(withdraw=withdraw)
    move.run(3.0)
    assert move.source.all(r.Detach) == [r.Detach(move.id, withdraw)]
    assert move.target.all(r.Detach) == [r.Detach(move.next, withdraw)]
    assert move.stage.client.ports == {}


def test_closing_before_the_target_was_asked_says_nothing_there(move: Move, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    move.subscriber.close()
    move.stage.wire.cut.clear()
    move.run(5.0)
    assert move.target.heard == []
    assert move.stage.client.ports == {}


# -- changes of subscriptions


def test_changes_go_to_both(move: Move):
    move.begin()
    new = move.change()
    for edge, at in ((move.source, move.id), (move.target, move.next)):
        subs = edge.last_of(r.Subs)
        assert (subs.attachment, subs.version) == (at, move.subscriber.version)
        assert [item.id for item in subs.adds] == [new]


def test_a_change_counts_when_both_have_it(move: Move):
    move.begin()
    move.held()
    new = move.change()
    move.suback()
    assert new not in {i for ids in move.acknowledged() for i in ids}
    move.held()
    assert move.acknowledged()[-1] == (new,)


def test_a_change_that_only_the_target_has_does_not_count(move: Move):
    move.begin()
    new = move.change()
    move.held()
    move.suback(edge=move.target)
    assert (new,) not in move.acknowledged()
    move.suback()
    assert move.acknowledged()[-1] == (new,)


def test_an_acknowledgement_of_the_target_is_as_good_as_held(move: Move):
    move.begin()
    new = move.change()
    move.suback()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_an_older_acknowledgement_does_not_take_a_newer_one_back(move: Move):
    move.begin()
    new = move.change()
    move.suback()
    move.suback(move.subscriber.version - 1)
    move.held()
    assert move.acknowledged()[-1] == (new,)


def test_an_older_version_at_the_target_is_not_enough(move: Move):
    move.begin()
    first = move.change()
    version = move.subscriber.version
    second = move.change()
    move.suback()
    move.held(version)
    assert move.acknowledged()[-1] == (first,)
    move.held()
    assert move.acknowledged()[-1] == (second,)


def test_a_withdrawal_counts_when_both_have_it(move: Move):
    move.begin()
    move.subscriber.unsubscribe(1)
    move.run()
    move.suback()
    assert move.stage.app.of(Forgotten) == []
    move.held()
    assert move.stage.app.of(Forgotten) == [Forgotten((1,))]


def test_after_the_end_only_the_acknowledgement_of_the_target_counts(move: Move):
    move.begin()
    new = move.change()
    move.end()
    move.held()
    assert (new,) not in move.acknowledged()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_what_the_source_has_acknowledged_counts_no_more_after_the_end(move: Move):
    move.begin()
    new = move.change()
    move.suback()
    move.end()
    assert (new,) not in move.acknowledged()
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new,)


def test_what_the_target_has_acknowledged_before_the_end_counts_at_the_end(move: Move):
    move.begin()
    new = move.change()
    move.suback(edge=move.target)
    assert (new,) not in move.acknowledged()
    move.end()
    assert move.acknowledged()[-1] == (new,)


def test_what_counts_is_not_told_again_after_the_end(move: Move):
    move.begin()
    move.held()
    move.end()
    move.suback(edge=move.target)
    assert move.acknowledged() == [(1,)]


def test_a_change_before_it_could_ask_the_target_is_in_its_list(move: Move, kit: Any):
    move.stage.wire.cut.add(kit.other)
    move.begin()
    new = move.change()
    move.stage.wire.cut.clear()
    move.run(3.0)
    attach = move.target.last_of(r.Attach)
    assert (attach.version, attach.subscriptions[-1].id) == (move.subscriber.version, new)
    assert move.target.all(r.Subs) == []


def test_a_change_in_the_round_of_the_question_is_said_once_to_each(stage: Any, kit: Any):
    move = Move(stage, kit)
    stage.head.edge = ("o", kit.other)
    stage.client.subscriber("other")
    stage.run()
    first = move.subscriber.subscribe("[n,=,7]")
    stage.client._on_attachment(
        move.subscriber.current.port, r.MoveTo(move.id, SESSION, move.subscriber.epoch, "o", kit.other, "")
    )
    second = move.subscriber.subscribe("[n,=,8]")
    stage.run()
    attach = move.target.last_of(r.Attach)
    assert [item.id for item in attach.subscriptions] == [1, first]
    assert [[item.id for item in each.adds] for each in move.target.all(r.Subs)] == [[second]]
    assert [[item.id for item in each.adds] for each in move.source.all(r.Subs)] == [[first], [second]]
    assert move.target.last_of(r.Subs).version == attach.version + 1 == move.subscriber.version


def test_a_change_in_the_round_of_the_end_reaches_the_target(move: Move):
    move.begin()
    new = move.subscriber.subscribe("[n,=,7]")
    move.stage.client._on_attachment(move.subscriber.current.port, r.End(move.id, SESSION, CUT))
    later = move.subscriber.subscribe("[n,=,8]")
    move.run()
    assert [[item.id for item in each.adds] for each in move.target.all(r.Subs)] == [[new], [later]]
    move.suback(edge=move.target)
    assert move.acknowledged()[-1] == (new, later)


def test_without_the_target_a_change_waits_for_stay_or_the_end(move: Move):
    """The cut may be behind us: then the source asks for nothing any more, and the target never had the change."""
    move.begin()
    move.held()
    new = move.change()
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    move.suback()
    assert (new,) not in move.acknowledged()
    move.stay()
    assert move.acknowledged()[-1] == (new,)


def test_what_the_target_had_counts_although_it_has_gone(move: Move):
    move.begin()
    new = move.change()
    move.held()
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    move.suback()
    assert move.acknowledged()[-1] == (new,)


def test_a_restart_of_the_head_leaves_it_to_the_source_what_counts(move: Move):
    move.begin()
    new = move.change()
    move.suback()
    move.source.tell(r.Epoch(move.id, r.Gap("h", 5, 11, 6, 2, [], "restart")))
    move.run()
    assert move.acknowledged()[-1] == (new,)


def test_unreached_heads_are_those_of_the_edge_that_serves(move: Move):
    move.begin()
    new = move.change()
    move.suback(unreached=("far",))
    move.suback(edge=move.target, unreached=("other",))
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ("far",))
    move.end(("g", 9, 4))
    assert not move.subscriber.is_settled
    move.suback(edge=move.target)
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "g", ())
    assert move.subscriber.is_settled


def test_an_older_list_that_has_arrived_everywhere_says_nothing_of_a_newer_one(move: Move):
    move.begin()
    version = move.subscriber.version
    new = move.change()
    move.held()
    move.suback(unreached=("far",))
    move.end()
    move.suback(version, edge=move.target)
    assert not move.subscriber.is_settled
    move.suback(edge=move.target)
    assert move.stage.app.of(Acknowledged)[-1] == Acknowledged((new,), "h", ())


def test_a_subscription_that_only_the_target_refuses_is_kept(move: Move):
    move.begin()
    move.target.tell(r.SubRefused(move.next, move.subscriber.version, 1, "too many"))
    move.run()
    assert move.stage.app.of(SubscriptionRefused) == []
    assert move.target.last_of(r.Detach) == r.Detach(move.next, False)
    assert list(move.subscriber.subscriptions) == [1]
    assert move.subscriber.current.id == move.id


def test_a_subscription_that_the_source_refuses_is_taken_from_the_target(move: Move):
    move.begin()
    new = move.change()
    version = move.subscriber.version
    move.source.tell(r.SubRefused(move.id, version, new, "too many"))
    move.run()
    assert move.stage.app.of(SubscriptionRefused) == [SubscriptionRefused(new, "too many")]
    subs = move.target.last_of(r.Subs)
    assert (subs.adds, subs.removes, subs.version) == ([], [new], version + 1)
    move.target.tell(r.SubRefused(move.next, version, new, "too many"))
    move.run()
    assert move.target.all(r.Detach) == []


def test_a_lapse_makes_every_change_wait_again(move: Move):
    move.begin()
    move.held()
    move.target.tell(r.Shut(move.next, "hold", "full"))
    move.run()
    move.end()
    move.stage.answer(20, move.target, lapsed=True)
    assert move.acknowledged() == [(1,), (1,)]
