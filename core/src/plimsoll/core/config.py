"""The configuration of one broker process: its identity, its peers, and its limits.

The local runtime and the operator both derive these values from the custom resources; a broker reads nothing else.
Durations are in seconds, sizes in bytes, rates per second. `time_factor` scales durations and rates together, once,
when a machine is built from the configuration.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["head", "edge"]
SlowPolicy = Literal["block", "drop-oldest", "disconnect"]


COMPILE_MIN_MEMORY_BYTES = 256 * 1024 * 1024
"""The compiled matching loop and its compiler take 120 MB: with less memory than this, matching stays in Python."""

PROCESS_BYTES = 45 * 1024 * 1024
"""Resident before the first publication, with 50 connections: measured by `python -m bench.broker.memory`."""

COMPILER_BYTES = 124 * 1024 * 1024
"""What the compiled loop of matching brings, measured in the same way."""

LINKS_BYTES = 16 * 1024 * 1024
"""Kept free beside a log for what is under way on links: each has at most its window, and few have all of it."""


class HardwareEmulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emulated hardware: a publication occupies the broker for `base + per_subscription * n` seconds.

    It is a virtual finish time, never a sleep: work queues up as it would on the real hardware.
    """

    base_seconds: float = 0.0
    per_subscription_seconds: float = 0.0


class BrokerHardware(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Capacity of one broker. `None` means that the resource is not limited by Plimsoll."""

    output_bytes_per_second: float | None = None
    output_burst_seconds: float = 0.05
    input_bytes_per_second: float | None = None
    memory_bytes: int = 256 * 1024 * 1024
    cpu_millicores: int = 1000
    emulation: HardwareEmulation | None = None

    @property
    def may_compile(self) -> bool:
        """Whether there is memory for the compiled loop of matching."""
        return self.memory_bytes >= COMPILE_MIN_MEMORY_BYTES


class BrokerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of memory and of waiting. Every queue of a broker is bounded by one of these.

    Of one identity: `max_consumer_groups` that it has made and `max_group_slices` of them together, `max_connections`.
    """

    max_frame_bytes: int = 1024 * 1024
    max_publication_bytes: int = 256 * 1024
    window_bytes: int = 1024 * 1024
    window_frames: int = 1024
    log_bytes: int = 64 * 1024 * 1024
    inbox_bytes: int = 8 * 1024 * 1024
    link_buffer_bytes: int = 256 * 1024
    queue_bytes: int = 1024 * 1024
    slow_policy: SlowPolicy = "block"
    block_seconds: float = 30.0
    max_publishers: int = 20_000
    max_subscribers: int = 100_000
    max_subscriptions: int = 1_000_000
    max_subscriptions_per_subscriber: int = 10_000
    publisher_window: int = 1024
    publisher_rate_per_second: float | None = None
    publisher_bytes_per_second: float | None = None
    confirm_seconds: float = 10.0
    lease_seconds: float = 30.0
    longest_lease_seconds: float = 7 * 86_400.0
    max_durable_subscribers: int = 1_000
    max_held_back_bytes: int = 2**40
    max_consumer_groups: int = 32
    max_group_slices: int = 20_000
    max_connections: int = 2_000
    heartbeat_seconds: float = 1.0
    dead_seconds: float = 10.0
    progress_seconds: float = 0.25
    report_seconds: float = 1.0


class PeerBroker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another broker: its name, where its two sockets listen, and its CURVE public key (Z85) on encrypted links."""

    name: str
    data: str = ""
    control: str = ""
    public_key: str = ""


class LinkSecurity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CURVE for every socket, unless `plain` is set, which status shows.

    `secret_key_file` holds this broker's Z85 secret key. `authorized_keys_file` holds one `Z85-public-key role name`
    per line, for clients with what they may do, and is read again when it changes; a key that is not in it is refused.
    """

    plain: bool = False
    secret_key_file: str = ""
    authorized_keys_file: str = ""


class DeclaredGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A consumer group of the custom resources: the cluster whose head serves it, and what it is.

    `head`: of that cluster, to which the heads of other clusters take what their clients say of the group.
    """

    cluster: str
    name: str
    filter: str
    count: int
    function: str
    by: str = ""
    low: float = 0.0
    high: float = 0.0
    unassigned: str = "Drop"
    balancing: str = "Rates"
    in_session: str = "Deliver"
    head: str = ""


class DiskLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a head keeps its log. With `Always` nothing leaves it before it is synced. docs/durability.md.

    `may_lag`: not while a standby has it. `known_epoch`, `known_position`: as far as the log is known to have been
    safe, by what is kept elsewhere; it may have been safe farther.
    """

    directory: str
    size_bytes: int
    sync: Literal["Always", "Interval"] = "Always"
    interval_seconds: float = 0.1
    may_lag: bool = False
    known_epoch: int = 0
    known_position: int = 0


class HeadStandby(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The other of the two processes of a head. docs/durability.md.

    `term`: in which this process leads; one that `follows` gets it when it is promoted. One that `waits` is told by a
    mediator which of the two it is, as where processes start again by themselves. `head`: where the one that leads is
    reached. `control`: where this process listens for a mediator, whatever it is.
    """

    term: int = 0
    follows: bool = False
    waits: bool = False
    head: PeerBroker
    control: str


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of one broker process. Heads name their edges and neighbours; an edge names its head.

    Of two neighbouring heads, the one whose name sorts first connects to the other.
    """

    name: str
    role: Role
    cluster: str
    fleet: str = "default"
    data: str
    control: str
    advertised_data: str = ""
    http: str = ""
    """Where to answer /livez, /readyz and /metrics, as tcp://HOST:PORT; empty: nowhere."""
    head: PeerBroker | None = None
    edges: tuple[str, ...] = ()
    neighbors: tuple[PeerBroker, ...] = ()
    hardware: BrokerHardware = BrokerHardware()
    limits: BrokerLimits = BrokerLimits()
    disk_log: DiskLog | None = None
    """Of a head: where it keeps its log; None: in memory only."""
    standby: HeadStandby | None = None
    """Of a head that has a standby, or is one."""
    security: LinkSecurity = LinkSecurity()
    time_factor: float = 1.0
    policy: dict[str, Any] | None = None
    """The balancing policy of its cluster, as in the custom resources; None: nothing is balanced."""
    location: tuple[float, float] | None = None
    """Where an edge is, as coordinates on a plane, for placement by distance; None: not known."""

    groups: tuple[DeclaredGroup, ...] = ()
    """The consumer groups of the fleet; for heads, which stamp publications with their slices."""

    @property
    def may_compile(self) -> bool:
        """Whether there is memory for the compiled loop of matching, beside a head's log."""
        log = self.limits.log_bytes if self.role == "head" else 0
        room = self.hardware.memory_bytes - PROCESS_BYTES - LINKS_BYTES - log
        return self.hardware.may_compile and room >= COMPILER_BYTES

    @property
    def may_lag(self) -> bool:
        """Whether a standby's word is enough, without the disk's."""
        return self.disk_log is not None and self.disk_log.may_lag

    @property
    def head_name(self) -> str:
        """The head of this broker's cluster: itself, if it is one."""
        return self.head.name if self.head else self.name

    @property
    def advertised(self) -> str:
        """The endpoint that clients are sent to; the bound one unless an address was advertised."""
        return self.advertised_data or self.data


def decode(text: bytes | str) -> BrokerConfig:
    """Read a configuration from JSON.

    Raises:
        msgspec.ValidationError: naming the field that is wrong.

    """
    return msgspec.json.decode(text, type=BrokerConfig)


def encode(config: BrokerConfig) -> bytes:
    """Write a configuration as JSON that `decode` reads back to an equal value."""
    return msgspec.json.format(msgspec.json.encode(config), indent=2)
