"""Moves by drain, and what must not begin one (docs/protocol.md, 6.4 and 6.5)."""

from __future__ import annotations

from plimsoll.conformance.expected_state import publication
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import FULL, Scenario
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SESSION, SubscriberScript
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

ATTACHES = Rule("6.4", "The client opens a link to the edge at `endpoint`, or uses the one that it has.")
ONLY_THEN = Rule(
    "6.4", "**MOVE_TO** counts only on *current*, after RESUMED, if `epoch` is the subscriber's owner epoch now"
)
GO_AT_END = Rule(
    "6.4", "*next* is attached and its link has not been lost: send GO to B, and DETACH to A, without `withdraw`."
)
TAKES_OVER = Rule("6.4", "the owner epoch has `n + 1`, `token` is the subscriber's token")
COUNT_IN = Rule("6.4", "positions on this attachment count in.")
STAYS = Rule(
    "6.4", "**STAY**: the hand-over is aborted. DETACH *next*, if there is one; *current* continues unchanged."
)
AT_WATERMARK = Rule("6.4", "their watermark: discard them (6.3).")
PROGRESS_NOT = Rule("6.4", "a PROGRESS on that")


def begin(stage: Stage, to: str = "e2") -> tuple[SubscriberScript, int]:
    """Attached at e1 with two deliveries, and on standby at the target; returns the number of the second attachment."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.move_to(to)
    number = x.expect_attach(to, ATTACHES)
    x.hold(to, number)
    return x, number


def expect_go(x: SubscriberScript, number: int, edge: str = "e2", session: str = SESSION) -> msg.GoItem:
    """GO at the target, and DETACH at the source; the target serves from here on."""
    go = x.stage.expect(edge, msg.Go, GO_AT_END)
    if go.session != session or [item.attachment for item in go.members] != [number]:
        raise RuleBrokenError(GO_AT_END, f"GO is {go}; attachment {number} of session {session} was due")
    expect_detach(x, x.edge, x.number, GO_AT_END)
    x.take_over(edge, number)
    return go.members[0]


def expect_detach(x: SubscriberScript, edge: str, number: int, rule: Rule) -> None:
    detach = x.stage.expect(edge, msg.Detach, rule)
    if detach.attachments != [number] or detach.withdraw:
        raise RuleBrokenError(rule, f"DETACH is {detach}; attachment {number} without `withdraw` was due")


def resume_after(x: SubscriberScript, edge: str = "e2", rule: Rule = TAKES_OVER) -> None:
    """Close the attachment that serves: RESUME shows the owner epoch, token and watermarks that the client holds."""
    x.stage.placement = [edge]
    x.close("head")
    x.expect_resume(edge, rule=rule)
    x.answer()


def drain(stage: Stage) -> None:
    """MOVE_TO, ATTACH, HELD, END, GO."""
    x, number = begin(stage)
    x.deliver(3)
    x.end(position=3)
    expect_go(x, number)
    x.deliver(4, 5)
    x.check_items()
    resume_after(x)
    x.deliver(6)
    x.finish()


def back_and_forth(stage: Stage) -> None:
    """Three moves, one after the other; links are used again, attachment numbers are not."""
    x = SubscriberScript(stage).attach()
    number = 0
    for target in ("e2", "e1", "e2"):
        x.deliver(number + 1)
        x.move_to(target)
        standby = x.expect_attach(target, ATTACHES)
        x.hold(target, standby)
        x.deliver(number + 2)
        number += 2
        x.end(position=number)
        expect_go(x, standby, target)
    x.deliver(number + 1)
    resume_after(x)
    x.finish()


def stay(stage: Stage) -> None:
    """The hand-over is aborted: *current* continues, and a later one can begin. STAY of another session is no STAY."""
    x, number = begin(stage)
    x.broker.say(msg.Stay(x.number, "2.9"))
    stage.quiet()
    stage.forbid("e2", msg.Detach, STAYS, "STAY of another session has ended this one")
    x.broker.say(msg.Stay(x.number, SESSION))
    expect_detach(x, "e2", number, STAYS)
    x.deliver(3)
    x.check_items()
    x.move_to("e3", "3.2")
    again = x.expect_attach("e3", STAYS, "3.2")
    x.hold("e3", again)
    x.broker.say(msg.Stay(x.number, "3.2"))
    expect_detach(x, "e3", again, STAYS)
    x.deliver(4)
    resume_after(x, "e1", STAYS)
    x.finish()


def does_not_begin(stage: Stage) -> None:
    """MOVE_TO of another owner epoch, to the same edge, before RESUMED, and during another hand-over."""
    x = SubscriberScript(stage)
    x.subscribe()
    x.expect_resume("e1")
    x.move_to("e2", "3.0")
    stage.quiet()
    x.answer()
    x.deliver(1)
    x.move_to("e2", "3.1", n=(x.state.n or 0) + 1)
    x.move_to("e1", "3.2")
    stage.quiet()
    for edge in ("e1", "e2"):
        stage.forbid(edge, msg.Attach, ONLY_THEN, "a MOVE_TO that does not count was followed")
    x.move_to("e2", SESSION)
    number = x.expect_attach("e2", ATTACHES)
    x.move_to("e3", "3.4")
    stage.quiet()
    stage.forbid("e3", msg.Attach, ONLY_THEN, "a second MOVE_TO was followed during the first hand-over")
    x.hold("e2", number)
    x.end(position=1)
    expect_go(x, number)
    x.deliver(2)
    x.finish()


def held_late(stage: Stage) -> None:
    """HELD comes behind END: GO does not wait for it."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.move_to("e2")
    number = x.expect_attach("e2", ATTACHES)
    x.end(position=1)
    expect_go(x, number)
    x.hold("e2", number)
    x.deliver(2)
    x.finish()


def frames_lost(stage: Stage) -> None:
    """The frame with END is lost, and comes again behind HELLO; every frame of the target comes twice."""
    x, number = begin(stage)
    source, target = stage.brokers["e1"], stage.brokers["e2"]
    target.faults.sent_twice = True
    source.faults.sent_lost = 1
    x.deliver(3)
    x.end(position=3)
    expect_go(x, number)
    x.deliver(4, 5)
    x.check_items()
    stage.quiet()
    stage.forbid("e2", msg.Go, GO_AT_END, "GO was sent twice")
    x.finish()


def across(stage: Stage) -> None:
    """The target has another head: positions are of another log, and what came before END may come again."""
    x, number = begin(stage)
    x.deliver(3, 4)
    x.end(position=700, head="k", epoch=5)
    expect_go(x, number)
    x.deliver(3, position=701)
    x.deliver(4, position=702)
    x.deliver(5, position=703)
    stage.expect_items(x.state.items, AT_WATERMARK)
    resume_after(x, rule=COUNT_IN)
    x.finish()


def progress_of_target(stage: Stage) -> None:
    """A PROGRESS of the target before GO is about neither attachment; behind GO it counts, except for those behind."""
    x, number = begin(stage)
    target = stage.brokers["e2"]
    target.say(msg.Progress(900))
    stage.quiet("e2")
    stage.placement = ["e1"]
    x.close("head")
    expect_detach(x, "e2", number, PROGRESS_NOT)
    x.expect_resume("e1", rule=PROGRESS_NOT)
    x.answer()
    x.move_to("e2", "3.2")
    number = x.expect_attach("e2", ATTACHES, "3.2")
    x.hold("e2", number)
    x.end(position=5, session="3.2")
    expect_go(x, number, session="3.2")
    target.say(msg.Progress(950, [number]))
    target.say(msg.Progress(901))
    x.state.reach(901)
    stage.quiet("e2")
    resume_after(x, rule=PROGRESS_NOT)
    x.finish()


def go_lost(stage: Stage) -> None:
    """The frame with GO is lost on its way, and WHO asks for it: it comes again, and once."""
    x, number = begin(stage)
    target = stage.brokers["e2"]
    target.faults.received_lost = 1
    x.end(position=2)
    stage.until(lambda: not target.faults.received_lost, GO_AT_END, "nothing has come to e2")
    target.out(target.open_link().peer, wire.who_frame())
    expect_go(x, number)
    x.deliver(3)
    x.check_items()
    stage.quiet()
    stage.forbid("e2", msg.Go, GO_AT_END, "GO was sent twice")
    x.finish()


def early_delivery(stage: Stage) -> None:
    """A delivery on the second attachment before GO breaks the protocol; no application may be given it."""
    x, number = begin(stage)
    stage.brokers["e2"].say(msg.Deliver(number, publication(9)))
    stage.quiet("e2")
    x.deliver(3)
    x.end(position=3)
    expect_go(x, number)
    x.deliver(4)
    x.finish()


SCENARIOS = tuple(
    Scenario(name, section, title, play, FULL)
    for name, section, title, play in (
        ("move", "6.4", "a move by drain", drain),
        ("move-back", "6.4", "three moves, there and back", back_and_forth),
        ("move-stay", "6.4", "STAY", stay),
        ("move-not-begun", "6.4", "four MOVE_TO that do not count", does_not_begin),
        ("move-held-late", "6.4", "HELD behind END", held_late),
        ("move-frames-lost", "6.4", "END is lost, frames of the target come twice", frames_lost),
        ("move-across", "6.4", "a target of another head", across),
        ("move-progress", "6.4", "PROGRESS of the target before GO", progress_of_target),
        ("move-go-lost", "6.4", "the frame with GO is lost", go_lost),
        ("move-early-delivery", "6.4", "a delivery before GO", early_delivery),
    )
)
