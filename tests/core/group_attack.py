"""A consumer group under attack: random definitions, applications, faults and sessions, in virtual time.

All that publishers, applications and users see is written into a journal, which `group_judge` judges.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.core.group_journal import Ended, Fault, Finished, Item, Journal, Published, Rest, SessionEnd, Told, Took
from tests.core.group_mediator import GroupMediator
from tests.core.group_play import GROUP, STEP_SECONDS, Consumer, GroupPlay

from plimsoll.core.client import Answered, GapNotice, HandedItem, SlicesChanged
from plimsoll.core.protocol.slice_names import stamp_attribute

BUFFERED_AT_MOST, MANUAL_AT_MOST = 8, 4
FUNCTIONS = ("Modulo", "Modulo", "Hash", "Publisher", "Random", "Range", "Application")
Way = Literal["next", "buffered", "manual"]
"""How an application acknowledges: by taking the next one, the same with items taken ahead for it, or by itself."""


@dataclass
class Application:
    """What one life of a consumer is doing. `until`: when the items that it has in hand are finished."""

    consumer: Consumer
    way: Way
    hands: list[tuple[HandedItem, float]] = field(default_factory=list)

    @property
    def who(self) -> str:
        return f"{self.consumer.name}/{self.consumer.life}"


class AttackedPlay(GroupPlay):
    """A group whose applications and publishers write down what they see."""

    def __init__(self, draw: random.Random, seed: int, *, west: bool) -> None:
        count = draw.choice((1, 2, 4, 7, 12))
        function = draw.choice(FUNCTIONS[:4] if west else FUNCTIONS)
        fields: dict[str, Any] = {"function": function, "balancing": draw.choice(("None", "Rates", "Pairing"))}
        if function in ("Publisher", "Random", "Application"):
            fields["by"] = ""
        if function == "Range":
            fields |= {"low": 0.0, "high": 2.0 * count}
        if not west:
            fields |= {"in_session": draw.choice(("Deliver", "Cache")), "unassigned": draw.choice(("Drop", "Hash"))}
        super().__init__(draw.choice((1, 2, 3)), seed, count, 3 * count, west, **fields)
        what, times = self.definition, self.fleet.head().groups.times
        self.journal = Journal(
            what.function, what.count, what.by, what.low, what.high, what.unassigned, what.balancing, times.gone,
            times.beat,
        )  # fmt: skip
        self.applications: dict[str, Application] = {}
        self.publishers = [self.publisher, self.publishing.publisher("q")]
        self._numbers: dict[tuple[str, int], Item] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.run(0.5)

    # -- consumers

    def enter(self, name: str, work: float, way: Way, home: str = "h") -> None:
        consumer = self.join(name, work, defines=home == "h", home=home)
        self.applications[name] = Application(consumer, way)

    def end(self, name: str, how: str) -> None:
        """Its process is gone: killed, or ended when it had left."""
        self.journal.events.append(Ended(self.fleet.now, self.applications.pop(name).who, how))
        del self.consumers[name]
        self.fleet.thaw(name)
        self.fleet.crash(name)

    # -- faults

    def hit(self, kind: str, what: str, seconds: float, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Something is broken from now on for some seconds."""
        now = self.fleet.now
        self.journal.events.append(Fault(now, kind, what, now + seconds))
        begin()
        self._later.append((now + seconds, end))

    def heal(self) -> None:
        """End all that is broken."""
        for _, end in self._later:
            end()
        self._later.clear()

    # -- time

    def run(self, seconds: float, rate: float = 0.0) -> None:
        for _ in range(round(seconds / STEP_SECONDS)):
            due = rate * STEP_SECONDS
            for _ in range(int(due) + (self.draw.random() < due % 1)):
                self.publish(self.draw.randrange(self.sensors))
            self.fleet.run(STEP_SECONDS)
            if not hasattr(self, "journal"):
                continue
            for at, end in [each for each in self._later if each[0] <= self.fleet.now]:
                self._later.remove((at, end))
                end()
            self._note_answers()
            for name in list(self.applications):
                self._step(self.applications[name])

    def publish(self, sensor: int, **attributes: Any) -> None:
        draw = self.draw
        publisher = draw.choice(self.publishers)
        self.said += 1
        found: dict[str, Any] = {"class": "R", "sensor": sensor, "n": self.said, **attributes}
        if self.definition.function == "Application":
            found[stamp_attribute(GROUP)] = sensor % self.definition.count
        elif draw.random() < 0.05:
            found[stamp_attribute(GROUP)] = draw.randrange(-1, self.definition.count)  # the head corrects it
        if draw.random() < 0.05 and self.definition.by:
            found["sensor"] = draw.choice((True, 1.5, "seven", -3, 4.0, 10_000))
        number = publisher.publish(found, sent_us=0)
        item = self._numbers[publisher.name, number] = publisher.name, self.said
        self.journal.published[item] = Published(self.fleet.now, item, found)

    def _note_answers(self) -> None:
        for owner, events in self.publishing.take_events():
            for event in events:
                if isinstance(event, Answered) and event.answer in ("accepted", "unconfirmed"):
                    for number in range(event.first, event.last + 1):
                        item = self._numbers[owner.name, number]
                        known = self.journal.published[item]
                        self.journal.published[item] = replace(known, answered=self.fleet.now)

    # -- applications

    def _step(self, application: Application) -> None:
        consumer, now = application.consumer, self.fleet.now
        for owner, events in consumer.client.take_events():
            for event in events if owner is consumer.member else ():
                if isinstance(event, SlicesChanged) and (event.came or event.went):
                    self.journal.events.append(Told(now, application.who, event.came, event.went, event.why))
        if consumer.name in self.fleet.frozen:
            return
        consumer.client.now = now
        for _ in range(100):
            if not self._turn(application, now):
                return

    def _turn(self, application: Application, now: float) -> bool:
        """Finish what is due, and take an item; returns whether there may be more to do."""
        member, hands = application.consumer.member, application.hands
        due = [each for each in hands if each[1] <= now]
        if application.way == "manual":
            self.draw.shuffle(due)
        for each in due:
            hands.remove(each)
            self._finish(application, each[0])
        if len(hands) >= (MANUAL_AT_MOST if application.way == "manual" else 1):
            return False
        if application.way == "buffered":
            taken = self._from_buffer(application, now)
        else:
            taken = member.items.take(1)
        for handed in taken:
            handed.taken_at = now
            work = application.consumer.work
            hands.append((handed, now + (self.draw.uniform(0.0, 2.0 * work) if application.way == "manual" else work)))
            item = handed.item
            key = None if isinstance(item, GapNotice) else self._key(handed)
            self.journal.events.append(Took(now, application.who, handed.owned.slice, key, handed.is_redelivered))
        return bool(taken)

    def _from_buffer(self, application: Application, now: float) -> list[HandedItem]:
        member = application.consumer.member
        if now > member.beats.lease_until or not member.items.buffer.ready:
            member.items.refill(BUFFERED_AT_MOST)
        return [member.items.buffer.ready.popleft()] if member.items.buffer.ready else []

    def _finish(self, application: Application, handed: HandedItem) -> None:
        now, member = self.fleet.now, application.consumer.member
        if not isinstance(handed.item, GapNotice):
            self.journal.events.append(
                Finished(now, application.who, handed.owned.slice, self._key(handed), application.way != "manual")
            )
        if application.way == "buffered":
            handed.finished_at = now
            member.items.buffer.finished.append(handed)
            if handed.owned.is_stopping:
                member.items.settle()
        else:
            member.items.finish(handed)

    @staticmethod
    def _key(handed: HandedItem) -> Item:
        assert not isinstance(handed.item, GapNotice)
        number = handed.item.attributes["n"]
        assert isinstance(number, int)
        return handed.item.publisher, number


class Attack:
    """One run. `asked`: when users made sessions, and of which taker. `unsure`: who may have been emptied by one."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(f"attack {seed}")
        self.has_west = self.draw.random() < 0.2
        self.play = AttackedPlay(self.draw, seed, west=self.has_west)
        self.mediator = GroupMediator(self.play)
        self.asked: dict[str, tuple[float, str]] = {}
        self.givers: dict[str, str] = {}
        self.unsure: set[str] = set()
        self.kinds = self._kinds()

    def _kinds(self) -> list[Callable[[], None]]:
        """What may happen: of each run only some, so that calm ones are among them, which are judged most strictly."""
        always = [self.enter, self.enter, self.leave, self.nothing, self.edge, self.slow]
        more = [self.crash, self.freeze, self.cut, self.head, self.session, self.drain, self.stop, self.mediate]
        return always + [each for each in more if self.draw.random() < 0.5]

    def run(self) -> Journal:
        draw = self.draw
        for _ in range(draw.choice((1, 2, 3))):
            self.enter()
        for _ in range(draw.randrange(8, 20)):
            draw.choice(self.kinds)()
            self.mediator.run(draw.choice((0.05, 0.3, 1.0, 2.5)), rate=draw.choice((0, 30, 120)))
            self._end_those_that_left()
        self._rest()
        return self.play.journal

    def _rest(self) -> None:
        """Quiet: all is healed, every application is quick, and two more consumers come."""
        play, mediator = self.play, self.mediator
        play.heal()
        if mediator.node is None:
            mediator.start()
        self._quicken()
        if not self._staying():
            self.enter("last")
        mediator.run(1.0, rate=30)
        self._quicken()
        for _ in range(60):
            mediator.run(3.0)
            if all(mediator.session(name).is_over for name in mediator.requests):
                break
        mediator.run(12.0)
        self._end_those_that_left()
        for name in ("n1", "n2"):
            play.enter(name, 0.0, "next")
        mediator.run(12.0)
        self._end_those_that_left()
        self._note_sessions()
        report = play.fleet.head().groups.by_group()[GROUP]
        has = {play.applications[name].who: tuple(play.has(name)) for name in play.applications}
        play.journal.rest = Rest(
            play.fleet.now, has, frozenset(w for w in has if w.partition("/")[0] in self.unsure), report["lag"],
            report["without_consumer"], frozenset(w for w in has if w.startswith("n")),
        )  # fmt: skip

    def _quicken(self) -> None:
        for application in self.play.applications.values():
            application.consumer.work = min(application.consumer.work, 0.004)
            application.hands = [(handed, min(until, self.play.fleet.now + 1.0)) for handed, until in application.hands]

    def _note_sessions(self) -> None:
        mediator = self.mediator
        for name in mediator.requests:
            session, asked = mediator.session(name), self.asked.get(name, (0.0, ""))
            audit = mediator.status(name).get("audit") or {}
            outcomes = {int(x.rpartition("@@")[2]): state for x, state in session.outcomes().items()}
            self.play.journal.sessions.append(
                SessionEnd(
                    name, asked[0], self.play.fleet.now if session.is_over else float("inf"), asked[1], outcomes,
                    (audit.get("lost", 0), audit.get("duplicated", 0), audit.get("reordered", 0)),
                )
            )  # fmt: skip

    def _staying(self) -> list[str]:
        return [name for name, one in self.play.applications.items() if not one.consumer.member.is_leaving]

    def _end_those_that_left(self) -> None:
        for name in [name for name, one in self.play.applications.items() if one.consumer.member.has_left]:
            self.play.end(name, "left")

    def _one(self, names: list[str]) -> str | None:
        return self.draw.choice(sorted(names)) if names else None

    # -- what may happen

    def nothing(self) -> None:
        """Time passes."""

    def enter(self, name: str = "") -> None:
        draw = self.draw
        name = name or draw.choice("abcdefg")
        if name not in self.play.applications and name not in self.play.fleet.nodes:
            way: Way = draw.choice(("next", "buffered", "manual"))
            home = "w" if self.has_west and draw.random() < 0.4 else "h"
            if name not in self._asked_to_give():  # an open session asks the consumer of this name
                self.unsure.discard(name)
            self.play.enter(name, draw.choice((0.0, 0.004, 0.02, 0.3)), way, home)

    def leave(self) -> None:
        if (name := self._one(self._staying())) is not None and name not in self.play.fleet.frozen:
            self.play.leave(name)

    def slow(self) -> None:
        if (name := self._one(list(self.play.applications))) is not None:
            self.play.consumers[name].work = self.draw.choice((0.0, 0.01, 0.5, 2.0))

    def crash(self) -> None:
        if (name := self._one(list(self.play.applications))) is not None:
            self.play.end(name, "crashed")

    def freeze(self) -> None:
        fleet = self.play.fleet
        if (name := self._one(list(self.play.applications))) is not None and name not in fleet.frozen:
            seconds = self.draw.choice((0.5, 1.5, 2.5, 6.0))
            self.play.hit("frozen", name, seconds, lambda: fleet.freeze(name), lambda: fleet.thaw(name))

    def cut(self) -> None:
        fleet = self.play.fleet
        name = self._one(list(self.play.applications))
        other = self._one([broker for broker in fleet.configs if broker in fleet.nodes])
        if name is not None and other is not None:
            seconds = self.draw.choice((0.5, 1.5, 2.5, 6.0))
            self.play.hit("cut", name, seconds, lambda: fleet.cut(name, other), lambda: fleet.mend(name, other))

    def edge(self) -> None:
        self._restart("edge", [each for each in self.play.fleet.configs if each[0] in "ex"], (0.3, 1.5, 4.0))

    def head(self) -> None:
        self._restart("head", [each for each in ("h", "w") if each in self.play.fleet.configs], (0.1, 0.5, 2.0, 5.0))

    def _restart(self, kind: str, names: list[str], seconds: tuple[float, ...]) -> None:
        fleet = self.play.fleet
        name = self._one([each for each in names if each in fleet.nodes])
        if name is not None:
            self.play.hit(
                kind, name, self.draw.choice(seconds), lambda: fleet.crash(name), lambda: fleet.start(name)
            )  # fmt: skip

    # -- sessions

    def session(self) -> None:
        """A user moves some slices of one consumer to another."""
        names = list(self.play.applications)
        giver, taker = self._one(names), self._one(names)
        if giver is None or taker is None or giver == taker:
            return
        has = self.play.has(giver)
        numbers = self.draw.sample(has, self.draw.randrange(len(has) + 1))
        if numbers:
            self._ask(giver=giver, taker=taker, numbers=numbers)

    def drain(self) -> None:
        if (giver := self._one(list(self.play.applications))) is not None:
            self._ask(giver=giver)

    def _ask(self, **slices: Any) -> None:
        name = f"asked-{len(self.asked)}"
        self.asked[name] = self.play.fleet.now, slices.get("taker", "")
        self.givers[name] = slices["giver"]
        self.unsure.add(slices["giver"])
        self.mediator.ask(name, **slices)

    def _asked_to_give(self) -> set[str]:
        """Consumers whose slices a session that is not over takes."""
        return {giver for name, giver in self.givers.items() if not self.mediator.session(name).is_over}

    def stop(self) -> None:
        """A user stops a session that is not over."""
        under_way = [name for name in self.asked if not self.mediator.session(name).is_over]
        if (name := self._one(under_way)) is not None:
            self.mediator.change(name, stop=True)

    def mediate(self) -> None:
        """The mediator dies, or its next life begins."""
        if self.mediator.node is not None:
            self.mediator.kill()
        else:
            self.mediator.start()
