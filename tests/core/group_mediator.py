"""A mediator beside the consumer groups of `group_play`: the session engine over real control records, in virtual time.

Objects are stored at once. `kill` ends one life; `start` begins the next from what was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.core.fleet import Mediator
from tests.core.group_play import GROUP, STEP_SECONDS, GroupPlay
from tests.core.session.model import spec_of

from plimsoll.core import session as s
from plimsoll.core.protocol import messages as msg

RECORDS = msg.Outcome | msg.SliceOutcome | msg.SlicePage | msg.GroupTrigger
NAME = "mediator"


class GroupMediator:
    """`sessions`: objects by name, with their last status."""

    def __init__(self, play: GroupPlay) -> None:
        self.play, self.epoch, self.head_epoch = play, 0, 0
        self.requests: dict[str, s.SessionRequest] = {}
        self.stored: dict[str, dict[str, Any]] = {}
        self.events: list[tuple[str, str]] = []
        self.node: Mediator | None = None
        self.engine = s.MediatorEngine(1)
        self.start()

    def start(self) -> None:
        """A life with a higher epoch."""
        self.epoch += 1
        play = self.play
        self.engine = s.MediatorEngine(self.epoch, [s.decode(stored) for stored in self.stored.values()])
        self.node = play.fleet.mediator("h")
        for request in self.requests.values():
            self._handle(s.SessionUpserted(request))

    def kill(self) -> None:
        self.play.fleet.crash(NAME)
        self.node = None

    def ask(self, name: str, **slices: Any) -> None:
        """A user makes a session of MoveSlices; keywords that are no field of `slices` are of the spec."""
        fields = {"giver", "taker", "numbers"}
        spec = {
            "scope": "Local", "source": {"name": "h"}, "action": "MoveSlices", "mode": "Execute",
            "slices": {"group": GROUP, **{key: value for key, value in slices.items() if key in fields}},
            **{key: value for key, value in slices.items() if key not in fields},
        }  # fmt: skip
        self._create(name, spec)

    def change(self, name: str, **fields: Any) -> None:
        """A user changes fields of the specification of a session."""
        old = self.requests[name]
        self.requests[name] = replace(old, generation=old.generation + 1, spec=replace(old.spec, **fields))
        self._handle(s.SessionUpserted(self.requests[name]))

    def _create(self, name: str, spec: Mapping[str, Any]) -> None:
        if name not in self.requests:
            self.requests[name] = s.SessionRequest(name, f"uid-{name}", 1, spec_of(**spec))
            self._handle(s.SessionUpserted(self.requests[name]))

    # -- time

    def run(self, seconds: float, rate: float = 0.0) -> None:
        """Let time pass for the groups and the mediator."""
        for _ in range(round(seconds / STEP_SECONDS)):
            self.play.run(STEP_SECONDS, rate)
            if self.node is not None:
                self._turn(self.node)

    def _turn(self, node: Mediator) -> None:
        view = self._view()
        if view.heads["h"].epoch != self.head_epoch:  # as shells do over a new connection
            self.head_epoch = view.heads["h"].epoch
            node.say_control("h", msg.Identify(NAME, NAME, 1))
        heard = [(peer, record) for peer, records in node.heard.items() for record in records]
        node.heard.clear()
        for peer, record in heard:
            if isinstance(record, RECORDS):
                self._handle(s.HeadMessage(peer, record))
        self._handle(s.FleetObserved(view))

    def _view(self) -> s.FleetView:
        head = self.play.fleet.head() if "h" in self.play.fleet.nodes else None
        epoch, is_up = (0, False) if head is None else (head.epoch, not head.is_starting)
        return s.FleetView(heads={"h": s.HeadView("h", "h", epoch, is_up, {}, "mem://h", "")})

    def _handle(self, event: s.Event) -> None:
        for effect in self.engine.handle(event, 1000.0 + self.play.fleet.now):
            match effect:
                case s.SendMessage():
                    if self.node is not None:
                        self.node.say_control(effect.head, effect.message)
                case s.SaveSession():
                    self.stored[effect.session.uid] = s.encode(effect.session)
                case s.CreateSession():
                    self._create(effect.name, effect.spec)
                case s.EmitEvent():
                    self.events.append((effect.name, effect.reason))
                case _:
                    pass

    # -- what it shows

    def session(self, name: str) -> s.Session:
        found = self.engine.session(f"uid-{name}")
        assert found is not None, name
        return found

    def status(self, name: str) -> dict[str, Any]:
        return s.status(self.session(name), 1000.0 + self.play.fleet.now)

    def finish(self, name: str, seconds: float = 60.0, rate: float = 0.0) -> s.Session:
        """Run until a session is over."""
        for _ in range(round(seconds / 0.1)):
            if self.session(name).is_over:
                return self.session(name)
            self.run(0.1, rate)
        raise AssertionError(f"{name} is not over: {self.status(name)}")
