"""The topics of a subscription: the values that it allows an attribute to have, if these can be listed.

A subscription to several topics is split into one for each; together they select exactly what it selects.
"""

from __future__ import annotations

from plimsoll.core.predicates.canonical_form import Predicate
from plimsoll.core.predicates.constraints import Exactly, OneOf, Value, sorted_values
from plimsoll.core.predicates.subscription import Subscription, conjunction


def topics_of(subscription: Subscription, attribute: str) -> tuple[Value, ...]:
    """The values that the attribute may have, in canonical order; empty if they are not a list."""
    constraint = dict(subscription.constraints).get(attribute)
    if isinstance(constraint, Exactly):
        return (constraint.value,)
    return tuple(sorted_values(constraint.values)) if isinstance(constraint, OneOf) else ()


def for_topic(subscription: Subscription, attribute: str, topic: Value) -> Subscription:
    """The part of a subscription that asks for one of its topics."""
    others = [each for each in subscription.predicates() if each.attribute != attribute]
    return conjunction([*others, Predicate(attribute, "=", topic)])
