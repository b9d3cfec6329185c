"""Where mediators are heard: who may command, and what is answered.

A lower mediator epoch than the highest that this cluster has heard of is refused; so is a command that was meant for
another epoch of this head, and every command while the head does not know yet what its edges hold.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from plimsoll.core import records as r
from plimsoll.core.handover.coordinator import Coordinator
from plimsoll.core.handover.outcomes import number_of
from plimsoll.core.link import Peer

SERVED_AT_ONCE = 1000
"""So many subscribers are named in one SERVED."""


class Host(Protocol):
    """What the desk needs of its head."""

    @property
    def epoch(self) -> int: ...

    coordinator: Coordinator

    @property
    def is_starting(self) -> bool: ...
    def served_by(self, edge: str) -> list[str]: ...
    def say_control(self, peer: Peer, *said: object) -> None: ...
    def mediators(self) -> list[Peer]: ...
    def spread_mediator(self, epoch: int) -> None:
        """Tell edges and neighbours of a higher mediator epoch."""


class Desk:
    """`mediator`: the highest mediator epoch heard of."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.mediator = 0

    def heard(self, epoch: int) -> None:
        """A mediator epoch, from whomever."""
        if epoch > self.mediator:
            self.mediator = epoch
            self.host.spread_mediator(epoch)

    def on_command(self, peer: Peer, command: r.Command) -> None:
        """Obey or refuse; the answer says how the session stands.

        Raises:
            WireError: `session`, if its name is not one.

        """
        number_of(command.session)
        why = self._refusal(command)
        self.heard(command.mediator)
        if why:
            self._say(peer, r.Outcome(command.session, 0, self.host.epoch, "failed", [], why))
        else:
            self._say(peer, self._obey(command))

    def _refusal(self, command: r.Command) -> str:
        if command.mediator < self.mediator:
            return f"mediator-epoch: a mediator of epoch {self.mediator} has spoken since"
        if self.host.is_starting:
            return "starting: the head waits for what its edges and neighbours hold"
        if command.head_epoch != self.host.epoch and command.step != "ask":
            return f"head-epoch: this head is in epoch {self.host.epoch}"
        if command.step == "prepare" and command.plan is None:
            return "plan: a PREPARE carries one"
        return ""

    def _obey(self, command: r.Command) -> r.Outcome:
        coordinator = self.host.coordinator
        if command.step == "prepare" and command.plan is not None:
            return coordinator.prepare(command.session, command.plan)
        if command.step == "cut":
            return coordinator.cut(command.session)
        if command.step == "abort":
            return coordinator.abort(command.session)
        return coordinator.outcome(command.session)

    def told(self, outcome: r.Outcome) -> None:
        """Something has changed in a session: tell every mediator that is there."""
        for peer in self.host.mediators():
            self._say(peer, outcome)

    def _say(self, peer: Peer, outcome: r.Outcome) -> None:
        self.host.say_control(peer, msgspec.structs.replace(outcome, mediator=self.mediator))

    def on_serving(self, peer: Peer, serving: r.Serving) -> None:
        """Page by page. A head that does not know yet says nothing: who is missing from a list is taken to be gone."""
        if self.host.is_starting:
            return
        names = [name for name in self.host.served_by(serving.edge) if name > serving.after]
        page, more = names[:SERVED_AT_ONCE], len(names) > SERVED_AT_ONCE
        self.host.say_control(peer, r.Served(serving.id, serving.edge, self.host.epoch, page, more))
