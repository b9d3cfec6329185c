"""The library for applications: `Publisher` and `Subscriber`, synchronous or, in `plimsoll.client.aio`, with asyncio.

A thin shell around the client machine of `plimsoll.core`. It owns the links to brokers, reconnects them and follows
redirects without the application noticing. It hides nothing: a gap, a refusal or an unknown outcome reaches the caller.
"""

from plimsoll.client import errors
from plimsoll.client.connection import Connection
from plimsoll.client.group import Group, GroupSubscriber
from plimsoll.client.group_item import GroupItem
from plimsoll.client.publisher import Publisher
from plimsoll.client.receipts import Receipt, Summary
from plimsoll.client.security import Curve
from plimsoll.client.subscriber import Subscriber
from plimsoll.client.subscriptions import Subscription
from plimsoll.core.client import (
    Acknowledged,
    Address,
    Answered,
    Attached,
    ClientLimits,
    Delivery,
    Detached,
    Failed,
    Forgotten,
    GapNotice,
    Lapsed,
    SlicesChanged,
    SubscriptionRefused,
)
from plimsoll.core.protocol.messages import Policy

__all__ = [
    "Acknowledged",
    "Address",
    "Answered",
    "Attached",
    "ClientLimits",
    "Connection",
    "Curve",
    "Delivery",
    "Detached",
    "Failed",
    "Forgotten",
    "GapNotice",
    "Group",
    "GroupItem",
    "GroupSubscriber",
    "Lapsed",
    "Policy",
    "Publisher",
    "Receipt",
    "SlicesChanged",
    "Subscriber",
    "Subscription",
    "SubscriptionRefused",
    "Summary",
    "errors",
]
