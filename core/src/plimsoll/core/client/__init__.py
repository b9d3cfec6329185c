"""The client machine: many logical publishers and subscribers on few links.

The machine recovers without the application where it can: it reopens links, follows redirects, and finds subscribers
another edge, where they go on from their token. It reports the rest as events: a gap, a refusal, an unknown outcome.
Nothing is repeated or reordered.
"""

from plimsoll.core.client.assigned_slices import SlicesChanged
from plimsoll.core.client.errors import (
    BufferFullError,
    ClientError,
    ClosedError,
    ListFullError,
    PublicationError,
    StalledError,
)
from plimsoll.core.client.events import (
    Acknowledged,
    Answered,
    Attached,
    Delivery,
    Detached,
    Failed,
    Forgotten,
    GapNotice,
    Lapsed,
    PublisherEvent,
    PublisherReady,
    Renumbered,
    SubscriberEvent,
    SubscriptionRefused,
)
from plimsoll.core.client.group_member import GroupEvent, GroupFailed, GroupMember
from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.client.machine import Client, TakenEvents
from plimsoll.core.client.publisher import ClientPublisher
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.client.slice_subscriber import HandedItem
from plimsoll.core.client.subscriber import ClientSubscriber

__all__ = [
    "Acknowledged",
    "Address",
    "Answered",
    "Attached",
    "BufferFullError",
    "Client",
    "ClientError",
    "ClientLimits",
    "ClientPublisher",
    "ClientSubscriber",
    "ClosedError",
    "Delivery",
    "Detached",
    "Failed",
    "Forgotten",
    "GapNotice",
    "GroupEvent",
    "GroupFailed",
    "GroupMember",
    "HandedItem",
    "Lapsed",
    "ListFullError",
    "PublicationError",
    "PublisherEvent",
    "PublisherPosition",
    "PublisherReady",
    "Renumbered",
    "SlicesChanged",
    "StalledError",
    "SubscriberEvent",
    "SubscriptionRefused",
    "TakenEvents",
]
