"""The check that a peer presents itself as what its key says, at the frames in which it does: HELLO and IDENTIFY.

Looking up a name in a message's properties costs more than receiving the message, so it is done once per connection;
frames of records pass with a look at one byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from plimsoll.broker.security import Authority
from plimsoll.core import records, wire
from plimsoll.core.wire import WireError

_HELLO: Final = bytes([wire.HELLO])


class Gate:
    """Frames of accepted connections on their way to the machine. `users`: the key by which a connection came."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self.counters: Counter[str] = Counter()
        self.answers: list[tuple[bytes, bytes]] = []

    def admit(self, peer: bytes, frames: list[bytes], users: Mapping[bytes, str]) -> list[bytes]:
        """The frames that may pass. A HELLO under a wrong name does not; `answers` then holds the refusal."""
        if not any(data[2:3] == _HELLO for data in frames):
            return frames
        return [data for data in frames if data[2:3] != _HELLO or self._may_say(peer, data, users)]

    def _may_say(self, peer: bytes, data: bytes, users: Mapping[bytes, str]) -> bool:
        try:
            hello = wire.decode_frame(data)
        except WireError:
            return True  # the machine refuses and counts it
        if not isinstance(hello, wire.Hello):
            return True
        why = self._authority.refusal(users.get(peer, ""), hello.info.role, hello.info.name)
        if why:
            self.counters["names_refused"] += 1
            self.answers.append((peer, wire.refuse_frame(hello.link, "refused", why)))
        return not why

    def admit_control(self, peer: bytes, data: bytes, users: Mapping[bytes, str]) -> bool:
        """Whether a control frame may pass: all that it says of the sender must be so, and a collector says no more."""
        try:
            frame = wire.decode_frame(data)
            said = (
                [records.decode(records.control, raw) for raw in frame.records]
                if isinstance(frame, wire.Control)
                else []
            )
        except WireError:
            return True  # the machine refuses and counts it
        key = users.get(peer, "")
        identity = self._authority.keys.get(key)
        only_hears = identity is not None and identity.role == "collector"
        for record in said:
            if isinstance(record, records.Identify):
                if self._authority.refusal(key, record.role, record.name):
                    self.counters["names_refused"] += 1
                    return False
            elif only_hears:
                self.counters["commands_of_collectors_refused"] += 1
                return False
        return True
