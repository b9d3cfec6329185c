"""What the client machine raises at the application; what happens later comes as events instead."""

from __future__ import annotations

from plimsoll.core.printable import printable_lines


class ClientError(Exception):
    """Base of all that is raised here. Its text may quote what others have said, so it is printable."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class PublicationError(ClientError, ValueError):
    """A publication that no broker would take; nothing was sent. `code` is a name of docs/protocol.md."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class ListFullError(ClientError, ValueError):
    """The subscriptions of a subscriber would no longer fit into one message; this one was not taken."""


class BufferFullError(ClientError):
    """The publisher's buffer is full of unanswered publications; wait for answers."""


class ClosedError(ClientError):
    """The publisher or subscriber is closed, or has failed; the text says why."""


class StalledError(ClientError):
    """Publications wait, and none has been answered for `ClientLimits.stall_seconds`; this one was not taken.

    Those that wait are sent once a head answers, and answered then; publish again later.
    """
