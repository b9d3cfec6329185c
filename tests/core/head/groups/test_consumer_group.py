"""Groups of real machines in virtual time: join, leave, crash, partition, restarts; each item processed once."""

from __future__ import annotations

import random

import pytest
from tests.core.group_mediator import GroupMediator
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.client.subscriber import ClientSubscriber
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name


def test_the_first_member_has_all_slices_and_processes_all_in_order() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0)
    assert play.has("a") == [0, 1, 2, 3]
    play.run(2.0, rate=200)
    play.check()


def test_a_newcomer_gets_its_share_within_two_beats_and_nothing_is_lost_or_repeated() -> None:
    play = GroupPlay()
    play.join("a", work=0.004)
    play.run(1.0)
    play.run(2.0, rate=200)
    play.join("b", work=0.004)
    play.run(2.0, rate=200)
    assert len(play.has("b")) == 2
    assert sorted(play.has("a") + play.has("b")) == [0, 1, 2, 3]
    play.run(1.0, rate=200)
    play.check()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("balancing", "has_mediator"), [("None", False), ("Rates", False), ("Rates", True)])
def test_shares_are_even_when_ten_join_at_once_and_one_after_another(balancing: str, has_mediator: bool) -> None:
    play = GroupPlay(count=200, balancing=balancing)
    time = GroupMediator(play) if has_mediator else play
    play.join("a0")
    time.run(0.5)
    for i in range(1, 10):
        slow = play.draw.choice(sorted(play.consumers))
        play.fleet.freeze(slow)  # the next joins while this one is still to let go
        play.join(f"a{i}")
        time.run(play.draw.choice((0.02, 0.1, 0.2)))
        play.fleet.thaw(slow)
    for i in range(10):
        play.join(f"b{i}")
    time.run(2.0)
    assert [len(play.has(name)) for name in play.consumers] == [10] * 20
    moved = play.group.counts["moved"]
    time.run(11.0)
    assert play.group.counts["moved"] == moved


def test_members_have_keys_of_their_own() -> None:
    play = GroupPlay()
    play.join("a")
    play.join("b")
    play.run(1.0)
    play.run(2.0, rate=50)
    entry = play.fleet.head().owners.entries[slice_name(GROUP, play.has("b")[0])]
    assert entry.identity == "group:readings"
    play.check()


def test_one_that_leaves_gives_all_and_then_ends() -> None:
    play = GroupPlay()
    play.join("a", work=0.01)
    play.join("b", work=0.01)
    play.run(1.0)
    play.run(2.0, rate=100)
    play.leave("a")
    play.run(2.0, rate=50)
    assert play.consumers["a"].member.has_left
    assert play.has("b") == [0, 1, 2, 3]
    play.check()
    assert play.group.counts["left"] == 1


def test_the_last_one_leaves_and_the_next_goes_on_where_it_ended() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0)
    play.run(1.0, rate=50)
    play.leave("a")
    play.run(1.0, rate=50)
    assert play.consumers["a"].member.has_left
    play.join("b")
    play.run(2.0, rate=50)
    play.check()


@pytest.mark.parametrize("edges", [1, 2])
def test_a_slice_that_moves_a_hundred_times_under_load_is_processed_once(edges: int) -> None:
    play = GroupPlay(edges=edges, count=1, balancing="None")
    play.join("a", work=0.002)
    play.join("b", work=0.002)
    play.run(1.0)
    for _ in range(100):
        each = play.group.slices[0]
        play.group.revoke(each, "b" if each.holder == "a" else "a")  # as a plan of one move
        play.run(0.05, rate=200)
    assert play.group.counts["moved"] >= 100
    verdict = play.check()
    assert verdict.processed_once == play.said > 800


def test_a_giver_with_500_items_unprocessed_gives_them_all_to_the_taker() -> None:
    play = GroupPlay(count=1)
    play.join("a", work=0.05)
    play.run(1.0)
    for _ in range(500):
        play.publish(3)
    play.run(0.5)
    assert play.consumers["a"].member.slices[0].backlog > 400
    play.join("b")
    play.run(0.5)
    play.leave("a")
    play.run(1.0)
    assert play.has("b") == [0]
    play.check()


def test_other_slices_go_on_while_one_moves_whose_giver_is_slow() -> None:
    play = GroupPlay(count=2, sensors=2)
    play.join("a", work=3.0)
    play.join("b")
    play.run(2.0)
    slow, other = play.has("a")[0], play.has("b")[0]
    play.publish(slow)
    play.run(0.1)
    play.leave("a")
    play.publish(slow)
    play.run(0.1)
    before = len(play.given)
    for _ in range(10):
        play.publish(other)
    play.run(0.5)
    assert len(play.given) == before + 10
    play.check(seconds=5.0)


def test_a_dead_consumers_slices_go_on_within_ten_seconds_and_what_it_had_is_marked() -> None:
    play = GroupPlay()
    play.join("a", work=0.3)
    play.join("b")
    play.run(1.0)
    play.run(2.0, rate=20)
    gone = set(play.has("a"))
    play.crash("a")
    play.run(8.0, rate=20)
    assert gone <= set(play.has("b"))
    verdict = play.check(is_exact=False)
    assert verdict.redelivered >= 1
    assert play.group.counts["gone"] == 1


def test_one_that_is_cut_off_stops_by_itself_before_another_goes_on() -> None:
    play = GroupPlay()
    play.join("a", work=0.02)
    play.join("b", work=0.02)
    play.run(1.0)
    play.run(2.0, rate=40)
    play.fleet.cut("a", "h")
    play.run(9.0, rate=40)
    assert play.has("a") == []
    assert play.has("b") == [0, 1, 2, 3]
    assert any(change.why == "lost" for change in play.consumers["a"].changes)
    play.fleet.mend("a", "h")
    play.run(4.0, rate=40)
    assert play.has("a") != []
    play.check(is_exact=False)


def test_a_dead_edge_costs_nothing() -> None:
    play = GroupPlay()
    play.join("a", work=0.01)
    play.join("b", work=0.01)
    play.run(1.0)
    play.run(2.0, rate=60)
    play.fleet.crash("e1")
    play.run(2.0, rate=60)
    play.fleet.start("e1")
    play.run(3.0, rate=60)
    play.check()


def test_a_restarted_head_asks_who_has_what_and_moves_nothing() -> None:
    play = GroupPlay()
    play.join("a")
    play.join("b")
    play.run(3.0)
    before = play.has("a"), play.has("b")
    epochs = assignments(play)
    play.fleet.crash("h")
    play.run(0.3)
    play.fleet.start("h")
    play.run(8.0)
    assert (play.has("a"), play.has("b")) == before
    assert assignments(play) == epochs
    play.gaps.clear()  # a restarted head tells each subscriber one gap
    first = play.said + 1
    play.run(2.0, rate=50)
    play.leave("a")
    play.run(3.0, rate=50)
    assert play.has("b") == [0, 1, 2, 3]
    assert all(play.consumers["b"].member.slices[n].assignment >= epochs[n] for n in range(4))
    assert {each.item for each in play.given if each.until} >= set(range(first, play.said + 1))


def assignments(play: GroupPlay) -> dict[int, int]:
    """The epoch of each slice, as its member knows it."""
    return {n: each.assignment for c in play.consumers.values() for n, each in c.member.slices.items()}


def test_a_client_that_was_not_assigned_a_slice_may_not_attach_it() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(8.0)
    thief = play._client("thief")  # of this suite
    name = slice_name(GROUP, 0)  # `Client.subscriber` refuses it: a thief with a library of its own asks all the same
    subscriber = thief.subscribers[name] = ClientSubscriber(thief, name, msg.Policy(), None, "")
    thief.edge_finder.begin(subscriber)
    subscriber.subscribe("[class,=,'R']")
    play.run(2.0, rate=20)
    assert subscriber.stream.items == 0
    assert play.has("a") == [0, 1, 2, 3]
    play.check()


def test_more_members_than_slices_leave_one_idle_with_a_reason() -> None:
    play = GroupPlay(count=2)
    for name in ("a", "b", "c"):
        play.join(name)
        play.run(1.0)
    idle = dict(play.group.schedule.plan.idle)
    assert list(idle) == ["c"]
    assert "2 slices and 3 consumers" in idle["c"]
    assert play.has("c") == []


def test_a_slow_consumer_loses_slices_until_costs_are_even() -> None:
    play = GroupPlay(count=8, sensors=64)
    play.join("a", work=0.03)
    play.join("b", work=0.003)
    play.run(1.0)
    play.run(60.0, rate=40)
    assert len(play.has("a")) < len(play.has("b"))
    play.check(seconds=10.0)


def test_an_item_without_a_slice_is_counted_and_goes_nowhere() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0)
    play.publisher.publish({"class": "R", "sensor": "x", "n": 0}, sent_us=0)
    play.run(1.0)
    assert play.given == []
    assert play.fleet.head().groups.stamps.unassigned[GROUP] == 1


def test_a_second_process_of_the_same_name_waits_until_the_first_has_gone() -> None:
    play = GroupPlay()
    first = play.join("a")
    play.run(1.0)
    play.crash("a")
    second = play.join("a")
    play.run(1.0)
    assert play.has("a") == []
    play.run(8.0)
    assert second.member.is_member
    assert first is not second
    assert play.has("a") == [0, 1, 2, 3]


def test_what_is_wrong_with_a_definition_is_said() -> None:
    play = GroupPlay()
    play.definition = definition(0)
    play.join("a")
    play.run(1.0)
    failed = play.consumers["a"].member.failed
    assert failed is not None
    assert "0 slices" in failed.text
    play.definition = definition(4)
    play.join("b")
    play.run(1.0)
    play.definition = definition(8)
    play.join("c")
    play.run(1.0)
    failed = play.consumers["c"].member.failed
    assert failed is not None
    assert "defined otherwise" in failed.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_joins_leaves_and_faults_at_random(seed: int) -> None:
    run_at_random(seed)


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(6, 46))
def test_joins_leaves_and_faults_at_random_at_length(seed: int) -> None:
    run_at_random(seed)


def run_at_random(seed: int) -> None:
    """Consumers come and go, die, freeze and are cut off, and edges die, in any order; then all is processed."""
    draw = random.Random(seed)
    play = GroupPlay(seed=seed, count=draw.choice((1, 4, 7)))
    names = [f"c{i}" for i in range(4)]
    play.join("c0", work=0.004)
    play.run(1.0)
    for _ in range(14):
        here = sorted(play.consumers)
        what = draw.choice(("join", "leave", "crash", "cut", "edge", "freeze", "nothing"))
        name = draw.choice(names)
        if what == "join" and name not in here:
            play.join(name, work=draw.choice((0.0, 0.004, 0.02)))
        elif what == "leave" and name in here:
            play.leave(name)
        elif what == "crash" and name in here and len(here) > 1:
            play.crash(name)
        elif what == "cut" and name in here:
            play.fleet.cut(name, draw.choice(("h", "e1", "e2")))
            play.run(draw.choice((0.5, 3.0)), rate=40)
            for broker in ("h", "e1", "e2"):
                play.fleet.mend(name, broker)
        elif what == "freeze" and name in here:
            play.fleet.freeze(name)
            play.run(draw.choice((0.5, 2.0)), rate=40)
            play.fleet.thaw(name)
        elif what == "edge":
            play.fleet.crash("e1")
            play.run(0.5, rate=40)
            play.fleet.start("e1")
        for gone in [each for each, c in play.consumers.items() if c.member.has_left]:
            play.crash(gone)
        play.run(draw.choice((0.2, 1.0, 2.0)), rate=40)
    if not any(not c.member.is_leaving for c in play.consumers.values()):
        play.join("last")
    play.run(20.0)
    verdict = play.verdict()
    assert verdict.holds, (seed, verdict)
    assert not play.gaps, (seed, play.gaps[:3])


def test_messages_of_a_client_that_is_no_member_are_refused() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0)
    client = play.fleet.client("stranger", "h")
    client.tell("h", msg.GroupBeat(GROUP, 1), msg.SliceReleased(GROUP, msg.SlicePlace(0, 1, None)))
    client.tell("h", msg.GroupLeave("none"))
    play.run(0.5)
    assert len(client.of("h", msg.GroupRefused)) == 3
    assert play.has("a") == [0, 1, 2, 3]


def test_what_may_have_been_given_stays_marked_through_changes_of_the_holder() -> None:
    play = GroupPlay(count=1, balancing="None")
    play.join("a")
    play.run(1.0)
    for _ in range(10):
        play.publish(0)
    play.run(0.05)
    assert len(play.given) == 10
    play.crash("a")
    play.join("b", work=10.0)
    play.run(5.0)
    assert play.has("b") == [0]
    play.leave("b")
    play.join("c")
    play.run(12.0)
    assert [each.item for each in play.given if each.is_redelivered and each.consumer.startswith("c")] != []
    play.check(is_exact=False)


@pytest.mark.parametrize("west", [False, True])
def test_a_slice_without_a_member_loses_nothing_when_its_edge_dies(west: bool) -> None:
    play = GroupPlay(count=2, west=west)
    play.join("a")
    play.run(1.0)
    play.run(1.0, rate=40)
    play.leave("a")
    play.run(1.0, rate=40)
    play.fleet.crash("e1")
    play.run(12.0, rate=40)
    play.fleet.start("e1")
    play.run(1.0, rate=40)
    play.join("b")
    play.check()
