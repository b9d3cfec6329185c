"""Bounds of memory and of waiting in a client. Durations are in seconds, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.transport.link import LinkLimits


@dataclass(frozen=True, slots=True)
class Address:
    """A head to begin with. `public_key`: its CURVE key in Z85, empty on plain links."""

    endpoint: str
    public_key: str = ""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """`max_publication_bytes` is below what brokers take, so that a publication is refused here and not on its way.

    A link to an edge has `attach_seconds` to open. A broker that is there has `answer_seconds` to answer: a crowd that
    comes back at once is served one by one, and asking again would only make it longer.
    """

    max_publication_bytes: int = 256_000
    max_list_bytes: int = 1_000_000
    """Of the subscriptions of one subscriber: RESUME and ATTACH carry them all, in one frame of at most 1 MiB."""
    max_frame_bytes: int = 2 * 1024 * 1024
    publisher_buffer_bytes: int = 8 * 1024 * 1024
    queue_records: int = 8192
    queue_bytes: int = 8 * 1024 * 1024
    slice_cache_records: int = 4096
    slice_cache_bytes: int = 1024 * 1024
    """Of a slice that goes to another consumer: a larger cache is not sent, and the slice goes on from the log."""
    backoff_seconds: float = 0.1
    backoff_max_seconds: float = 5.0
    attach_seconds: float = 5.0
    answer_seconds: float = 30.0
    failover_seconds: float = 15.0
    stall_seconds: float = 60.0
    """While publications wait and none has been answered for this long, a publisher takes no more."""
    move_seconds: float = 5.0
    """How long a publisher that has left one head waits for the other to open it; then it goes back."""
    memory_seconds: float = 120.0
    """A publisher that was away for longer cannot know whether the head has forgotten it, so it repeats nothing."""
    idle_seconds: float = 1.0
    stream_seconds: float = 30.0
    """For this long only edges of the head that the token names are asked for: no other can go on without a gap."""
    away_seconds: float = 2.0
    """An edge that cannot be connected to for this long is left; one that is only silent, after `dead_seconds`."""
    link: LinkLimits = field(default_factory=lambda: LinkLimits(dead_seconds=5.0))
