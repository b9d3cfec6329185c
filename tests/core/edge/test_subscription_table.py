"""What an edge holds: taken, installed, covered, and nothing left over at the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from plimsoll.core.config import BrokerLimits
from plimsoll.core.edge.attachment import EdgeAttachment
from plimsoll.core.edge.subscription_table import TEXT_CHARACTERS, SubscriptionTable, may_grow
from plimsoll.core.predicates import parse
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits

LINK = Link(b"c", local=Info("e", "edge", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0)
WIDE, NARROW = "[class,=,'STOCK']", "[class,=,'STOCK'],[n,>,3]"


def holdings(**limits: Any) -> SubscriptionTable:
    return SubscriptionTable("e", BrokerLimits(**limits))


def attachment(name: str = "s") -> EdgeAttachment:
    return EdgeAttachment(name, 1, LINK, (1, 2), 1, [])


def installed(held: SubscriptionTable, *texts: str, name: str = "s") -> EdgeAttachment:
    made = attachment(name)
    taken = [held.take(made, msg.SubscriptionItem(i, text)) for i, text in enumerate(texts, 1)]
    held.confirm(made)
    held.install(made, taken)
    made.is_covered = True
    held.step(taken, [])
    return made


def matched(held: SubscriptionTable, **attributes: Any) -> list[EdgeAttachment]:
    return [held.holders[number] for number in held.index.match(attributes)]


def test_what_is_taken_is_counted_and_not_matched_before_it_is_installed():
    held, one = holdings(), attachment()
    taken = [held.take(one, msg.SubscriptionItem(1, WIDE)), held.take(one, msg.SubscriptionItem(2, NARROW))]
    assert len(held) == 2
    assert matched(held, **{"class": "STOCK"}) == []
    assert [(number, s) for s, number in one.subscriptions.values()] == taken
    held.install(one, taken)
    assert len(held) == 2
    assert matched(held, **{"class": "STOCK"}) == [one]
    assert held.with_several == {one}


def test_what_was_only_taken_leaves_nothing_behind():
    held, one = holdings(max_subscriptions=1), attachment()
    held.take(one, msg.SubscriptionItem(1, WIDE))
    with pytest.raises(ValueError, match="has its 1 subscriptions"):
        held.take(attachment("t"), msg.SubscriptionItem(1, WIDE))
    held.uninstall(one)
    held.uninstall(one)
    assert len(held) == 0
    assert one.subscriptions == {}
    assert held.uncover(one) == []


def test_what_is_uninstalled_is_covered_until_it_is_taken_out():
    held = holdings()
    one = installed(held, WIDE, NARROW)
    held.uninstall(one)
    assert held.with_several == set()
    assert held.tidy() == []
    assert len(held) == 0
    assert held.holders == {}
    assert len(held.cover) == 1
    numbers = held.uncover(one)
    assert sorted(numbers) == [1, 2]
    assert not one.is_covered
    held.retire(numbers)
    (cover,) = held.tidy()
    assert (cover.seq, cover.removes) == (2, [1])
    assert held.cover.member_count == 0
    assert held.uncover(one) == []


def test_a_list_that_is_replaced_is_matched_until_its_successor_is():
    held = holdings()
    one = installed(held, WIDE)
    assert one.arriving == {}
    taken = [held.take(one, msg.SubscriptionItem(1, NARROW), {1})]
    held.install(one, taken)
    assert matched(held, **{"class": "STOCK", "n": 9}) == [one, one], "by both, until the change is complete"
    with pytest.raises(ValueError, match="1 is there already"):
        held.take(one, msg.SubscriptionItem(1, NARROW), {1})
    assert held.confirm(one, [1]) == [1]
    assert list(one.subscriptions) == [1]
    assert [(number, s) for s, number in one.subscriptions.values()] == taken
    assert one.arriving == {}


def test_a_text_that_grows_too_long_in_canonical_form_is_refused():
    held = holdings()
    with pytest.raises(ValueError, match="more than 65536 characters"):
        held.take(attachment("t"), msg.SubscriptionItem(1, "[a,=,'" + "\x01" * 60_000 + "']"))
    assert len(held) == 0


GROWING = [
    "[a,in,(9e15,8e15,-1E-4)]", "[b,=,'it']", "['c d',=,\"'\"]", "[d,>,1e15]", "[e,=,'\x01']", "[f,=,'\\u{0}']",
    "[g,!=,'\\n']", "[h,in,('x','y')]",
]  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from(GROWING), min_size=1, max_size=200), st.integers(0, 60_000))
def test_a_text_that_is_said_not_to_grow_fits_in_canonical_form(pieces: list[str], more: int):
    """Writing a subscription out to see how long it is takes as long as reading it."""
    text = ",".join([f"[long,=,'{'x' * more}']", *pieces])
    if len(text) <= TEXT_CHARACTERS and not may_grow(text):
        assert len(str(parse(text))) <= TEXT_CHARACTERS


def test_of_what_is_usual_no_text_is_written_out_to_see_how_long_it_is():
    values = ",".join(map(str, range(2_040)))
    assert not may_grow(f"[n,in,({values})]")
    assert not may_grow("[n,=,'" + "x" * 30_000 + "']")
    assert may_grow('[n,=,"' + "'" * 10_000 + '"]')
    assert may_grow("[n,=,'" + "\x01" * 7_000 + "']")
    assert may_grow("[n,=,'" + "x" * 60_000 + "']")


@pytest.mark.parametrize("is_installed", [False, True])
def test_what_is_put_back_was_never_taken(is_installed: bool):
    held, one = holdings(), attachment()
    if is_installed:
        held.install(one, [held.take(one, msg.SubscriptionItem(1, WIDE))])
    taken = [held.take(one, msg.SubscriptionItem(i, NARROW)) for i in (2, 3)]
    held.put_back(one, taken)
    assert len(held) == len(one.subscriptions) == len(one.arriving) == is_installed
    held.uninstall(one)
    held.tidy()
    assert len(held) == 0
    again = held.take(attachment("t"), msg.SubscriptionItem(2, NARROW))
    assert again not in taken, "a number is never used again"


def test_some_of_a_list_may_go_whether_it_is_installed_or_not():
    held, dark = holdings(), attachment("t")
    one = installed(held, WIDE, NARROW)
    held.take(dark, msg.SubscriptionItem(1, WIDE))
    held.take(dark, msg.SubscriptionItem(2, NARROW))
    held.confirm(dark)
    assert held.remove(one, [2, 7]) == [2]
    assert held.remove(dark, [1]) == [3]
    assert len(held) == 2
    assert matched(held, **{"class": "STOCK", "n": 9}) == [one]


def test_nothing_is_delivered_for_what_is_removed_though_the_index_gives_it_up_later():
    held = holdings()
    one = installed(held, WIDE, *(f"[class,=,'STOCK'],[n,=,{i}]" for i in range(200)))
    assert len(held.remove(one, range(2, 202))) == 200
    assert len(held.index) > 1
    for n in range(200):
        assert [each for each in matched(held, **{"class": "STOCK", "n": n}) if each.out is one.out] == [one]
    while not held.is_tidy:
        held.tidy()
    assert set(held.holders.values()) == {one}


def test_every_step_has_a_number_and_a_shrinking_that_changes_nothing_has_none():
    held = holdings()
    installed(held, WIDE)
    two = installed(held, WIDE, name="t")
    (step,) = held.step([], [])
    assert (step.seq, step.adds, step.removes) == (3, [], [])
    held.retire(held.uncover(two))
    assert held.tidy() == []
    assert held.seq == 3
    (whole,) = held.whole()
    assert (whole.seq, [item.text for item in whole.adds]) == (1, [WIDE])
    (after,) = held.step([], [])
    assert after.seq == 2


def item(number: int, seconds: Any, text: str = WIDE) -> msg.SubscriptionItem:
    return msg.SubscriptionItem(number, text, {} if seconds is None else {"latency_seconds": seconds})


def test_the_least_latency_that_its_subscriptions_require_is_an_attachments():
    held, one = holdings(), attachment()
    taken = [held.take(one, item(i, seconds)) for i, seconds in enumerate((None, 0.5, 0.2, 0.9), 1)]
    held.confirm(one)
    held.install(one, taken)
    one.is_covered = True
    assert one.required_seconds == 0.2
    held.remove(one, [3])
    assert one.required_seconds == 0.5
    held.remove(one, [1, 2, 4])
    assert one.required_seconds == 0.0


def test_a_latency_that_is_taken_back_requires_nothing():
    held, one = holdings(), attachment()
    taken = [held.take(one, item(1, 0.2))]
    held.put_back(one, taken)
    assert one.required_seconds == 0.0
    held.take(one, item(1, 0.3))
    held.confirm(one)
    held.take(one, item(1, 0.7), leaving=[1])
    assert one.required_seconds == 0.3, "until the change is complete both are asked for"
    held.confirm(one, leaving=[1])
    assert one.required_seconds == 0.7


@pytest.mark.parametrize("seconds", [0, -0.1, "fast", True])
def test_a_latency_out_of_bounds_is_refused_and_nothing_is_taken(seconds: Any):
    held, one = holdings(), attachment()
    with pytest.raises(ValueError, match="latency_seconds"):
        held.take(one, item(1, seconds))
    assert (len(held), one.subscriptions, one.required_seconds) == (0, {}, 0.0)
