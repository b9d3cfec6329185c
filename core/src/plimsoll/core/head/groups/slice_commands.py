"""Commands of mediators about slices, the sample that they plan by, and the trigger that makes them plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.slice_moves import SliceMoves, SliceMovesHost
from plimsoll.core.head.handover.commands import FencedHead, MediatorCommands
from plimsoll.core.head.handover.outcomes import parse_session_id
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.policies.consumer_groups.explanation import imbalance_text
from plimsoll.core.policies.consumer_groups.membership import unowned
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SlicePlan
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer

ITEMS_PER_PAGE: Final = 1000
"""Consumers and slices per SLICE_PAGE."""

REASON_CHARACTERS: Final = 1000
QUIET_LOAD: Final = 0.05
"""A group whose busiest consumer works less than this share of its time is left as it is: there is nothing to even out,
and what is measured of so little work differs from look to look."""


class SliceCommandsHost(SliceMovesHost, FencedHead, Protocol):
    """The parts of a head that these commands reach, and that answers go out through."""

    epoch: int

    def say_control(self, peer: Peer, *said: msg.SliceOutcome | msg.SlicePage | msg.GroupTrigger) -> None: ...


class SliceCommands(HeadPart):
    """`groups`: of this head; `commands` judges who may command."""

    def __init__(self, host: SliceCommandsHost, groups: GroupTable, commands: MediatorCommands) -> None:
        self.host, self.groups, self.commands = host, groups, commands
        self.moves = SliceMoves(host, groups.by_name.get, self.broadcast)
        groups.announce_by(self.announce)

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_mediators.add(msg.SliceCommand, self.on_command)
        handlers.of_mediators.add(msg.SliceQuery, self.on_query)

    def on_command(self, peer: Peer, command: msg.SliceCommand) -> None:
        """Obey or refuse a command; the answer is how the move stands.

        Raises:
            WireError: `session`, if the name of the session is malformed.

        """
        parse_session_id(command.session)
        why = self.commands.refusal(command)
        self.host.mediator_fence.raise_to(command.mediator)
        if why:
            self._send(peer, msg.SliceOutcome(command.session, 0, self.host.epoch, "failed", [], why))
        elif command.step == "move" and command.plan is not None:
            self._send(peer, self.moves.move(command.session, command.plan))
        elif command.step == "abort":
            self._send(peer, self.moves.abort(command.session))
        else:
            self._send(peer, self.moves.outcome(command.session))

    def broadcast(self, outcome: msg.SliceOutcome) -> None:
        """Send every mediator how a move stands."""
        for peer in list(self.host.reporter.mediators):
            self._send(peer, outcome)

    def _send(self, peer: Peer, outcome: msg.SliceOutcome) -> None:
        self.host.say_control(peer, msgspec.structs.replace(outcome, mediator=self.host.mediator_fence.epoch))

    def announce(self, group: str, consumers: Sequence[ConsumerLoad], plan: SlicePlan) -> bool:
        """Tell all mediators that slices should move, unless there is next to no work.

        Returns False if there is no mediator, and the head moves them by itself.
        """
        if self.host.reporter.mediators and max(max(c.cost, c.cpu) for c in consumers) < QUIET_LOAD:
            return True
        trigger = msg.GroupTrigger(group, imbalance_text(consumers, plan)[:REASON_CHARACTERS])
        for peer in list(self.host.reporter.mediators):
            self.host.say_control(peer, trigger)
        return bool(self.host.reporter.mediators)

    def on_query(self, peer: Peer, query: msg.SliceQuery) -> None:
        """Send one page of a group; a starting head sends nothing, for its members have not come yet."""
        if self.host.is_starting:
            return
        group = self.groups.by_name.get(query.group)
        if group is None:
            page = msg.SlicePage(query.id, self.host.epoch, query.group, query.begin, 0, "", True, [], [], False)
        else:
            page = self._page(query, group)
        self.host.say_control(peer, page)

    def _page(self, query: msg.SliceQuery, group: ConsumerGroup) -> msg.SlicePage:
        consumers = group.schedule.consumers()
        held = sorted(
            [(each.number, c.name, each) for c in consumers for each in c.slices], key=lambda found: found[:2]
        )
        free = [(number, "", None) for number in unowned(len(group.slices), consumers)]
        items: list[msg.ConsumerItem | msg.HeldSliceItem] = [
            msg.ConsumerItem(c.name, c.cpu, c.memory, c.has_measured, c.stays) for c in consumers
        ]
        for number, name, each in [*held, *free]:
            load = msg.SliceReport(number, 0.0, 0.0, 0) if each is None else msg.SliceReport(
                number, each.items_per_second, each.seconds_per_item, each.backlog
            )  # fmt: skip
            items.append(msg.HeldSliceItem(name, load, group.slices[number].is_revoked))
        end = query.begin + ITEMS_PER_PAGE
        shown = items[query.begin : end]
        return msg.SlicePage(
            query.id, self.host.epoch, group.name, query.begin, group.version, group.definition.balancing,
            not group.memory.is_waiting,
            [each for each in shown if isinstance(each, msg.ConsumerItem)],
            [each for each in shown if isinstance(each, msg.HeldSliceItem)],
            end < len(items),
        )  # fmt: skip

    def tick(self) -> None:
        self.moves.tick()

    def wake_at(self) -> float:
        return self.moves.wake_at()

    def status(self) -> dict[str, object]:
        return self.moves.status()
