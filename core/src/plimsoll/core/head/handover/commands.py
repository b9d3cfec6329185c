"""Commands of mediators: who may command, and what is answered.

A command is refused if its mediator epoch is lower than the highest that this cluster has seen, if it was meant for
another epoch of this head, or while the head does not know yet what its edges hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.outcomes import parse_session_id
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer

SUBSCRIBERS_PER_PAGE = 1000
"""Subscribers per SUBSCRIBER_PAGE."""


class Mediators(Protocol):
    """`mediators`: the control connections on which mediators have identified themselves."""

    mediators: dict[Peer, float]


class Fence(Protocol):
    """`epoch`: the highest mediator epoch that this cluster has seen."""

    epoch: int

    def raise_to(self, epoch: int) -> None: ...


class FencedHead(Protocol):
    """What a command is judged by, and answered through."""

    @property
    def epoch(self) -> int: ...
    @property
    def mediator_fence(self) -> Fence: ...
    @property
    def reporter(self) -> Mediators: ...
    @property
    def is_starting(self) -> bool: ...


class CommandContext(FencedHead, Protocol):
    """The parts of a head that commands reach, and that answers go out through."""

    @property
    def coordinator(self) -> Coordinator: ...
    def say_control(self, peer: Peer, *said: msg.Outcome | msg.SubscriberPage) -> None: ...


class MediatorCommands(HeadPart):
    """Commands of mediators, and the outcomes that they are sent. `served_by`: the subscribers of an edge, sorted."""

    def __init__(self, host: CommandContext, served_by: Callable[[str], list[str]]) -> None:
        self.host, self.served_by = host, served_by

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_mediators.add(msg.Command, self.on_command)
        handlers.of_mediators.add(msg.ListSubscribers, self.on_list_subscribers)

    def on_command(self, peer: Peer, command: msg.Command) -> None:
        """Obey or refuse a command; the answer is how the session stands.

        Raises:
            WireError: `session`, if the name of the session is malformed.

        """
        parse_session_id(command.session)
        why = self.refusal(command)
        self.host.mediator_fence.raise_to(command.mediator)
        if why:
            self._send(peer, msg.Outcome(command.session, 0, self.host.epoch, "failed", [], why))
        else:
            self._send(peer, self._obey(command))

    def refusal(self, command: msg.Command | msg.PublisherCommand | msg.SliceCommand) -> str:
        """Why a command is not obeyed; an empty string if it is."""
        fenced_at = self.host.mediator_fence.epoch
        if command.mediator < fenced_at:
            return f"mediator-epoch: a mediator of epoch {fenced_at} has sent a command since"
        if self.host.is_starting:
            return "starting: the head waits for the reports of its edges and neighbours"
        if command.head_epoch != self.host.epoch and command.step != "ask":
            return f"head-epoch: this head is in epoch {self.host.epoch}"
        if command.step in ("prepare", "move") and command.plan is None:
            return "plan: a command to begin carries one"
        return ""

    def _obey(self, command: msg.Command) -> msg.Outcome:
        coordinator = self.host.coordinator
        if command.step == "prepare" and command.plan is not None:
            return coordinator.prepare(command.session, command.plan)
        if command.step == "cut":
            return coordinator.cut(command.session)
        if command.step == "abort":
            return coordinator.abort(command.session)
        return coordinator.table.outcome(command.session)

    def broadcast(self, outcome: msg.Outcome) -> None:
        """Send every mediator how a session stands."""
        for peer in list(self.host.reporter.mediators):
            self._send(peer, outcome)

    def _send(self, peer: Peer, outcome: msg.Outcome) -> None:
        self.host.say_control(peer, msgspec.structs.replace(outcome, mediator=self.host.mediator_fence.epoch))

    def on_list_subscribers(self, peer: Peer, request: msg.ListSubscribers) -> None:
        """Send one page of an edge's subscribers.

        A starting head sends nothing: a subscriber missing from a list would be taken to be gone.
        """
        if self.host.is_starting:
            return
        names = [name for name in self.served_by(request.edge) if name > request.after]
        page, more = names[:SUBSCRIBERS_PER_PAGE], len(names) > SUBSCRIBERS_PER_PAGE
        self.host.say_control(peer, msg.SubscriberPage(request.id, request.edge, self.host.epoch, page, more))
