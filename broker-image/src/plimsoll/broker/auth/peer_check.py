"""Checks that a peer's role and name match its key, in the frames that carry them: HELLO and IDENTIFY.

Reading a name from a message's properties costs more than receiving the message, so it is done once per connection;
for frames of records one byte is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from plimsoll.core.protocol import messages, wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.network.auth.authorized_keys import AuthorizedKeys

_HELLO: Final = bytes([wire.HELLO])
_COMMANDS: Final = (
    messages.Leave, messages.ClusterMembers, messages.Command, messages.ListSubscribers, messages.Reservation,
    messages.ProfileQuery, messages.PeerClusterLoads, messages.CoverQuery, messages.ClusterPolicy,
    messages.ListPublications, messages.ListSubscriptions, messages.ListParameters, messages.GoOnAlone,
    messages.Promote,
)  # fmt: skip


class PeerCheck:
    """Filters frames of accepted connections. `users`: the key that each connection authenticated with."""

    def __init__(self, authority: AuthorizedKeys) -> None:
        self._authority = authority
        self.counters: Counter[str] = Counter()
        self.answers: list[tuple[bytes, bytes]] = []

    def admit(self, peer: bytes, frames: list[bytes], users: Mapping[bytes, str]) -> list[bytes]:
        """The frames that may pass. A HELLO with a wrong name does not; `answers` then holds the refusal."""
        if not any(data[2:3] == _HELLO for data in frames):
            return frames
        return [data for data in frames if data[2:3] != _HELLO or self._check_hello(peer, data, users)]

    def _check_hello(self, peer: bytes, data: bytes, users: Mapping[bytes, str]) -> bool:
        try:
            hello = wire.decode_frame(data)
        except WireError:
            return True  # the machine refuses and counts it
        if not isinstance(hello, wire.Hello):
            return True
        why = self._authority.refusal_reason(users.get(peer, ""), hello.info.role, hello.info.name)
        if why:
            self.counters["names_refused"] += 1
            self.answers.append((peer, wire.refuse_frame(hello.link, "refused", why)))
        return not why

    def admit_control(self, peer: bytes, data: bytes, users: Mapping[bytes, str]) -> bool:
        """Whether a control frame may pass: its claims about the sender must hold.

        A collector may only identify itself, and list parameters.
        Commands are a mediator's: its key is asked for, since the machine knows a mediator by its connection alone.
        """
        try:
            frame = wire.decode_frame(data)
            said = (
                [messages.decode(messages.control, raw) for raw in frame.records]
                if isinstance(frame, wire.Control)
                else []
            )
        except WireError:
            return True  # the machine refuses and counts it
        key = users.get(peer, "")
        identity = self._authority.keys.get(key)
        role = identity.role if identity is not None else ""
        for record in said:
            if isinstance(record, messages.Identify):
                if self._authority.refusal_reason(key, record.role, record.name):
                    self.counters["names_refused"] += 1
                    return False
            elif isinstance(record, messages.ListParameters) and role in ("mediator", "collector"):
                continue
            elif role == "collector" or (isinstance(record, _COMMANDS) and role != "mediator"):
                self.counters["commands_of_collectors_refused"] += 1
                return False
        return True
