"""The position of a publisher: what a later life of its process needs to go on without repeating a publication."""

from __future__ import annotations

from typing import NamedTuple


class PublisherPosition(NamedTuple):
    """All publications up to `number` are answered; the last of them had the sequence number `seq` of `incarnation`.

    `head` and `epoch`: the life of the head that had opened the publisher.
    """

    incarnation: int
    number: int
    seq: int
    head: str
    epoch: int
