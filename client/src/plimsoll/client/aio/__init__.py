"""The asyncio twins of `plimsoll.client`: the same names with `Async` before them, the same files, the same meaning.

Nothing here starts a thread: a connection is served by the event loop that it was made in.
"""

from plimsoll.client.aio.connection import AsyncConnection
from plimsoll.client.aio.group import AsyncGroup, AsyncGroupSubscriber
from plimsoll.client.aio.publisher import AsyncPublisher, AsyncReceipt
from plimsoll.client.aio.subscriber import AsyncSubscriber

__all__ = [
    "AsyncConnection",
    "AsyncGroup",
    "AsyncGroupSubscriber",
    "AsyncPublisher",
    "AsyncReceipt",
    "AsyncSubscriber",
]
