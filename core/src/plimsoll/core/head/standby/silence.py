"""How peers of a head that runs learn after how much silence another process may lead at its address."""

from __future__ import annotations

from typing import Protocol

import msgspec

from plimsoll.core.head.standby.leadership import silence_seconds
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.handshakes import Handshakes, introduce
from plimsoll.core.transport.link import LinkLimits


class KnownHead(Protocol):
    """What is asked of the head."""

    info: Info
    handshakes: Handshakes
    link_limits: LinkLimits


def tell_silence(head: KnownHead, *, has_standby: bool) -> None:
    """Tell those that are connected, and those to come; without a standby no other process may lead."""
    silence = silence_seconds(head.link_limits.heartbeat_seconds) if has_standby else 0.0
    head.info = msgspec.structs.replace(head.info, silence_ms=round(silence * 1000))
    introduce(head.handshakes, head.info)
