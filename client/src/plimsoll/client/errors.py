"""All exceptions of the library. `ClientError` is the base; the built-in bases are those that callers expect."""

from __future__ import annotations

from plimsoll.core.client import (
    BufferFullError,
    ClientError,
    ClosedError,
    ListFullError,
    PublicationError,
    StalledError,
)
from plimsoll.core.client.events import Answered
from plimsoll.core.predicates import ParseError

__all__ = [
    "BufferFullError",
    "CallbackError",
    "ClientError",
    "ClosedError",
    "ConnectionFailedError",
    "ConnectionFileError",
    "FailedError",
    "ListFullError",
    "NotAcceptedError",
    "ParseError",
    "PublicationError",
    "ResourceLimitError",
    "SecurityError",
    "StalledError",
    "SubscriptionRefusedError",
    "WaitTimeoutError",
]


class SecurityError(ClientError, ValueError):
    """A key that cannot be used; names its source and the remedy."""


class ConnectionFileError(ClientError, ValueError):
    """A connection file that cannot be used; names the file, what is wrong with it, and the remedy."""


class ResourceLimitError(ClientError, OSError):
    """The system allows this process no more files or sockets; names the limit."""


class ConnectionFailedError(ClientError):
    """The connection's I/O has ended by a fault; the cause is attached."""


class WaitTimeoutError(ClientError, TimeoutError):
    """A wait has timed out; the awaited event may still happen."""


class SubscriptionRefusedError(ClientError, ValueError):
    """A broker will not serve this subscription; the subscriber's others are not affected."""


class FailedError(ClientError):
    """The end of a subscriber or publisher for good. `code`: `slow`, `conflict`, `incarnation`, `role`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class CallbackError(ClientError):
    """The application's callback has raised; its subscriber was closed. The cause is attached."""


class NotAcceptedError(ClientError):
    """Publications that were refused, or whose outcome is unknown. `answers` are those of them, in order."""

    def __init__(self, text: str, answers: tuple[Answered, ...]) -> None:
        super().__init__(text)
        self.answers = answers
