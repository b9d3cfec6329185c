from __future__ import annotations

from plimsoll.client.subscriptions import SubscriptionHandles
from plimsoll.core.client import Acknowledged, Attached, Forgotten, Lapsed, SubscriptionRefused


def test_acknowledgements_name_heads_that_follow_later():
    known = SubscriptionHandles()
    first, second = known.add(1, "[n,>,1]"), known.add(2, "[n,>,2]")
    assert repr(first) == "Subscription(1, '[n,>,1]', asked for)"
    known.take(Acknowledged((1, 7), "h", ("far",)))
    assert (first.acknowledged, first.unreached, second.acknowledged) == (True, ("far",), False)
    known.take(Acknowledged((1, 2), "h", ()))
    assert (first.unreached, second.is_settled) == ((), True)


def test_a_refused_one_is_settled_and_not_acknowledged():
    known = SubscriptionHandles()
    subscription = known.add(1, "[n,>,1]")
    known.take(SubscriptionRefused(1, "too many"))
    known.take(SubscriptionRefused(9, "of another subscriber"))
    assert (subscription.acknowledged, subscription.is_settled, subscription.refused) == (False, True, "too many")
    assert "refused: too many" in repr(subscription)


def test_withdrawn_ones_are_dropped():
    known = SubscriptionHandles()
    subscription = known.add(1, "[n,>,1]")
    known.take(Forgotten((1, 5)))
    assert subscription.is_withdrawn
    known.take(Acknowledged((1,), "h", ()))
    assert not subscription.acknowledged


def test_a_lapse_voids_acknowledgements_until_the_next():
    known = SubscriptionHandles()
    subscription = known.add(1, "[n,>,1]")
    known.take(Acknowledged((1,), "h", ()))
    known.take(Lapsed())
    known.take(Attached("e", "h", True))
    assert not subscription.acknowledged
    known.take(Acknowledged((1,), "h", ()))
    assert subscription.acknowledged
