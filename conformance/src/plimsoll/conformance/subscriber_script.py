"""What scripted edges do with one subscriber of the client, and what they hold it to: attach, deliver, move, close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.conformance.expected_state import EPOCH, STOCK, ExpectedState, publication
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scripted_broker import ScriptedBroker
from plimsoll.conformance.stage import Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token

OWNER_EPOCH = Rule("6.2", "`n` raised by 2 with every RESUME")
INCARNATION = Rule("6.2", "`epoch` is the owner epoch: `incarnation` as in")
NEW_NUMBER = Rule("6.2", "number that the client chooses for this link and never uses again on it.")
TOKEN = Rule("6.2", "`token` is the position to continue from; nil means from now on.")
MARKS = Rule("6.2", "`watermarks` are the highest offsets per origin that the subscriber has")
WHOLE_LIST = Rule("6.2", "with its whole list of subscriptions and the version of that list.")
ATTACHES = Rule("6.1", "client opens a link to the edge, or uses the one that it has.")
SESSION_IN_RESUME = Rule("6.3", "RESUME there, with its `session`")
ATTACH_IS = Rule("6.4", "the number of the attachment is a new one on the link to B, `epoch` is `(incarnation,")
ATTACH_LIST = Rule("6.4", "the list is whole, as it is then")
NAMES_SESSION = Rule("4", "`session` names one hand-over of a batch of subscribers")

SESSION = "3.1"


class SubscriberScript:
    """One subscriber. `state`: what the client must hold of it; `edge` and `number`: of the attachment that serves."""

    def __init__(
        self, stage: Stage, name: str = "s", *, token: Token | None = None, watermarks: Sequence[Token] = ()
    ) -> None:
        self.stage, self.name = stage, name
        self.state = ExpectedState(name, [STOCK])
        self.state.token = token
        self.state.marks = {(head, epoch): offset for head, epoch, offset in watermarks}
        self.edge, self.number = "", 0
        self.ended_session: str | None = None
        """The session of the last END: a client may name it in its next RESUME."""
        self._used: set[tuple[int, int]] = set()

    @property
    def broker(self) -> ScriptedBroker:
        return self.stage.brokers[self.edge]

    @property
    def incarnation(self) -> int:
        """Of the client, as in HELLO."""
        return self.broker.open_link().info.incarnation

    # -- attaching

    def subscribe(self) -> None:
        """Order the client to subscribe."""
        marks = [[head, epoch, offset] for (head, epoch), offset in self.state.marks.items()]
        self.stage.order(
            do="subscribe", subscriber=self.name, subscription=STOCK, token=self.state.token, watermarks=marks
        )

    def attach(self, edge: str = "e1") -> SubscriberScript:
        """From the order to the first SUBACK."""
        self.subscribe()
        self.resume_at(edge)
        return self

    def resume_at(self, edge: str, **answer: Any) -> msg.Resume:
        """Expect RESUME at this edge, hold it to the state, and answer it."""
        session = answer.pop("session", None)
        resume = self.expect_resume(edge, session)
        self.answer(**answer)
        return resume

    def expect_resume(self, edge: str, session: str | None = None, rule: Rule = ATTACHES) -> msg.Resume:
        """Expect RESUME, and leave it unanswered. `session`: that it must name."""
        resume = self.stage.expect(edge, msg.Resume, rule, lambda one: one.subscriber == self.name)
        self._check_resume(edge, resume, session)
        self.edge, self.number = edge, resume.attachment
        self.state.n, self.state.version = resume.epoch[1], resume.version
        return resume

    def answer(
        self, *, head: str = "h", epoch: int = EPOCH, position: int | None = None, gap: msg.Gap | None = None,
        lapsed: bool = False, suback: bool = True,
    ) -> None:  # fmt: skip
        """RESUMED, and SUBACK behind it."""
        at = self.state.token[2] if position is None and self.state.token else position or 0
        if gap is not None:
            self.state.gap(gap)
        self.state.token = (head, epoch, at)
        records: list[Any] = [msg.Resumed(self.number, head, epoch, at, gap, lapsed)]
        if suback:
            records.append(msg.Suback(self.number, self.state.version, []))
        self.broker.say(*records)

    def _check_resume(self, edge: str, resume: msg.Resume, session: str | None) -> None:
        state = self.state
        self._check_owner(edge, resume.attachment, resume.epoch[0])
        if state.n is not None and resume.epoch[1] != state.n + 2:
            raise RuleBrokenError(OWNER_EPOCH, f"RESUME has n {resume.epoch[1]}; it was {state.n}")
        if resume.token != state.token:
            raise RuleBrokenError(TOKEN, f"RESUME has the token {resume.token}; {state.token} is the one reached")
        marks = {(head, epoch): offset for head, epoch, offset in resume.watermarks}
        if marks != state.marks:
            raise RuleBrokenError(MARKS, f"RESUME has the watermarks {marks}; they are {state.marks}")
        self.check_list(resume.subscriptions, WHOLE_LIST)
        if resume.version < state.version:
            raise RuleBrokenError(WHOLE_LIST, f"RESUME has version {resume.version}; it was {state.version} before")
        ended, self.ended_session = self.ended_session, None
        if resume.session != session and (session is not None or resume.session != ended):
            rule = SESSION_IN_RESUME if session else NAMES_SESSION
            raise RuleBrokenError(rule, f"RESUME names the session {resume.session}; it is {session}")

    def check_list(self, given: Sequence[msg.SubscriptionItem], rule: Rule) -> None:
        texts = sorted(item.text for item in given)
        if texts != sorted(self.state.subscriptions):
            raise RuleBrokenError(rule, f"the list is {texts}; it should be {sorted(self.state.subscriptions)}")

    def _check_owner(self, edge: str, number: int, incarnation: int) -> None:
        link = self.stage.brokers[edge].open_link()
        if (link.id, number) in self._used:
            raise RuleBrokenError(NEW_NUMBER, f"attachment {number} has been used on this link to {edge} before")
        self._used.add((link.id, number))
        if incarnation != link.info.incarnation:
            raise RuleBrokenError(
                INCARNATION, f"the owner epoch has incarnation {incarnation}, HELLO {link.info.incarnation}"
            )

    # -- the stream

    def deliver(self, *numbers: int, **of: Any) -> None:
        """Publications on the attachment that serves; `of`: position, head, epoch."""
        pubs = [publication(number, **of) for number in numbers]
        for pub in pubs:
            self.state.deliver(pub)
        self.broker.say(*(msg.Deliver(self.number, pub) for pub in pubs))

    def gap(self, low: int, high: int, last: Sequence[Token] = (), reason: str = "queue") -> None:
        """A gap on the attachment that serves."""
        gap = msg.Gap("h", EPOCH, low, EPOCH, high, list(last), reason)
        self.state.gap(gap)
        self.broker.say(msg.Deliver(self.number, gap))

    def close(self, code: str) -> None:
        """ATTACHMENT_CLOSED of the attachment that serves."""
        self.broker.say(msg.AttachmentClosed(self.number, code, f"the scenario closes it: {code}"))

    def check_items(self) -> None:
        """Wait until the application has all that it must be given so far."""
        self.stage.expect_items(self.state.items, subscriber=self.name)

    def finish(self, *others: SubscriberScript) -> None:
        """The end of the scenario, for this subscriber and others."""
        for one in (self, *others):
            one.check_items()
        self.stage.finish({one.name: one.state.items for one in (self, *others)})

    # -- moving

    def move_to(self, edge: str, session: str = SESSION, n: int | None = None) -> None:
        """MOVE_TO on the attachment that serves; `n`: of another owner epoch."""
        epoch = (self.incarnation, self.state.n or 0 if n is None else n)
        endpoint = self.stage.client.endpoint(edge)
        self.broker.say(msg.MoveTo(session, [msg.MoveToItem(self.number, epoch)], edge, endpoint, ""))

    def expect_attach(self, edge: str, rule: Rule, session: str = SESSION) -> int:
        """Expect ATTACH at this edge, hold it to the state; returns the number of the second attachment."""
        attach = self.stage.expect(edge, msg.Attach, rule)
        item = attach.members[0]
        if attach.session != session:
            raise RuleBrokenError(NAMES_SESSION, f"ATTACH names {attach.session}; MOVE_TO was of {session}")
        self._check_owner(edge, item.attachment, item.epoch[0])
        if item.epoch[1] != (self.state.n or 0) + 1:
            raise RuleBrokenError(ATTACH_IS, f"ATTACH has n {item.epoch[1]}; the subscriber has {self.state.n}")
        self.check_list(item.subscriptions, ATTACH_LIST)
        return item.attachment

    def hold(self, edge: str, number: int) -> None:
        """HELD."""
        self.stage.brokers[edge].say(msg.Held([msg.HeldItem(number, self.state.version)]))

    def end(self, position: int, session: str = SESSION, head: str = "h", epoch: int = EPOCH) -> None:
        """END: the owner epoch has n + 1 from here on, and the token is that of END."""
        self.state.n = (self.state.n or 0) + 1
        self.state.token = (head, epoch, position)
        self.ended_session = session
        self.broker.say(msg.End(session, self.state.token, [self.number]))

    def take_over(self, edge: str, number: int) -> None:
        """The second attachment serves from here on."""
        self.edge, self.number = edge, number
