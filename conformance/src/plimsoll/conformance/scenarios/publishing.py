"""Publishing: numbers, credit, refusals, a lost link, a restarted head (docs/protocol.md, 5)."""

from __future__ import annotations

from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import Scenario
from plimsoll.conformance.stage import HEAD_EPOCH, Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

OPENS = Rule("5", "**OPEN** names a publisher")
CONSECUTIVE = Rule("5", "**PUBLISH** carries `seq`, rising by 1 from 1 in each incarnation")
THROUGH = Rule("5", "at most `through` of the last OPENED or CREDIT.")
BODY = Rule("5", "`sent_us` (microseconds since 1970) and the body are delivered as they are.")
ANSWERS = Rule("5", "**ACCEPTED** `through`: all up to that number are accepted")
REFUSALS = Rule("5", "**REFUSED** answers one number")
NOT_OPEN = Rule("5", "OPEN again, and go on above `last_seq`.")
AGAIN = Rule("5", "unanswered publications above `last_seq` again, with the same numbers.")
OTHER_EPOCH = Rule("5", "Unanswered publications are **unknown**")
NEXT_INCARNATION = Rule("5", "Continue in a new incarnation.")
FORGOTTEN = Rule("5", "an answer to OPEN whose `last_seq` is below a number that was answered")
ANSWERED = Rule("5", "Ignore an answer to a number that has its answer.")
CREDIT = Rule("3.1", "and sends nothing above the credit.")

NAME = "p"


class PublisherScript:
    """The head's side of one publisher of the client."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.published = 0
        self.handle = self.incarnation = -1

    def publish(self, count: int) -> None:
        """Order the next publications."""
        for _ in range(count):
            self.published += 1
            self.stage.order(do="publish", publisher=NAME, attributes={"class": "STOCK", "n": self.published})

    def expect_open(self, rule: Rule = OPENS) -> msg.Open:
        opening = self.stage.expect("h", msg.Open, rule, lambda one: one.publisher == NAME)
        self.handle, self.incarnation = opening.handle, opening.incarnation
        return opening

    def opened(self, last_seq: int = 0, through: int = 1024, epoch: int = HEAD_EPOCH) -> None:
        self.stage.head.say(msg.Opened(self.handle, "h", epoch, last_seq, through))

    def expect_numbers(self, *numbers: int, first: int = 1, rule: Rule = CONSECUTIVE) -> None:
        """The next PUBLISH records have these numbers, and the bodies of their orders. `first`: that of number 1."""
        for number in numbers:
            got = self.stage.expect("h", msg.Publish, rule)
            if got.handle != self.handle or got.seq != number:
                text = f"PUBLISH has handle {got.handle}, number {got.seq}; {self.handle}, {number} was due"
                raise RuleBrokenError(rule, text)
            order = msg.decode(msg.body, got.body).attributes.get("n")
            if order != number + first - 1:
                raise RuleBrokenError(BODY, f"number {number} has the body of publication {order}")

    def none_is_sent(self, rule: Rule, found: str) -> None:
        self.stage.quiet("h")
        self.stage.forbid("h", msg.Publish, rule, found)

    def accept(self, through: int) -> None:
        self.stage.head.say(msg.Accepted(self.handle, through))

    def expect_answers(self, answer: str, *numbers: int, rule: Rule = ANSWERS) -> None:
        for number in numbers:
            found = self.stage.expect_report("answer", rule, publisher=NAME, number=number)
            if found.get("answer") != answer:
                raise RuleBrokenError(rule, f"publication {number} is reported {found.get('answer')}; it is {answer}")

    def finish(self) -> None:
        self.stage.finish()


def publish(stage: Stage) -> None:
    """OPEN, three publications, one answer for all."""
    p = PublisherScript(stage)
    p.publish(3)
    p.expect_open()
    p.none_is_sent(OPENS, "PUBLISH has come before OPENED")
    p.opened()
    p.expect_numbers(1, 2, 3)
    p.accept(3)
    p.expect_answers("accepted", 1, 2, 3)
    p.finish()


def publisher_credit(stage: Stage) -> None:
    """Two numbers may be used, then three more."""
    p = PublisherScript(stage)
    p.publish(6)
    p.expect_open()
    p.opened(through=2)
    p.expect_numbers(1, 2)
    p.none_is_sent(THROUGH, "a number above `through` has come")
    p.accept(2)
    stage.head.say(msg.Credit(p.handle, 5))
    p.expect_numbers(3, 4, 5)
    p.none_is_sent(THROUGH, "a number above `through` has come")
    stage.head.say(msg.Credit(p.handle, 1000))
    p.expect_numbers(6)
    p.accept(6)
    p.expect_answers("accepted", 1, 2, 3, 4, 5, 6)
    p.finish()


def link_credit(stage: Stage) -> None:
    """The credit of the link is used up: no frame comes until there is more."""
    stage.head.credit = 2
    p = PublisherScript(stage)
    p.publish(1)
    p.expect_open()
    stage.head.faults.acks_held = True
    p.opened()
    for _ in range(5):
        p.publish(1)
        stage.quiet("e1", seconds=0.1)
    stage.head.acknowledge()
    p.expect_numbers(1, 2, 3, 4, 5, 6, rule=CREDIT)
    p.accept(6)
    p.expect_answers("accepted", 1, 2, 3, 4, 5, 6)
    p.finish()


def refused_one_by_one(stage: Stage) -> None:
    """Number 2 is refused; ACCEPTED 3 answers the others."""
    p = PublisherScript(stage)
    p.publish(3)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2, 3)
    stage.head.say(msg.Refused(p.handle, 2, "oversized", "the scenario refuses it"), msg.Accepted(p.handle, 3))
    p.expect_answers("refused", 2, rule=REFUSALS)
    p.expect_answers("accepted", 1, 3)
    p.publish(1)
    p.expect_numbers(4, rule=REFUSALS)
    p.accept(4)
    p.expect_answers("accepted", 4)
    p.finish()


def unconfirmed(stage: Stage) -> None:
    """Number 1 is accepted, but not confirmed by an edge: that is an acceptance."""
    p = PublisherScript(stage)
    p.publish(2)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2)
    stage.head.say(msg.Unconfirmed(p.handle, 1, ["e2"]), msg.Accepted(p.handle, 2))
    p.expect_answers("unconfirmed", 1)
    p.expect_answers("accepted", 2)
    p.finish()


def not_open(stage: Stage) -> None:
    """The head refuses a number, `not-open`: OPEN again, and go on above `last_seq`."""
    p = PublisherScript(stage)
    p.publish(2)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2)
    stage.head.say(msg.Refused(p.handle, 2, "not-open", "open a publisher with this handle first"))
    p.expect_open(NOT_OPEN)
    p.opened(last_seq=1)
    p.expect_numbers(2, rule=NOT_OPEN)
    p.accept(2)
    p.expect_answers("accepted", 1, 2)
    p.finish()


def head_link_lost(stage: Stage) -> None:
    """The link is lost with four numbers unanswered; the head has two of them."""
    p = PublisherScript(stage)
    p.publish(4)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2, 3, 4)
    _lose_head_link(stage)
    p.expect_open(AGAIN)
    p.opened(last_seq=2)
    p.expect_numbers(3, 4, rule=AGAIN)
    p.accept(4)
    p.expect_answers("accepted", 1, 2, 3, 4)
    p.publish(1)
    p.expect_numbers(5)
    p.accept(5)
    p.expect_answers("accepted", 5)
    p.finish()


def head_restarted(stage: Stage) -> None:
    """The head comes back in another epoch: what was unanswered is unknown, and a new incarnation begins at 1."""
    p = PublisherScript(stage)
    p.publish(2)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2)
    p.accept(1)
    p.expect_answers("accepted", 1)
    _lose_head_link(stage)
    before = p.expect_open(AGAIN).incarnation
    p.opened(epoch=HEAD_EPOCH + 1)
    p.expect_answers("unknown", 2, rule=OTHER_EPOCH)
    opening = p.expect_open(NEXT_INCARNATION)
    if opening.incarnation <= before:
        raise RuleBrokenError(NEXT_INCARNATION, f"OPEN has incarnation {opening.incarnation} after {before}")
    p.opened(epoch=HEAD_EPOCH + 1)
    p.none_is_sent(OTHER_EPOCH, "a publication that is unknown was sent again")
    p.publish(1)
    p.expect_numbers(1, first=3, rule=NEXT_INCARNATION)
    p.accept(1)
    p.expect_answers("accepted", 3)
    p.finish()


def forgotten(stage: Stage) -> None:
    """The head knows less of the publisher than it has answered: that is a loss of memory, too."""
    p = PublisherScript(stage)
    p.publish(3)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2, 3)
    p.accept(2)
    p.expect_answers("accepted", 1, 2)
    _lose_head_link(stage)
    before = p.expect_open(AGAIN).incarnation
    p.opened(last_seq=0)
    p.expect_answers("unknown", 3, rule=FORGOTTEN)
    if p.expect_open(NEXT_INCARNATION).incarnation <= before:
        raise RuleBrokenError(NEXT_INCARNATION, f"OPEN has incarnation {p.incarnation} after {before}")
    p.opened()
    p.none_is_sent(FORGOTTEN, "a publication that is unknown was sent again")
    p.finish()


def answers_repeated(stage: Stage) -> None:
    """Behind a lost link the head repeats answers that the client has had: each publication has one answer."""
    p = PublisherScript(stage)
    p.publish(3)
    p.expect_open()
    p.opened()
    p.expect_numbers(1, 2, 3)
    stage.head.say(
        msg.Unconfirmed(p.handle, 1, ["e2"]), msg.Refused(p.handle, 2, "oversized", "once"), msg.Accepted(p.handle, 3)
    )
    p.expect_answers("unconfirmed", 1)
    p.expect_answers("refused", 2)
    p.expect_answers("accepted", 3)
    _lose_head_link(stage)
    p.expect_open(AGAIN)
    p.opened(last_seq=3)
    stage.head.say(
        msg.Unconfirmed(p.handle, 1, ["e2"]), msg.Refused(p.handle, 2, "oversized", "again"), msg.Accepted(p.handle, 3)
    )
    p.none_is_sent(ANSWERED, "a publication that was answered was sent again")
    answers = [report.get("number") for report in stage.reports if report.get("event") == "answer"]
    if sorted(map(str, answers)) != ["1", "2", "3"]:
        raise RuleBrokenError(ANSWERED, f"answers to the publications {answers} were reported; three were due")
    p.finish()


def _lose_head_link(stage: Stage) -> None:
    stage.head.forget_links()
    stage.break_connections("h")


def publications_repeated(stage: Stage) -> None:
    """The frame with PUBLISH is lost: the link sends it again, under the same numbers, and once."""
    p = PublisherScript(stage)
    p.publish(1)
    p.expect_open()
    p.opened()
    p.expect_numbers(1)
    head = stage.head
    head.faults.received_lost = 1
    p.publish(1)
    stage.until(lambda: not head.faults.received_lost, CONSECUTIVE, "no PUBLISH has come")
    head.out(head.open_link().peer, wire.who_frame())
    p.expect_numbers(2)
    p.accept(2)
    p.expect_answers("accepted", 1, 2)
    p.finish()


SCENARIOS = (
    Scenario("publish", "5", "three publications, one answer", publish),
    Scenario("publisher-credit", "5", "numbers above `through` wait for CREDIT", publisher_credit),
    Scenario("link-credit", "3.1", "frames above the credit of the link wait", link_credit),
    Scenario("publication-refused", "5", "one number is refused", refused_one_by_one),
    Scenario("publication-unconfirmed", "5", "one number is unconfirmed", unconfirmed),
    Scenario("publisher-not-open", "5", "a number is refused, `not-open`", not_open),
    Scenario("publication-lost", "3.1", "the frame with PUBLISH is lost", publications_repeated),
    Scenario("head-link-lost", "5", "the link to the head is lost", head_link_lost),
    Scenario("head-restarted", "5", "the head comes back in another epoch", head_restarted),
    Scenario("answers-repeated", "5", "answers come again behind a lost link", answers_repeated),
    Scenario("publisher-forgotten", "5", "the head has forgotten the publisher", forgotten),
)
