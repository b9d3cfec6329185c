"""Which results of channels an identity may get: refusals of subscriptions, and those that get no results at all.

An identity may be granted some channels only. Its subscriptions that name channels must list them, so that each can be
judged. One that names none, as `[severity,>,3]`, might match results as well, and no operator asks for an attribute to
be absent. So it is taken, and gets every publication that it matches but those with a channel's name in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.predicates import Exactly, OneOf, Subscription
from plimsoll.core.protocol.wire import Scalar
from plimsoll.core.spec.types.channel import CHANNEL_ATTRIBUTE


def channel_refusal(grant: ClientPermissions, subscription: Subscription) -> str:
    """Why this identity may not have a subscription, and what to do; empty if it may."""
    if grant.channels is None:
        return ""
    mine = ", ".join(grant.channels) if grant.channels else "no channel"
    for name, constraint in subscription.constraints:
        if name != CHANNEL_ATTRIBUTE:
            continue
        if isinstance(constraint, Exactly):
            asked: Iterable[object] = (constraint.value,)
        elif isinstance(constraint, OneOf):
            asked = sorted(constraint.values, key=str)
        else:
            how = f"name each channel, as in [{CHANNEL_ATTRIBUTE},=,'NAME']"
            return f"not permitted: {how}; {grant.identity} may subscribe to {mine}"
        foreign = [str(each) for each in asked if each not in grant.channels]
        if foreign:
            found = f"{grant.identity} may not subscribe to the channel {foreign[0]}"
            return f"not permitted: {found}; it may subscribe to {mine}"
    return ""


class ClosedToResults:
    """The numbers of subscriptions that get no results."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def judge(self, grant: ClientPermissions, number: int, subscription: Subscription) -> None:
        """Take note of one under the grant of its link."""
        if grant.channels is None or any(name == CHANNEL_ATTRIBUTE for name, _ in subscription.constraints):
            self.numbers.discard(number)
        else:
            self.numbers.add(number)

    def open_to(self, numbers: list[int], attributes: Mapping[str, Scalar]) -> list[int]:
        """Those of the subscriptions that a publication matches which get it."""
        if CHANNEL_ATTRIBUTE not in attributes:
            return numbers
        return [number for number in numbers if number not in self.numbers]
