"""Commands of mediators about publishers: move them to another head, and list them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from plimsoll.core.head.handover.commands import FencedHead, MediatorCommands
from plimsoll.core.head.handover.outcomes import parse_session_id
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer

PUBLISHERS_PER_PAGE = 1000
"""Publishers per PUBLISHER_LIST_PAGE."""


class PublisherCommandContext(FencedHead, Protocol):
    """The parts of a head that these commands reach, and that answers go out through."""

    @property
    def publishers(self) -> PublisherTable: ...
    @property
    def publisher_moves(self) -> PublisherMoves: ...
    def say_control(self, peer: Peer, *said: msg.PublisherOutcome | msg.PublisherListPage) -> None: ...


class PublisherCommands(HeadPart):
    """Commands about publishers, and the outcomes that mediators are sent; `commands` judges who may command."""

    def __init__(self, host: PublisherCommandContext, commands: MediatorCommands) -> None:
        self.host, self.commands = host, commands

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_mediators.add(msg.PublisherCommand, self.on_command)
        handlers.of_mediators.add(msg.ListPublishers, self.on_list)

    def on_command(self, peer: Peer, command: msg.PublisherCommand) -> None:
        """Obey or refuse a command; the answer is how the move stands.

        Raises:
            WireError: `session`, if the name of the session is malformed.

        """
        parse_session_id(command.session)
        why = self.commands.refusal(command)
        self.host.mediator_fence.raise_to(command.mediator)
        moves = self.host.publisher_moves
        if why:
            self._send(peer, msg.PublisherOutcome(command.session, 0, self.host.epoch, "failed", [], why))
        elif command.step == "move" and command.plan is not None:
            self._send(peer, moves.move(command.session, command.plan))
        elif command.step == "abort":
            self._send(peer, moves.abort(command.session))
        else:
            self._send(peer, moves.outcome(command.session))

    def broadcast(self, outcome: msg.PublisherOutcome) -> None:
        """Send every mediator how a move stands."""
        for peer in list(self.host.reporter.mediators):
            self._send(peer, outcome)

    def _send(self, peer: Peer, outcome: msg.PublisherOutcome) -> None:
        self.host.say_control(peer, msgspec.structs.replace(outcome, mediator=self.host.mediator_fence.epoch))

    def on_list(self, peer: Peer, request: msg.ListPublishers) -> None:
        """Send one page of the open publishers; a starting head sends nothing, for they have not opened yet."""
        if self.host.is_starting:
            return
        found, more = self.host.publishers.listed(request.after, PUBLISHERS_PER_PAGE)
        items = [msg.PublisherItem(each.name, each.total_publications, each.total_bytes) for each in found]
        self.host.say_control(peer, msg.PublisherListPage(request.id, self.host.epoch, items, more))
