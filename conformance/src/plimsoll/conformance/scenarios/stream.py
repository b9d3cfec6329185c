"""The stream of an attachment, and what ends it: GAP, PROGRESS, EPOCH, MOVED, ATTACHMENT_CLOSED: protocol.md, 6.3."""

from __future__ import annotations

from plimsoll.conformance.expected_state import EPOCH, publication
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import SIMPLE, Scenario
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SESSION, SubscriberScript
from plimsoll.core.protocol import messages as msg

JOIN_HEAD = Rule("6.1", "so a subscriber with a token asks for an edge of the head that the token")
CLOSED = Rule("6.3", "Except after `slow`, `role`, `policy`, `range` and `epoch`, JOIN and RESUME from the token.")
FINAL = Rule("6.3", "the policy `disconnect`; final")
IGNORED = Rule("6.3", "records for it that were on their way are")
WATERMARK = Rule("6.3", "at or below its watermark is a repetition: discard it.")
GAP = Rule("6.3", "positions `low` to `high` of this head's log may hold")
PROGRESS_FOR = Rule(
    "6.3", "and the position of each **PROGRESS** on the link, except for attachments named in `behind`."
)
EPOCH_RULE = Rule("6.3", "**EPOCH** reports that the head has restarted while the subscriber stayed attached")
MOVED_TO = Rule("6.3", "With an endpoint: RESUME there, with its `session`")
MOVED_AWAY = Rule("6.3", "With an empty one: JOIN, and exclude this edge.")
IGNORES_MOVE = Rule("6.4", "There is no answer: a subscriber that does not attach stays where it is.")


def closed(stage: Stage) -> None:
    """The attachment is closed again and again: each time the subscriber goes on from its token, with n + 2."""
    x = SubscriberScript(stage).attach()
    number = 0
    for code in ("head", "released", "parted", "leaving"):
        x.deliver(number + 1, number + 2)
        number += 2
        x.check_items()
        stage.placement = ["e2"] if code == "leaving" else ["e1"]
        joins = len(stage.joins)
        x.close(code)
        x.expect_resume("e2" if code == "leaving" else "e1", rule=CLOSED)
        x.answer()
        if stage.joins[joins].head not in ("", "h"):
            raise RuleBrokenError(JOIN_HEAD, f"JOIN asks for an edge of {stage.joins[joins].head}")
    x.deliver(number + 1)
    x.finish()


def closed_epoch(stage: Stage) -> None:
    """The edge has this owner epoch already: the subscriber raises it."""
    x = SubscriberScript(stage)
    x.subscribe()
    x.expect_resume("e1")
    x.close("epoch")
    x.resume_at("e1")
    x.deliver(1)
    x.finish()


def closed_for_good(stage: Stage) -> None:
    """The policy `disconnect` has ended the subscriber: it does not come back."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    joins = len(stage.joins)
    x.close("slow")
    stage.quiet(seconds=3.0)
    stage.forbid("e1", msg.Resume, FINAL, "the subscriber has resumed")
    if len(stage.joins) > joins:
        raise RuleBrokenError(FINAL, "the subscriber has asked for an edge again")
    x.finish()


def late_records(stage: Stage) -> None:
    """A delivery for the old attachment comes behind its end: it is ignored, and comes from the log instead."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    old = x.number
    x.close("head")
    stage.brokers["e1"].say(msg.Deliver(old, publication(2)))
    x.expect_resume("e1", rule=IGNORED)
    stage.brokers["e1"].say(msg.Deliver(old, publication(3)))
    x.answer()
    x.deliver(2, 3)
    x.finish()


def repetitions(stage: Stage) -> None:
    """Publications at or below their watermark come again behind a RESUME at another head, with its positions."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2, 3)
    x.check_items()
    x.close("head")
    x.expect_resume("e1")
    x.answer(head="k", epoch=5, position=100)
    x.deliver(2, position=101)
    x.deliver(3, position=102)
    x.deliver(4, position=103)
    x.check_items()
    x.close("head")
    x.expect_resume("e1", rule=WATERMARK)
    x.answer(head="k", epoch=5)
    x.finish()


def gaps(stage: Stage) -> None:
    """A gap has its place in the stream, moves the token and raises the watermarks."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.gap(2, 5, [("h", EPOCH, 5), ("k", 5, 9)])
    x.deliver(6)
    stage.expect_items(x.state.items, GAP)
    x.close("head")
    x.resume_at("e1")
    x.gap(7, 9)
    stage.expect_items(x.state.items, GAP)
    x.close("head")
    x.resume_at("e1")
    x.finish()


def progress(stage: Stage) -> None:
    """PROGRESS moves the token of an idle subscriber, unless it is named as behind; it never goes back."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    edge = stage.brokers["e1"]
    edge.say(msg.Progress(20))
    x.state.reach(20)
    edge.say(msg.Progress(30, [x.number]))
    edge.say(msg.Progress(10))
    x.check_items()
    stage.quiet("e1")
    x.close("head")
    x.expect_resume("e1", rule=PROGRESS_FOR)
    x.answer()
    x.finish()


def head_restarts_under_it(stage: Stage) -> None:
    """EPOCH: a gap to take; positions begin at 1 in the next epoch, and so do offsets."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2, 3)
    gap = msg.Gap("h", EPOCH, 4, EPOCH + 1, 1, [], "restart")
    x.state.gap(gap)
    x.broker.say(msg.Epoch(x.number, gap))
    x.deliver(2, epoch=EPOCH + 1)
    stage.expect_items(x.state.items, EPOCH_RULE)
    x.close("head")
    x.expect_resume("e1", rule=EPOCH_RULE)
    x.answer(epoch=EPOCH + 1)
    x.deliver(3, epoch=EPOCH + 1)
    x.finish()


def moved_by_replay(stage: Stage) -> None:
    """MOVED to another edge and back: RESUME there with the session, and without it the next time."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    joins = len(stage.joins)
    _moved(x, "e2", SESSION)
    x.resume_at("e2", session=SESSION)
    if len(stage.joins) > joins:
        raise RuleBrokenError(MOVED_TO, "the client has asked the head for an edge, though MOVED names one")
    x.deliver(3)
    x.check_items()
    stage.placement = ["e2"]
    x.close("head")
    x.resume_at("e2")
    x.deliver(4)
    _moved(x, "e1", "3.2")
    x.resume_at("e1", session="3.2")
    x.deliver(5)
    x.finish()


def moved_away(stage: Stage) -> None:
    """MOVED without an edge: JOIN, and exclude this one."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    stage.placement = ["e2"]
    joins = len(stage.joins)
    x.broker.say(msg.Moved([x.number], "", "", ""))
    x.resume_at("e2")
    if "e1" not in stage.joins[joins].exclude:
        raise RuleBrokenError(MOVED_AWAY, f"JOIN excludes {stage.joins[joins].exclude}")
    x.deliver(2)
    x.finish()


def two_moved_together(stage: Stage) -> None:
    """MOVED names two attachments of a link: both resume there, each from its own token."""
    x, y = SubscriberScript(stage, "s").attach(), SubscriberScript(stage, "t").attach()
    x.deliver(1, 2)
    y.deliver(1)
    x.check_items()
    endpoint = stage.client.endpoint("e2")
    stage.brokers["e1"].say(msg.Moved([x.number, y.number], "e2", endpoint, "", SESSION))
    y.resume_at("e2", session=SESSION)
    x.resume_at("e2", session=SESSION)
    x.deliver(3)
    y.deliver(3)
    x.finish(y)


def move_to_ignored(stage: Stage) -> None:
    """A client without ATTACH leaves MOVE_TO and STAY alone, and is moved by replay."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.move_to("e2")
    x.deliver(2)
    stage.quiet(seconds=1.0)
    for kind in (msg.Resume, msg.Attach):
        for edge in ("e1", "e2"):
            stage.forbid(edge, kind, IGNORES_MOVE, "MOVE_TO was followed")
    x.broker.say(msg.Stay(x.number, SESSION))
    x.deliver(3)
    _moved(x, "e2", "3.2")
    x.resume_at("e2", session="3.2")
    x.deliver(4)
    x.finish()


def _moved(x: SubscriberScript, edge: str, session: str) -> None:
    x.broker.say(msg.Moved([x.number], edge, x.stage.client.endpoint(edge), "", session))


SCENARIOS = (
    Scenario("closed", "6.3", "ATTACHMENT_CLOSED, four times", closed),
    Scenario("closed-epoch", "6.3", "ATTACHMENT_CLOSED `epoch`", closed_epoch),
    Scenario("closed-for-good", "6.3", "ATTACHMENT_CLOSED `slow`", closed_for_good),
    Scenario("late-records", "6.3", "deliveries of an attachment that is over", late_records),
    Scenario("repetitions", "6.3", "publications at or below their watermark", repetitions),
    Scenario("gaps", "6.3", "GAP in the stream", gaps),
    Scenario("progress", "6.3", "PROGRESS, with and without `behind`", progress),
    Scenario("epoch", "6.3", "EPOCH under a subscriber", head_restarts_under_it),
    Scenario("moved", "6.3", "MOVED to an edge, with a session", moved_by_replay),
    Scenario("moved-away", "6.3", "MOVED without an edge", moved_away),
    Scenario("moved-together", "6.3", "MOVED of two subscribers", two_moved_together),
)
MOVE_TO_IGNORED = Scenario(
    "move-to-ignored", "6.4", "MOVE_TO and STAY for a client without ATTACH", move_to_ignored, SIMPLE
)
