"""The client machine: many logical publishers and subscribers on few links.

Applications are disturbed by nothing that can be mended here: links are opened again, subscribers look for another
edge and go on from their token, redirects are followed. What cannot be mended is told: a gap, a refusal, an unknown
outcome. Nothing is repeated and nothing overtakes.
"""

from plimsoll.core.client.errors import BufferFullError, ClientError, ClosedError, PublicationError
from plimsoll.core.client.events import (
    Acknowledged,
    Answered,
    Attached,
    Delivery,
    Detached,
    Event,
    Failed,
    Forgotten,
    GapNotice,
    Lapsed,
    Opened,
    PublisherEvent,
    Renumbered,
    SubscriberEvent,
    SubscriptionRefused,
)
from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.client.machine import Client
from plimsoll.core.client.publisher import Publisher
from plimsoll.core.client.subscriber import Subscriber

__all__ = [
    "Acknowledged",
    "Address",
    "Answered",
    "Attached",
    "BufferFullError",
    "Client",
    "ClientError",
    "ClientLimits",
    "ClosedError",
    "Delivery",
    "Detached",
    "Event",
    "Failed",
    "Forgotten",
    "GapNotice",
    "Lapsed",
    "Opened",
    "PublicationError",
    "Publisher",
    "PublisherEvent",
    "Renumbered",
    "Subscriber",
    "SubscriberEvent",
    "SubscriptionRefused",
]
