"""Which part of a head deals with which records: each kind has one handler, which its part registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, get_args

from plimsoll.core.head.outbox import Outbox
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link, Peer

FOR_EDGES: Final = (
    msg.Resume | msg.Subs | msg.Detach | msg.Pause | msg.Continue | msg.Attach | msg.Go | msg.AuditReply
    | msg.CountsFrom
)  # fmt: skip
"""What clients send to edges only."""

Sender = TypeVarTuple("Sender")
Record = TypeVar("Record")


class Handlers(dict[type, Callable[[*Sender, Any], None]], Generic[*Sender]):
    """Handlers by the class of the record. `Sender`: what a handler is given in front of it."""

    def __init__(self, kinds: object) -> None:
        super().__init__()
        self._kinds = frozenset(get_args(kinds))

    def add(self, kind: type[Record], handler: Callable[[*Sender, Record], None]) -> None:
        """Let this handler deal with records of a kind.

        Raises:
            TypeError: such records do not come from there, or the kind has a handler.

        """
        if kind not in self._kinds:
            raise TypeError(f"{kind.__name__} is not a record that comes from there")
        if kind in self:
            raise TypeError(f"{kind.__name__} has a handler already")
        self[kind] = handler

    def missing(self) -> list[str]:
        """The names of the kinds without a handler, sorted."""
        return sorted(kind.__name__ for kind in self._kinds - self.keys())


class ClientHandlers(Handlers[Link]):
    """Handlers of what clients send. `units`: the work on a record, where it costs more than most do."""

    def __init__(self) -> None:
        super().__init__(msg.FromClient)
        self.units: dict[type, int] = {}
        for kind in get_args(FOR_EDGES):
            self.add(kind, _misplaced)

    def add_costly(self, kind: type[Record], handler: Callable[[Link, Record], None], units: int) -> None:
        """As `add`, for records that take more of a client's turn: units of some quarter of a microsecond each."""
        self.add(kind, handler)
        self.units[kind] = units

    def handle(self, link: Link, message: msg.FromClient) -> Iterator[int]:
        """Deal with one message of a client; yields the units of work of one that costs more."""
        kind = type(message)
        self[kind](link, message)
        if (units := self.units.get(kind)) is not None:
            yield units


class RecordHandlers:
    """The handlers of one head.

    `of_clients`: given the link. `of_brokers`: of edges and neighbours, given the outbox. `of_heads`: of other heads
    through the tree, given the name of the head and of the edge that the record is for, empty if it is for this head.
    `of_mediators`: on the control socket, given the peer; what has no handler there is for an edge.
    """

    def __init__(self) -> None:
        self.of_clients = ClientHandlers()
        self.of_brokers: Handlers[Outbox] = Handlers(msg.FromEdge | msg.BetweenHeads)
        self.of_heads: Handlers[str, str] = Handlers(msg.Routed)
        self.of_mediators: Handlers[Peer] = Handlers(msg.ControlRecord)

    def check(self) -> None:
        """Raise unless every kind of record that a head is sent has its handler.

        Raises:
            TypeError: some have none; it names them.

        """
        if missing := [*self.of_clients.missing(), *self.of_brokers.missing(), *self.of_heads.missing()]:
            raise TypeError(f"no part of the head deals with {', '.join(missing)}: let one register a handler")


def _misplaced(link: Link, message: object) -> None:
    raise WireError("misplaced", f"{type(message).__name__} is for an edge")
