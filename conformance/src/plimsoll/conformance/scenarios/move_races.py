"""Moves that something else ends: closed attachments, lost links, EPOCH and MOVED in the middle: protocol.md, 6.4."""

from __future__ import annotations

from plimsoll.conformance.expected_state import EPOCH
from plimsoll.conformance.rules import Rule
from plimsoll.conformance.scenario import FULL, Scenario
from plimsoll.conformance.scenarios.moves import ATTACHES, begin, expect_detach, expect_go, resume_after
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SESSION, SubscriberScript
from plimsoll.core.protocol import messages as msg

NEXT_IS_GONE = Rule("6.4", "If *next* is ATTACHMENT_CLOSED, or its link is lost, *current* goes on, until END or STAY.")
RESUMES_AT_END = Rule("6.4", "`n + 1` and the token anyway, and RESUME (`n` raised by 2 again) at B, with `session`")
IS_OVER = Rule("6.4", "the hand-over is over for this client: DETACH *next*; after EPOCH *current*")
WITHOUT_NEXT = Rule("6.4", "else RESUME as always, with `n` raised by 2 and the token of what has been had.")
END_TOKEN = Rule("6.4", "If what was had ends with END, that")
LINK_LOST = Rule("6.3", "When a link to an edge is lost or over, its attachments are closed on both sides.")
ANOTHER_EDGE = Rule("6.4", "if B does not answer, at another edge of the token's head.")
UNKNOWN_END = Rule("6.4", "An END of a session that the subscriber does not know")
LOST_SECONDS = 25.0


def next_closed(stage: Stage) -> None:
    """The second attachment is closed before END; then STAY: nothing has happened to *current*."""
    x, number = begin(stage)
    stage.brokers["e2"].say(msg.AttachmentClosed(number, "session", "there was no cut in time"))
    x.deliver(3)
    stage.quiet()
    for edge in ("e1", "e2"):
        stage.forbid(edge, msg.Resume, NEXT_IS_GONE, "the subscriber has resumed, though *current* serves it")
    x.broker.say(msg.Stay(x.number, SESSION))
    x.deliver(4)
    resume_after(x, "e1", NEXT_IS_GONE)
    x.finish()


def next_refused_then_end(stage: Stage) -> None:
    """What was held has filled its queue: *current* goes on to END, then RESUME at the target from END's token."""
    x, number = begin(stage)
    stage.brokers["e2"].say(msg.AttachmentClosed(number, "hold", "more was held than your queue may have"))
    x.deliver(3)
    stage.quiet("e1", "e2")
    x.end(position=5)
    expect_detach(x, "e1", x.number, RESUMES_AT_END)
    x.expect_resume("e2", SESSION, RESUMES_AT_END)
    x.answer()
    x.deliver(6)
    x.finish()


def next_lost_before_end(stage: Stage) -> None:
    """The target has lost the link before END: RESUME with the session, from END's token."""
    x, _ = begin(stage)
    _lose(stage, "e2")
    x.deliver(3)
    x.check_items()
    stage.forbid("e1", msg.Resume, NEXT_IS_GONE, "the subscriber has resumed, though *current* serves it")
    stage.placement = ["e2"]
    x.end(position=5)
    expect_detach(x, "e1", x.number, RESUMES_AT_END)
    stage.until(lambda: _resumed_somewhere(stage), RESUMES_AT_END, "no RESUME has come", LOST_SECONDS)
    x.expect_resume("e2", SESSION, RESUMES_AT_END)
    x.answer()
    x.deliver(6)
    x.finish()


def next_lost_behind_end(stage: Stage) -> None:
    """GO was sent, and the target has lost the link with what it held: RESUME from END's token."""
    x, number = begin(stage)
    x.deliver(3)
    x.end(position=5)
    expect_go(x, number)
    stage.placement = ["e2"]
    _lose(stage, "e2")
    stage.until(lambda: _resumed_somewhere(stage), END_TOKEN, "no RESUME has come", LOST_SECONDS)
    stage.brokers["e2"].inbox[:] = [
        each for each in stage.brokers["e2"].inbox if not isinstance(each.record, msg.Go | msg.Detach)
    ]
    x.expect_resume("e2", rule=END_TOKEN)
    x.answer()
    x.deliver(6)
    x.finish()


def next_connection_broken(stage: Stage) -> None:
    """The connection to the target breaks, its link does not end: the hand-over goes on, with one GO."""
    x, number = begin(stage)
    x.check_items()
    stage.break_connections("e2")
    x.deliver(3)
    x.end(position=3)
    expect_go(x, number)
    x.deliver(4)
    x.finish()


def epoch_in_the_middle(stage: Stage) -> None:
    """The head restarts: the hand-over is over, *current* goes on in the new epoch; an END of it is not to come."""
    x, number = begin(stage)
    gap = msg.Gap("h", EPOCH, 3, EPOCH + 1, 0, [], "restart")
    x.state.gap(gap)
    x.broker.say(msg.Epoch(x.number, gap))
    expect_detach(x, "e2", number, IS_OVER)
    x.deliver(1, epoch=EPOCH + 1)
    x.check_items()
    x.move_to("e3", "4.1")
    again = x.expect_attach("e3", IS_OVER, "4.1")
    x.hold("e3", again)
    x.broker.say(msg.Stay(x.number, "4.1"))
    expect_detach(x, "e3", again, IS_OVER)
    stage.placement = ["e1"]
    x.close("head")
    x.expect_resume("e1", rule=IS_OVER)
    x.answer(epoch=EPOCH + 1)
    x.finish()


def current_closed(stage: Stage) -> None:
    """*current* is closed before END: DETACH *next*, and RESUME with n + 2 from what has been had."""
    x, number = begin(stage)
    x.deliver(3)
    x.check_items()
    stage.placement = ["e1"]
    x.close("head")
    expect_detach(x, "e2", number, IS_OVER)
    x.expect_resume("e1", rule=WITHOUT_NEXT)
    x.answer()
    x.deliver(4)
    x.finish()


def current_moved(stage: Stage) -> None:
    """MOVED to a third edge in the middle: DETACH *next*, RESUME there with the session of MOVED."""
    x, number = begin(stage)
    x.deliver(3)
    x.broker.say(msg.Moved([x.number], "e3", stage.client.endpoint("e3"), "", "3.9"))
    expect_detach(x, "e2", number, IS_OVER)
    x.expect_resume("e3", "3.9", WITHOUT_NEXT)
    x.answer()
    x.deliver(4)
    x.finish()


def current_link_lost(stage: Stage) -> None:
    """The link to the source is lost before END: DETACH *next*, and RESUME from what has been had."""
    x, number = begin(stage)
    x.deliver(3)
    x.check_items()
    stage.placement = ["e3"]
    stage.brokers["e1"].end_links()
    expect_detach(x, "e2", number, IS_OVER)
    x.expect_resume("e3", rule=WITHOUT_NEXT)
    x.answer()
    x.deliver(4)
    x.finish()


def target_closed_behind_end(stage: Stage) -> None:
    """The target closes its attachment behind GO: that is *current* by then, so the subscriber resumes from there."""
    x, number = begin(stage)
    x.deliver(3)
    x.end(position=5)
    expect_go(x, number)
    stage.placement = ["e3"]
    x.close("parted")
    x.expect_resume("e3", rule=END_TOKEN)
    x.answer()
    x.deliver(6)
    x.finish()


def target_silent(stage: Stage) -> None:
    """The target is silent when END comes: after its dead time the subscriber resumes elsewhere, from END's token."""
    x, _ = begin(stage)
    x.deliver(3)
    x.check_items()
    stage.brokers["e2"].faults.is_silent = True
    stage.placement = ["e3"]
    x.end(position=5)
    expect_detach(x, "e1", x.number, RESUMES_AT_END)
    stage.until(lambda: stage.brokers["e3"].link, ANOTHER_EDGE, "no other edge has been asked", LOST_SECONDS)
    x.expect_resume("e3", rule=ANOTHER_EDGE)
    x.answer()
    x.deliver(6)
    x.finish()


def end_unknown(stage: Stage) -> None:
    """END of a session that the subscriber does not know: it has been cut, and resumes with the token of END."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    stage.placement = ["e2"]
    x.end(position=1, session="9.9")
    expect_detach(x, "e1", x.number, UNKNOWN_END)
    x.expect_resume("e2", "9.9", UNKNOWN_END)
    x.answer()
    x.deliver(2)
    x.finish()


def detached_too_late(stage: Stage) -> None:
    """Records of the source that were on their way behind DETACH are ignored."""
    x, number = begin(stage)
    old = x.number
    x.end(position=2)
    expect_go(x, number)
    stage.brokers["e1"].say(msg.AttachmentClosed(old, "released", "another edge serves this subscriber now"))
    x.deliver(3)
    stage.quiet()
    for edge in ("e1", "e2"):
        stage.forbid(edge, msg.Resume, END_TOKEN, "the subscriber has resumed for an attachment that was over")
    x.finish()


def attach_refused(stage: Stage) -> None:
    """The target refuses ATTACH: *current* goes on, and a later hand-over may use the same edge."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.move_to("e2")
    number = x.expect_attach("e2", ATTACHES)
    stage.brokers["e2"].say(msg.AttachmentClosed(number, "session", "there is no place in this hand-over"))
    stage.quiet("e2")
    x.broker.say(msg.Stay(x.number, SESSION))
    x.deliver(2)
    x.check_items()
    x.move_to("e2")
    again = x.expect_attach("e2", NEXT_IS_GONE)
    x.hold("e2", again)
    x.end(position=2)
    expect_go(x, again)
    x.deliver(3)
    x.finish()


def _lose(stage: Stage, edge: str) -> None:
    """The edge has lost its links, as after a restart."""
    stage.brokers[edge].forget_links()
    stage.break_connections(edge)


def _resumed_somewhere(stage: Stage) -> bool:
    return any(isinstance(each.record, msg.Resume) for broker in stage.brokers.values() for each in broker.inbox)


SCENARIOS = tuple(
    Scenario(name, "6.4", title, play, FULL)
    for name, title, play in (
        ("move-next-closed", "*next* is closed, then STAY", next_closed),
        ("move-hold", "*next* is closed, then END", next_refused_then_end),
        ("move-refused", "ATTACH is refused", attach_refused),
        ("move-next-lost-before", "the link of *next* is lost before END", next_lost_before_end),
        ("move-next-lost-behind", "the link of *next* is lost behind END", next_lost_behind_end),
        ("move-next-reconnects", "the connection of *next* breaks", next_connection_broken),
        ("move-epoch", "EPOCH in the middle", epoch_in_the_middle),
        ("move-current-closed", "*current* is closed before END", current_closed),
        ("move-moved", "MOVED in the middle", current_moved),
        ("move-current-lost", "the link of *current* is lost", current_link_lost),
        ("move-parted", "the target closes its attachment behind GO", target_closed_behind_end),
        ("move-target-silent", "the target is silent when END comes", target_silent),
        ("move-end-unknown", "END of an unknown session", end_unknown),
        ("move-detached-late", "ATTACHMENT_CLOSED of the source behind DETACH", detached_too_late),
    )
)
