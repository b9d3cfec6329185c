"""Fair turns between clients: windows follow the waits for links, and nothing holds a client for ever."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.head.client_share import (
    DELAY_KEPT_SECONDS,
    FIRST_WINDOW,
    GROWTH_STEPS,
    LONG_WAIT_SECONDS,
    SILENT_SECONDS,
    SMALLEST_WINDOW,
    WINDOW_BYTES,
    ClientShare,
    ClientShares,
    LinkDelay,
)

LARGEST = 1024


@dataclass
class Link:
    key: str
    offered: int = 0
    acked: int = 0
    asked: int = 0

    def ask(self) -> None:
        self.asked += 1


class Desk:
    """One client that uses all its credit, and what it may send."""

    def __init__(self, *links: Link, largest: int = LARGEST) -> None:
        self.links = {link.key: link for link in links}
        self.shares = ClientShares(self.links)
        self.share, self.largest = ClientShare(), largest
        self.through = self.last_seq = self.position = 0
        self.now = 0.0

    def publish(self, *keys: str, count: int = 1, size: int = 100) -> None:
        for _ in range(count):
            self.position += 1
            self.last_seq += 1
            self.share.size += size
            self.share.published += 1
            for key in keys:
                self.links[key].offered = self.position
        self.share.needed_by.update(keys)

    def renew(self) -> int:
        """Ask for credit; returns the window, or 0 while some link holds it back."""
        if self.shares.must_wait(self.share, "p", self.now):
            return 0
        self.shares.renewed(self.share, self.now)
        window = self.share.renew(self.largest)
        self.through = max(self.through, self.last_seq + window)
        return window

    def acknowledge(self, key: str, through: int | None = None) -> list[str]:
        link = self.links[key]
        link.acked = link.offered if through is None else through
        return list(self.shares.acknowledged(link, self.now))

    def cycle(self, seconds: float, steps: int = 1) -> int:
        """Use a window for `e`, wait this long for `e`, which moves in steps, and get the next one."""
        before = self.links["e"].acked
        self.publish("e", count=self.through - self.last_seq)
        if not self.renew():
            self.share.hold()
            for _ in range(steps - 1):
                self.now += seconds / steps
                self.acknowledge("e", before)
            self.now += seconds / steps
            self.acknowledge("e")
            return self.renew()
        return self.share.granted


# -- the window


def test_a_window_doubles_until_its_publisher_has_been_held_and_then_grows_by_small_steps():
    desk = Desk(Link("e"))
    assert desk.renew() == FIRST_WINDOW
    windows = []
    for _ in range(3):
        desk.publish("e", count=desk.through - desk.last_seq)
        desk.acknowledge("e")
        windows.append(desk.renew())
    assert windows == [256, 512, 1024]
    desk = Desk(Link("e"))
    desk.renew()
    assert desk.cycle(0.01) == 256, "for the first there is nothing to wait for"
    assert desk.cycle(0.01) == 256 + LARGEST // GROWTH_STEPS
    assert desk.cycle(0.01) == 256 + 2 * LARGEST // GROWTH_STEPS


@pytest.mark.parametrize(("seconds", "share"), [(0.021, 0.5), (0.04, 0.5), (0.08, 0.25), (10.0, 0.0)])
def test_a_long_wait_cuts_it_by_half_or_more(seconds: float, share: float):
    desk = Desk(Link("e"))
    desk.share.window, desk.share.was_held = LARGEST, True
    desk.renew()
    for _ in range(3):
        desk.cycle(0.0)  # so that the link is known to take no time
    assert desk.cycle(seconds, steps=2000) == max(int(LARGEST * share), SMALLEST_WINDOW)


def test_a_link_that_stands_still_cuts_it_to_the_first_and_one_that_crawls_to_the_smallest():
    """What stands still has something else to do: less under way to it would make nothing faster."""
    desk = Desk(Link("e"))
    desk.share.window, desk.share.was_held = LARGEST, True
    desk.renew()
    for _ in range(3):
        desk.cycle(0.0)
    for steps in (1, 2, 5):  # of a tenth of a second or more
        assert desk.cycle(0.5, steps) == FIRST_WINDOW
        desk.cycle(0.0)
    assert desk.cycle(0.5, steps=100) == SMALLEST_WINDOW
    desk.cycle(0.0)
    assert desk.cycle(0.5) < FIRST_WINDOW, "a smaller window is not raised"


def test_a_wait_of_just_the_bound_cuts_nothing():
    desk = Desk(Link("e"))
    desk.renew()
    desk.cycle(0.0)
    assert desk.cycle(LONG_WAIT_SECONDS) > FIRST_WINDOW


def test_it_is_bounded_by_what_is_largest_and_by_bytes():
    assert Desk(Link("e"), largest=10).renew() == 10
    desk = Desk(Link("e"))
    desk.renew()
    desk.publish("e", count=64, size=100_000)
    assert desk.renew() == WINDOW_BYTES // 100_000
    desk.publish("e", count=1, size=2 * WINDOW_BYTES)
    desk.acknowledge("e")
    assert desk.renew() == 1


def test_asking_again_without_having_published_changes_nothing():
    desk = Desk(Link("e"))
    assert [desk.renew() for _ in range(5)] == [FIRST_WINDOW] * 5


def test_a_wait_ends_with_the_acknowledgement_and_not_with_the_question():
    """Else a publisher that was away for a while would come back to a small window."""
    desk = Desk(Link("e"))
    desk.renew()
    desk.cycle(0.0)
    desk.publish("e", count=desk.through - desk.last_seq)
    assert desk.renew() == 0
    desk.acknowledge("e")
    desk.now += 100.0
    assert desk.renew() == 512


def test_what_a_link_takes_without_a_backlog_is_no_reason_to_cut():
    """A neighbour far away acknowledges after its round trip, however little is under way."""
    desk = Desk(Link("e"))
    desk.renew()
    desk.cycle(0.0)
    windows = [desk.cycle(0.2) for _ in range(101)]
    assert windows == sorted(windows)
    assert windows[-1] == LARGEST
    for excess, share in ((0.5, 1), (4.01, 4)):
        desk.cycle(0.0)  # nothing was under way at the last renewal, so it waits for nothing
        assert desk.cycle(0.2 + excess * LONG_WAIT_SECONDS) == pytest.approx(LARGEST / share, abs=3)


def test_the_shortest_delay_of_a_link_is_forgotten_in_time():
    delay = LinkDelay()
    assert delay.shortest_seconds == 0.0
    for i, seconds in enumerate((0.3, 0.1, 0.2)):
        delay.ask(i, float(i))
        delay.ask(i + 10, i + 0.01)
        delay.acknowledged(i - 1, i + 0.02)
        delay.acknowledged(i, i + seconds)
        assert delay.shortest_seconds == pytest.approx(min((0.3, 0.1, 0.2)[: i + 1]))
    for period in (1, 2):
        delay.ask(100, at := 3.0 + period * DELAY_KEPT_SECONDS)
        delay.acknowledged(100, at + 0.5)
        assert delay.shortest_seconds == pytest.approx(0.1 if period == 1 else 0.5)


# -- which links hold it back


def test_links_that_needed_nothing_hold_nothing_back():
    desk = Desk(Link("e"), Link("slow", offered=10**6))
    desk.renew()
    for _ in range(5):
        desk.publish("e", count=64)
        desk.acknowledge("e")
        assert desk.renew()
    for _ in range(5):
        desk.publish(count=64)
        assert desk.renew(), "no link needs it"


def test_each_link_that_needed_it_must_have_what_was_published_before_the_last_credit():
    one, two = Link("one"), Link("two")
    desk = Desk(one, two)
    desk.renew()
    desk.publish("one", count=60)
    desk.publish("two", count=10)
    assert desk.renew() == 256
    assert (one.asked, two.asked) == (1, 1), "their acknowledgements are asked for at once"
    desk.publish("one", "two", count=200)
    assert desk.renew() == 0
    assert desk.acknowledge("one", 59) == []
    assert desk.acknowledge("one", 60) == ["p"]
    assert desk.renew() == 0, "the other one has still to acknowledge"
    assert desk.acknowledge("one", 300) == []
    assert desk.acknowledge("two", 70) == ["p"]
    assert desk.renew() > 0


def test_waiting_twice_is_waiting_once():
    desk = Desk(Link("e"))
    desk.renew()
    desk.publish("e", count=64)
    desk.renew()
    desk.publish("e", count=200)
    assert [desk.renew() for _ in range(50)] == [0] * 50
    assert desk.acknowledge("e") == ["p"]


def test_an_acknowledgement_lets_those_go_on_that_it_covers_and_no_other():
    link = Link("e")
    shares = ClientShares({"e": link})
    waiting = {f"p{i}": ClientShare(needed_by={"e"}) for i in range(1, 101)}
    for i, each in enumerate(waiting.values(), 1):
        link.offered = i
        shares.renewed(each, 0.0)
    assert all(shares.must_wait(share, name, 0.0) for name, share in waiting.items())
    link.acked = 3
    assert list(shares.acknowledged(link, 0.1)) == ["p1", "p2", "p3"]
    link.acked = 4
    assert list(shares.acknowledged(link, 0.2)) == ["p4"]
    assert list(shares.lost("e", 0.3)) == [f"p{i}" for i in range(5, 101)]
    assert shares.wake_at() == math.inf


# -- links that are gone or silent


def held(desk: Desk) -> None:
    desk.renew()
    desk.publish("e", count=64)
    desk.renew()
    desk.publish("e", count=desk.through - desk.last_seq)
    assert desk.renew() == 0


def test_a_link_that_is_lost_lets_go():
    desk = Desk(Link("e"))
    held(desk)
    del desk.links["e"]
    assert list(desk.shares.lost("e", desk.now)) == ["p"]
    assert desk.renew() > 0
    assert list(desk.shares.lost("e", desk.now)) == []


def test_a_silent_link_lets_go_after_a_second_and_holds_again_once_it_acknowledges():
    desk = Desk(Link("e"))
    held(desk)
    assert desk.shares.wake_at() == SILENT_SECONDS
    assert list(desk.shares.expire(0.999)) == []
    desk.now = 0.9
    assert desk.acknowledge("e", 1) == [], "it moves: the second starts again"
    assert desk.shares.wake_at() == 0.9 + SILENT_SECONDS
    assert list(desk.shares.expire(1.9)) == ["p"]
    desk.now = 1.9
    for _ in range(10):
        desk.publish("e", count=64)
        assert desk.renew() > 0, "from here on it holds nothing back"
    assert desk.shares.wake_at() == math.inf
    desk.acknowledge("e", 2)
    desk.publish("e", count=64)
    assert desk.renew() == 0


def test_links_that_are_silent_together_hold_for_one_second_in_all():
    links = [Link(f"e{i}") for i in range(20)]
    desk = Desk(*links)
    keys = [link.key for link in links]
    desk.renew()
    desk.publish(*keys, count=64)
    desk.renew()
    desk.publish(*keys, count=200)
    assert desk.renew() == 0
    desk.now = desk.shares.wake_at()
    assert desk.now == SILENT_SECONDS
    assert list(desk.shares.expire(desk.now)) == ["p"]
    assert desk.renew() > 0


def test_a_silence_cuts_the_window_to_the_first():
    desk = Desk(Link("e"))
    held(desk)
    desk.now = 1.0
    list(desk.shares.expire(1.0))
    assert desk.renew() == FIRST_WINDOW


def test_a_client_under_another_name_inherits_what_links_have_still_to_acknowledge():
    desk = Desk(Link("e"))
    held(desk)
    other = ClientShare(window=512, points={"e": 3})
    other.inherit(desk.share)
    desk.share = other
    assert desk.renew() == 0
    desk.acknowledge("e")
    assert desk.renew() > 0
    assert other.window <= 512


# -- no client is stuck

KEYS = ("a", "b", "n")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 2), st.sets(st.sampled_from(KEYS)), st.integers(1, 200)),
        st.tuples(st.just("ack"), st.sampled_from(KEYS), st.floats(0.0, 1.0), st.just(0)),
        st.tuples(st.just("lose"), st.sampled_from(KEYS), st.just(0), st.just(0)),
        st.tuples(st.just("again"), st.sampled_from(KEYS), st.just(0), st.just(0)),
        st.tuples(st.just("inherit"), st.integers(0, 2), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("pass"), st.floats(0.0, 0.6), st.just(0), st.just(0)),
    ),
    max_size=120,
)


@settings(max_examples=300)
@given(EVENTS)
def test_no_order_of_links_that_come_stall_and_go_holds_a_client_for_more_than_a_second(events: list[tuple]):
    """`wake_at` is the only clock: between events nothing is looked at without it."""
    links: dict[str, Link] = {key: Link(key) for key in KEYS}
    kept: dict[str, Link] = {}
    shares = ClientShares(links)
    desks = [ClientShare() for _ in range(3)]
    seqs, through = [0] * 3, [0] * 3
    now, position = 0.0, 0

    def look(names: object) -> None:
        for i in {int(name) for name in names}:  # type: ignore[attr-defined]  # an iterable of names
            share = desks[i]
            if through[i] - seqs[i] > share.granted // 2 or shares.must_wait(share, str(i), now):
                continue
            shares.renewed(share, now)
            window = share.renew(LARGEST)
            assert 1 <= window <= LARGEST
            assert len(share.points) <= len(KEYS)
            through[i] = max(through[i], seqs[i] + window)

    def let_pass(until: float) -> None:
        nonlocal now
        while (at := shares.wake_at()) <= until:
            assert at >= now, "a wake-up in the past would spin"
            now = at
            look(shares.expire(now))
        now = until

    look("012")
    for kind, which, extra, number in events:
        if kind == "publish":
            count = min(number, through[which] - seqs[which])
            for _ in range(count):
                position += 1
                seqs[which] += 1
                desks[which].size += 100
                desks[which].published += 1
                for key in extra:
                    (links.get(key) or kept[key]).offered = position
            if count:
                desks[which].needed_by.update(extra)
            look([which])
        elif kind == "ack" and which in links:
            link = links[which]
            link.acked += int((link.offered - link.acked) * extra + 0.999)
            look(shares.acknowledged(link, now))
        elif kind == "lose" and which in links:
            kept[which] = links.pop(which)
            look(shares.lost(which, now))
        elif kind == "again" and which in kept:
            links[which] = kept.pop(which)
        elif kind == "inherit":
            desks[which].inherit(desks[extra])
            look([which])
        elif kind == "pass":
            let_pass(now + which)
    # From here on no link acknowledges anything: together they hold a publisher for a second.
    for _ in range(3):
        let_pass(now + SILENT_SECONDS)
        assert all(through[i] > seqs[i] for i in range(3)), "one is stuck"
        for i in range(3):
            position += through[i] - seqs[i]
            seqs[i] = through[i]
            for link in links.values():
                link.offered = position
            desks[i].needed_by.update(KEYS)
            look([i])
