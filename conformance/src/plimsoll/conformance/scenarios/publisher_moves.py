"""Publishers that are to move to another head, and new ones that a head does not take (docs/protocol.md, 5 and 5.1).

The broker e3 plays the other head.
"""

from __future__ import annotations

from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import FULL, SIMPLE, Scenario
from plimsoll.conformance.scenarios.publishing import PublisherScript
from plimsoll.conformance.stage import Stage
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

STANDBY = Rule("5.1", "sends **OPEN_STANDBY** with a")
SAME_PUBLISHER = Rule(
    "5.1", "the same publisher and incarnation, the session and, as `source`, the head that it is at."
)
SILENT = Rule("5.1", "Then the client sends no more PUBLISH")
GO = Rule("5.1", "waits until all that it has sent is answered, and sends **PUBLISHER_GO** to the old head.")
STAYS = Rule("5.1", "the client publishes there as before and CLOSEs the standby")
CONTINUES = Rule("5.1", "The client goes on")
RETURNS = Rule("5.1", "CLOSEs the standby handle and sends")
IGNORES = Rule("5.1", "A client that ignores PUBLISHER_MOVE stays where it is, and nothing is lost by that.")
ELSEWHERE = Rule("5", "A client either opens the")
CORDONED = Rule("5", "or it takes REFUSED for the")

OTHER, OTHER_EPOCH, SESSION = "e3", 13, "3.1"


class MoveScript(PublisherScript):
    """A publisher at h that is asked to go to the other head. `standby`: its handle there."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        stage.brokers[OTHER].info = wire.Info(OTHER, "head", OTHER_EPOCH)
        self.standby = -1

    def begin(self) -> None:
        """Two publications are under way, and the head asks it to move."""
        self.publish(2)
        self.expect_open()
        self.opened()
        self.expect_numbers(1, 2)
        self.stage.head.say(msg.PublisherMove(self.handle, SESSION, OTHER, self.stage.client.endpoint(OTHER), ""))

    def expect_standby(self) -> None:
        opening = self.stage.expect(OTHER, msg.OpenStandby, STANDBY)
        found = opening.publisher, opening.incarnation, opening.session, opening.source
        if found != ("p", self.incarnation, SESSION, "h"):
            raise RuleBrokenError(SAME_PUBLISHER, f"OPEN_STANDBY names {found}")
        self.standby = opening.handle
        self.stage.brokers[OTHER].say(msg.PublisherStandby(self.standby))

    def expect_go(self) -> None:
        """It is silent from now on, and says GO behind the answer to its last publication."""
        self.stage.quiet("h", OTHER)  # it knows that it is on standby before the application publishes again
        self.publish(1)
        self.stage.quiet("h", OTHER)
        self.stage.forbid("h", msg.PublisherGo, GO, "PUBLISHER_GO has come before all was answered")
        self._is_silent()
        self.accept(2)
        self.expect_answers("accepted", 1, 2)
        going = self.stage.expect("h", msg.PublisherGo, GO)
        if (going.handle, going.session) != (self.handle, SESSION):
            raise RuleBrokenError(GO, f"PUBLISHER_GO names handle {going.handle} and session {going.session}")
        self._is_silent()

    def _is_silent(self) -> None:
        self.stage.quiet("h", OTHER)
        for broker in ("h", OTHER):
            self.stage.forbid(broker, msg.Publish, SILENT, f"PUBLISH has come to {broker}")

    def expect_close(self, rule: Rule) -> None:
        closing = self.stage.expect(OTHER, msg.Close, rule)
        if closing.handle != self.standby:
            raise RuleBrokenError(rule, f"CLOSE has handle {closing.handle}; {self.standby} was on standby")

    def goes_on_at_home(self, rule: Rule) -> None:
        self.expect_numbers(3, rule=rule)
        self.accept(3)
        self.expect_answers("accepted", 3)
        self.finish()


def moves(stage: Stage) -> None:
    """It is let go: the third number comes to the other head."""
    p = MoveScript(stage)
    p.begin()
    p.expect_standby()
    p.expect_go()
    stage.head.say(msg.PublisherLeft(p.handle, SESSION, 2))
    stage.brokers[OTHER].say(msg.Opened(p.standby, OTHER, OTHER_EPOCH, 2, 1024))
    got = stage.expect(OTHER, msg.Publish, CONTINUES)
    if (got.handle, got.seq) != (p.standby, 3):
        raise RuleBrokenError(CONTINUES, f"PUBLISH has handle {got.handle}, number {got.seq}; {p.standby}, 3 was due")
    stage.brokers[OTHER].say(msg.Accepted(p.standby, 3))
    p.expect_answers("accepted", 3)
    p.finish()


def stays(stage: Stage) -> None:
    """The head decides that it stays: it goes on there, and the other head may forget it."""
    p = MoveScript(stage)
    p.begin()
    p.expect_standby()
    p.expect_go()
    stage.head.say(msg.PublisherStay(p.handle, SESSION))
    p.expect_close(STAYS)
    p.goes_on_at_home(STAYS)


def returns(stage: Stage) -> None:
    """No head opens it: it asks its old head to take it again."""
    p = MoveScript(stage)
    p.begin()
    p.expect_standby()
    p.expect_go()
    p.expect_close(RETURNS)
    opening = stage.expect("h", msg.OpenReturning, RETURNS)
    if (opening.publisher, opening.incarnation, opening.session) != ("p", p.incarnation, SESSION):
        raise RuleBrokenError(RETURNS, f"OPEN_RETURNING names {opening}")
    p.handle = opening.handle
    p.opened(last_seq=2)
    p.goes_on_at_home(RETURNS)


def ignores(stage: Stage) -> None:
    """It stays: no record says that it has understood, and the head's time for the move ends in STAY."""
    p = MoveScript(stage)
    p.begin()
    p.accept(2)
    p.expect_answers("accepted", 1, 2)
    p.publish(1)
    p.expect_numbers(3, rule=IGNORES)
    stage.head.say(msg.PublisherStay(p.handle, SESSION))
    p.accept(3)
    p.expect_answers("accepted", 3)
    stage.quiet("h")
    for kind in (msg.OpenStandby, msg.PublisherGo, msg.OpenReturning, msg.Open):
        stage.forbid("h", kind, IGNORES, f"{kind.__name__} has come")
    p.finish()


def _sends_away(stage: Stage) -> MoveScript:
    p = MoveScript(stage)
    p.publish(1)
    p.expect_open()
    text = f"h takes no new publishers, since it is to be replaced: connect to {OTHER}"
    stage.head.say(
        msg.PublisherElsewhere(p.handle, OTHER, stage.client.endpoint(OTHER), ""),
        msg.Refused(p.handle, 0, "cordoned", text),
    )
    return p


def elsewhere(stage: Stage) -> None:
    """A cordoned head names another one: the publisher opens there, and publishes there."""
    p = _sends_away(stage)
    opening = stage.expect(OTHER, msg.Open, ELSEWHERE)
    if (opening.publisher, opening.incarnation) != ("p", p.incarnation):
        raise RuleBrokenError(ELSEWHERE, f"OPEN names {opening.publisher}, incarnation {opening.incarnation}")
    stage.brokers[OTHER].say(msg.Opened(opening.handle, OTHER, OTHER_EPOCH, 0, 1024))
    got = stage.expect(OTHER, msg.Publish, ELSEWHERE)
    if (got.handle, got.seq) != (opening.handle, 1):
        raise RuleBrokenError(ELSEWHERE, f"PUBLISH has handle {got.handle}, number {got.seq}; {opening.handle}, 1")
    stage.brokers[OTHER].say(msg.Accepted(opening.handle, 1))
    p.expect_answers("accepted", 1)
    p.finish()


def cordoned(stage: Stage) -> None:
    """A client that ignores the record takes REFUSED for the end of the publisher: it does not ask again."""
    p = _sends_away(stage)
    stage.quiet("h", seconds=1.0)
    stage.forbid("h", msg.Open, CORDONED, "OPEN has come again")
    stage.forbid("h", msg.Publish, CORDONED, "PUBLISH has come")
    p.finish()


SCENARIOS = (
    Scenario("publisher-moves", "5.1", "a publisher goes on at another head", moves, FULL),
    Scenario("publisher-stays", "5.1", "the head decides that it stays", stays, FULL),
    Scenario("publisher-returns", "5.1", "no head opens it, and it returns", returns, FULL),
    Scenario("publisher-move-ignored", "5.1", "it ignores the wish to move, and stays", ignores, SIMPLE),
    Scenario("publisher-elsewhere", "5", "a cordoned head names another one", elsewhere, FULL),
    Scenario("publisher-cordoned", "5", "a cordoned head refuses it", cordoned, SIMPLE),
)
