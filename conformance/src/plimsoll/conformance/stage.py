"""The stage of one scenario: the scripted brokers, the client, the exchange between them, and what is expected of it.

Scenarios wait for conditions with a deadline, by the clock of the client under test, and never for time to pass, but
for `quiet`, which shows that something does not happen.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from plimsoll.conformance.client_under_test import BROKERS, ClientUnderTest, Report
from plimsoll.conformance.exchange import Exchange, describe_record
from plimsoll.conformance.expected_state import Item, item_of
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scripted_broker import ReceivedRecord, ScriptedBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

DEADLINE_SECONDS = 12.0
QUIET_SECONDS = 0.4
STEP_SECONDS = 0.2
FRAMES_AT_MOST = 20_000
"""Frames of the client in one scenario; none needs more than some dozens."""

IGNORED = (msg.Pause, msg.Continue, msg.AuditReply, msg.Join, msg.Close)
"""Records that a client may send at any time as far as scenarios are concerned; those that matter ask for them."""

HEAD_EPOCH, EDGE_EPOCH = 11, 12
RUNS = Rule("", "docs/conformance.md: the program runs until it is told to stop, and then ends with exit code 0.")
NOTHING_ELSE = Rule("", "docs/conformance.md: nothing is sent that no rule of docs/protocol.md asks for.")
ONCE_IN_ORDER = Rule("6.3", "Of one origin `(head, epoch)`, offsets rise.")
PONGS = Rule("3.1", "Every heartbeat (1 s by default) each side sends **PING** with its clock; **PONG** returns it.")
REPETITION = Rule("6.3", "at or below its watermark is a repetition: discard it.")

T = TypeVar("T")
R = TypeVar("R")


class Stage:
    """`placement`: the edges that the next JOINs are answered with, in order; the last one is used again.

    `sent_on`: how many of the first JOINs are answered with SEE_HEAD, as by an edge.

    `answering`: what answers other records at the head by itself, and returns whether it has.

    `patience`: the factor on all deadlines, for a slow machine.
    """

    def __init__(self, client: ClientUnderTest, patience: float = 1.0) -> None:
        self.client, self.exchange, self.patience = client, Exchange(), patience
        self.exchange.began = client.now()
        self.brokers = {
            name: ScriptedBroker(name, "head" if name == "h" else "edge", HEAD_EPOCH if name == "h" else EDGE_EPOCH,
                                 self._send)
            for name in BROKERS
        }  # fmt: skip
        self.head = self.brokers["h"]
        self.placement: list[str] = ["e1"]
        self.unplaced: list[float] = []
        self.sent_on = 0
        self.answering: Callable[[object], bool] = _no_answer
        self.joins: list[msg.Join] = []
        self.joined_at: list[float] = []
        self.items: defaultdict[str, list[Item]] = defaultdict(list)
        self.reports: list[Report] = []
        self._frames = 0
        self._is_stopped = False

    # -- out

    def _send(self, broker: str, peer: bytes, frames: Sequence[bytes], note: str) -> None:
        for data in frames:
            self.exchange.frame(self.client.now(), broker, "client", data, note)
        if frames:
            self.client.send(broker, peer, frames)
        else:
            self.exchange.note(self.client.now(), broker, "client", "DATA", note)

    def order(self, **order: Any) -> None:
        self.exchange.note(self.client.now(), "order", "client", "", json.dumps(order))
        self.client.order(order)

    def break_connections(self, broker: str) -> None:
        self.exchange.note(self.client.now(), broker, "client", "", "all connections are broken")
        self.brokers[broker].lose_connections()
        self.client.cut(broker)

    # -- in

    def step(self, seconds: float = STEP_SECONDS) -> None:
        """Take what has come, waiting for it at most so long."""
        found = self.client.poll(seconds)
        self._frames += len(found.frames)
        if self._frames > FRAMES_AT_MOST:
            raise RuleBrokenError(NOTHING_ELSE, f"the client has sent more than {FRAMES_AT_MOST} frames")
        for arrived in found.frames:
            broker = self.brokers[arrived.broker]
            place = len(self.exchange.lines)
            self.exchange.frame(self.client.now(), "client", arrived.broker, arrived.data)
            if note := broker.receive(arrived):
                self.exchange.lines[place] = self.exchange.lines[place]._replace(note=note)
        self._answer_head()
        for report in found.reports:
            self.exchange.note(self.client.now(), "client", "report", "", json.dumps(report))
            self.reports.append(report)
            if report.get("event") in ("delivery", "gap"):
                self.items[str(report.get("subscriber"))].append(item_of(report))
        if found.exit_code is not None and not self._is_stopped:
            raise RuleBrokenError(
                RUNS, f"the client has ended with exit code {found.exit_code}: {found.errors[-2000:]}"
            )

    def _answer_head(self) -> None:
        """JOIN is answered as `placement` and `unplaced` say; it stays nowhere."""
        kept = []
        for received in self.head.inbox:
            if not isinstance(received.record, msg.Join):
                if not self.answering(received.record):
                    kept.append(received)
                continue
            self.joins.append(received.record)
            self.joined_at.append(self.client.now())
            if self.sent_on:
                self.sent_on -= 1
                self.head.say(msg.SeeHead("h", self.client.endpoint("h"), ""))
                continue
            if self.unplaced:
                self.head.say(msg.Unplaced(received.record.subscriber, "there is no edge", self.unplaced.pop(0)))
                continue
            edge = self.placement.pop(0) if len(self.placement) > 1 else self.placement[0]
            self.head.say(msg.Placed(received.record.subscriber, edge, self.client.endpoint(edge), ""))
        self.head.inbox[:] = kept

    # -- waiting

    def until(
        self, condition: Callable[[], T | bool | None], rule: Rule, missing: str, seconds: float = DEADLINE_SECONDS
    ) -> T:
        """Wait until the condition gives something; breaks the rule if it does not in time."""
        seconds *= self.patience
        deadline = self.client.now() + seconds
        while not (found := condition()):
            if self.client.now() >= deadline:
                raise RuleBrokenError(rule, f"{missing} within {seconds:g} s")
            self.step()
        return found  # type: ignore[return-value]  # it is of the kind that was asked for

    def expect(
        self,
        broker: str,
        kind: type[R],
        rule: Rule,
        where: Callable[[R], bool] = lambda record: True,
        seconds: float = DEADLINE_SECONDS,
    ) -> R:
        """The next record of this kind at this broker; others stay where they are."""
        return self.until(
            lambda: self._take(broker, kind, where), rule, f"no {kind.__name__.upper()} has come to {broker}", seconds
        )

    def _take(self, broker: str, kind: type[R], where: Callable[[R], bool]) -> R | None:
        inbox = self.brokers[broker].inbox
        for i, received in enumerate(inbox):
            if isinstance(received.record, kind) and where(received.record):
                del inbox[i]
                return received.record
        return None

    def quiet(self, *brokers: str, seconds: float = QUIET_SECONDS) -> None:
        """Let the client deal with all that it was sent: each broker pings, and some time passes."""
        named = [self.brokers[name] for name in brokers or BROKERS]
        waits = []
        for number, broker in enumerate(each for each in named if each.link is not None and not each.faults.is_silent):
            broker.pongs.clear()
            broker.ping(1_000_000 + number)
            waits.append((broker, 1_000_000 + number))
        for broker, mark in waits:
            self.until(partial(_has_pong, broker, mark), PONGS, f"no PONG has come to {broker.name}")
        until = self.client.now() + seconds
        while self.client.now() < until:
            self.step(until - self.client.now())

    def forbid(self, broker: str, kind: type[Any], rule: Rule, found: str) -> None:
        """Break the rule if a record of this kind waits at this broker."""
        for received in self.brokers[broker].inbox:
            if isinstance(received.record, kind):
                raise RuleBrokenError(rule, f"{found}: {describe_record(wire.encode(received.record))}")

    # -- the application

    def expect_items(self, items: list[Item], rule: Rule = ONCE_IN_ORDER, subscriber: str = "s") -> None:
        """Wait until the application has been given exactly these for this subscriber, in this order."""

        def is_complete() -> bool:
            self._compare(subscriber, items, rule)
            return len(self.items[subscriber]) >= len(items)

        missing = f"the application has not been given {items}"
        self.until(is_complete, rule, missing)

    def _compare(self, subscriber: str, items: list[Item], rule: Rule) -> None:
        given = self.items[subscriber]
        if given[: len(items)] != items[: len(given)] or len(given) > len(items):
            at = next((i for i, (a, b) in enumerate(zip(given, items, strict=False)) if a != b), len(items))
            wanted = items[at] if at < len(items) else "nothing more"
            raise RuleBrokenError(rule, f"item {at + 1} of the application is {given[at]}; {wanted} was due")

    def expect_report(self, event: str, rule: Rule, **fields: Any) -> Report:
        """Wait for a report of the client with these fields."""

        def find() -> Report | None:
            for report in self.reports:
                if report.get("event") == event and all(report.get(key) == value for key, value in fields.items()):
                    return report
            return None

        return self.until(find, rule, f"the client has not reported {event} {fields}")

    # -- the end

    def finish(self, due: Mapping[str, list[Item]] | None = None) -> None:
        """Nothing else may have come, for any subscriber; the client stops in good order. `due`: the items of each."""
        self.quiet()
        due = due or {}
        for subscriber in sorted(self.items.keys() | due.keys()):
            self._compare(subscriber, due.get(subscriber, []), REPETITION)
        for broker in self.brokers.values():
            self._check_rest(broker)
        self._is_stopped = True
        self.order(do="stop")
        deadline = self.client.now() + DEADLINE_SECONDS * self.patience
        while (code := self._ended()) is None:
            if self.client.now() >= deadline:
                raise RuleBrokenError(RUNS, f"the client has not ended within {DEADLINE_SECONDS:g} s")
        if code:
            raise RuleBrokenError(RUNS, f"the client has ended with exit code {code}")

    def _ended(self) -> int | None:
        found = self.client.poll(STEP_SECONDS)
        for arrived in found.frames:
            self.exchange.frame(self.client.now(), "client", arrived.broker, arrived.data)
            self.brokers[arrived.broker].receive(arrived)
        return found.exit_code

    def _check_rest(self, broker: ScriptedBroker) -> None:
        rest: list[ReceivedRecord] = [each for each in broker.inbox if not isinstance(each.record, IGNORED)]
        if rest:
            text = describe_record(wire.encode(rest[0].record))
            raise RuleBrokenError(NOTHING_ELSE, f"the client has also sent {broker.name}: {text}")


def _no_answer(_: object) -> bool:
    return False


def _has_pong(broker: ScriptedBroker, mark: int) -> bool:
    return mark in broker.pongs or broker.link is None
