"""Moves of a subscriber that changes its list, is paused, counts, or moves with another: docs/protocol.md, 6.4, 6.5."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from plimsoll.conformance.expected_state import EPOCH, PUBLISHER, PUBLISHER_INCARNATION, publication
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import FULL, Scenario
from plimsoll.conformance.scenarios.moves import ATTACHES, GO_AT_END, begin, expect_go, resume_after
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SESSION, SubscriberScript
from plimsoll.core.protocol import messages as msg

SUBS_TO_BOTH = Rule("6.4", "**SUBS** go to both attachments, with the same version.")
BOTH_HAVE_IT = Rule("6.4", "A change counts when *current* has sent SUBACK for it and, once")
AFTER_END = Rule("6.4", "After END only the SUBACK of B counts.")
NOT_BEFORE = Rule("6.4", "changes that it has not answered do not count")
TOGETHER = Rule("6.4", "Subscribers of one link that move together share one record")
PAUSE_FIRST = Rule("6.4", "If deliveries are paused, PAUSE to B comes before GO.")
COUNTING = Rule("6.5", "of these offsets, how many has the application received, each")
PUBLISHERS_COUNTED = Rule("6.5", "`since` is its token at that moment, and `marks` its watermarks of the two `heads`.")
HIGH = "[high,>,25.0]"


def list_changed(stage: Stage) -> None:
    """SUBS go to both edges, and count when both have them."""
    x, number = begin(stage)
    stage.quiet()
    stage.order(do="subscribe", subscriber="s", subscription=HIGH)
    for edge, attachment in (("e1", x.number), ("e2", number)):
        subs = stage.expect(edge, msg.Subs, SUBS_TO_BOTH)
        if subs.attachment != attachment or [one.text for one in subs.adds] != [HIGH]:
            raise RuleBrokenError(SUBS_TO_BOTH, f"SUBS at {edge} is {subs}; {HIGH} for attachment {attachment} was due")
        if edge == "e2" and subs.version != x.state.version:
            raise RuleBrokenError(SUBS_TO_BOTH, f"SUBS has version {subs.version} at e2, {x.state.version} at e1")
        x.state.version = subs.version
    x.state.subscriptions.append(HIGH)
    x.broker.say(msg.Suback(x.number, x.state.version, []))
    stage.quiet("e1")
    if any(report.get("subscription") == HIGH for report in stage.reports):
        raise RuleBrokenError(BOTH_HAVE_IT, "a change was reported to count before the target had it")
    x.hold("e2", number)
    stage.expect_report("counts", BOTH_HAVE_IT, subscription=HIGH)
    x.end(position=2)
    expect_go(x, number)
    x.deliver(3)
    resume_after(x)
    x.finish()


def list_changed_at_end(stage: Stage) -> None:
    """END comes before the source has sent SUBACK for a change: it counts with the SUBACK of the target."""
    x, number = begin(stage)
    stage.quiet()
    _change_list(x, number)
    x.hold("e2", number)
    x.end(position=2)
    expect_go(x, number)
    stage.quiet("e2")
    if any(report.get("subscription") == HIGH for report in stage.reports):
        raise RuleBrokenError(AFTER_END, "a change was reported to count before the target had sent SUBACK")
    x.broker.say(msg.Suback(x.number, x.state.version, []))
    stage.expect_report("counts", AFTER_END, subscription=HIGH)
    x.deliver(3)
    x.finish()


def list_changed_without_next(stage: Stage) -> None:
    """The target goes before it has answered a change: the change does not count before STAY."""
    x, number = begin(stage)
    stage.quiet()
    _change_list(x, number)
    stage.brokers["e2"].say(msg.AttachmentClosed(number, "session", "there was no cut in time"))
    stage.quiet("e2")
    x.broker.say(msg.Suback(x.number, x.state.version, []))
    stage.quiet("e1")
    if any(report.get("subscription") == HIGH for report in stage.reports):
        raise RuleBrokenError(NOT_BEFORE, "a change that the target had not answered was reported to count")
    x.broker.say(msg.Stay(x.number, SESSION))
    stage.expect_report("counts", NOT_BEFORE, subscription=HIGH)
    x.deliver(3)
    x.finish()


def _is_of(attachment: int, subs: msg.Subs) -> bool:
    return subs.attachment == attachment


def _change_list(x: SubscriberScript, number: int) -> None:
    """The application subscribes once more, and SUBS has come to both edges."""
    x.stage.order(do="subscribe", subscriber="s", subscription=HIGH)
    for edge, attachment in (("e1", x.number), ("e2", number)):
        subs = x.stage.expect(edge, msg.Subs, SUBS_TO_BOTH, partial(_is_of, attachment))
        x.state.version = subs.version
    x.state.subscriptions.append(HIGH)


def paused(stage: Stage) -> None:
    """The application has paused its subscriber: PAUSE to the target comes before GO."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    stage.order(do="pause", subscriber="s")
    stage.expect("e1", msg.Pause, PAUSE_FIRST)
    x.move_to("e2")
    number = x.expect_attach("e2", ATTACHES)
    x.hold("e2", number)
    x.end(position=1)
    stage.until(lambda: _kinds(stage) & {msg.Go}, GO_AT_END, "no GO has come to e2")
    kinds = [type(received.record) for received in stage.brokers["e2"].inbox]
    if msg.Pause not in kinds or kinds.index(msg.Pause) > kinds.index(msg.Go):
        raise RuleBrokenError(PAUSE_FIRST, f"e2 was sent {[kind.__name__.upper() for kind in kinds]}")
    expect_go(x, number)
    stage.order(do="continue", subscriber="s")
    stage.expect("e2", msg.Continue, PAUSE_FIRST)
    x.deliver(2)
    x.finish()


def _kinds(stage: Stage) -> set[type]:
    return {type(received.record) for received in stage.brokers["e2"].inbox}


def counted(stage: Stage) -> None:
    """A client that counts says so in GO, and answers AUDIT_QUERY with what its application was given."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    edge = stage.brokers["e1"]
    for position in (2, 3):
        edge.say(msg.Progress(position))
        x.state.reach(position)
    x.check_items()
    x.move_to("e2")
    number = x.expect_attach("e2", ATTACHES)
    x.hold("e2", number)
    x.deliver(4)
    x.end(position=4)
    item = expect_go(x, number)
    x.deliver(5)
    x.check_items()
    if item.since is not None:
        _check_count(x, item)
    x.finish()


def _check_count(x: SubscriberScript, item: msg.GoItem) -> None:
    if item.since != ("h", EPOCH, 3) or list(item.marks) != [("h", EPOCH, 1)]:
        raise RuleBrokenError(COUNTING, f"GO counts from {item.since}, {item.marks}; MOVE_TO was at position 3")
    due = [("h", EPOCH, 5, 3)]
    x.broker.say(msg.AuditQuery(SESSION, [msg.AuditQueryItem(x.number, due)]))
    reply = x.stage.expect(x.edge, msg.AuditReply, COUNTING)
    if reply.members != [msg.AuditReplyItem(x.number, 1, 0, 0, 0)]:
        raise RuleBrokenError(COUNTING, f"AUDIT_REPLY is {reply.members}; 2 of 3 were given")


def publishers_counted(stage: Stage) -> None:
    """A client that counts publishers that move says so, and compares by their numbers: offsets begin again."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    for position in (2, 3):
        x.broker.say(msg.Progress(position))
        x.state.reach(position)
    x.check_items()
    moving = [msg.AuditedPublisher(PUBLISHER, PUBLISHER_INCARNATION, 1)]
    x.broker.say(msg.CountPublishers(SESSION, [x.number], ["h", "k"], moving))
    x.stage.quiet(x.edge)
    counts = [each.record for each in x.broker.inbox if isinstance(each.record, msg.CountsFrom)]
    x.deliver(4)
    moved = replace(publication(5, position=5, head="k", epoch=7), offset=1)
    x.state.deliver(moved)
    x.broker.say(msg.Deliver(x.number, moved))
    x.check_items()
    if counts:
        x.stage.expect(x.edge, msg.CountsFrom, PUBLISHERS_COUNTED)
        _check_count_of_publishers(x, counts[0])
    x.finish()


def _check_count_of_publishers(x: SubscriberScript, counts: msg.CountsFrom) -> None:
    if counts != msg.CountsFrom(SESSION, [msg.GoItem(x.number, ("h", EPOCH, 3), [("h", EPOCH, 1)])]):
        raise RuleBrokenError(PUBLISHERS_COUNTED, f"{counts}; COUNT_PUBLISHERS came at position 3, offset 1")
    x.broker.say(msg.AuditQuery(SESSION, [msg.AuditQueryItem(x.number, [("h", EPOCH, 4, 2), ("k", 7, 1, 1)])]))
    reply = x.stage.expect(x.edge, msg.AuditReply, PUBLISHERS_COUNTED)
    if reply.members != [msg.AuditReplyItem(x.number, 1, 0, 0, 0)]:
        raise RuleBrokenError(PUBLISHERS_COUNTED, f"AUDIT_REPLY is {reply.members}; 2 of 3 were given, in order")


def two_together(stage: Stage) -> None:
    """MOVE_TO, HELD and END name two subscribers of a link; the client chooses how it groups its records."""
    x, y = SubscriberScript(stage, "s").attach(), SubscriberScript(stage, "t").attach()
    x.deliver(1)
    y.deliver(1)
    source, target = stage.brokers["e1"], stage.brokers["e2"]
    epochs = [msg.MoveToItem(one.number, (one.incarnation, one.state.n or 0)) for one in (x, y)]
    source.say(msg.MoveTo(SESSION, epochs, "e2", stage.client.endpoint("e2"), ""))
    numbers: dict[str, int] = {}
    while len(numbers) < len(epochs):
        attach = stage.expect("e2", msg.Attach, TOGETHER)
        numbers |= {item.subscriber: item.attachment for item in attach.members}
    target.say(msg.Held([msg.HeldItem(numbers[one.name], one.state.version) for one in (x, y)]))
    for one in (x, y):
        one.state.n, one.state.token, one.ended_session = (one.state.n or 0) + 1, ("h", EPOCH, 1), SESSION
    source.say(msg.End(SESSION, ("h", EPOCH, 1), [x.number, y.number]))
    _collect(stage, "e2", msg.Go, set(numbers.values()))
    _collect(stage, "e1", msg.Detach, {x.number, y.number})
    for one in (x, y):
        one.take_over("e2", numbers[one.name])
        one.deliver(2)
    x.finish(y)


def _collect(stage: Stage, broker: str, kind: type[msg.Go | msg.Detach], wanted: set[int]) -> None:
    """Records of this kind about all these attachments, each once, however they are grouped."""
    found: list[int] = []
    while set(found) != wanted:
        record = stage.expect(broker, kind, TOGETHER)
        found += [item.attachment for item in record.members] if isinstance(record, msg.Go) else record.attachments
        if len(found) > len(wanted):
            raise RuleBrokenError(TOGETHER, f"{kind.__name__.upper()} at {broker} is about {found}; {wanted} was due")


SCENARIOS = tuple(
    Scenario(name, section, title, play, FULL)
    for name, section, title, play in (
        ("move-list-changed", "6.4", "SUBS during a move", list_changed),
        ("move-list-at-end", "6.4", "SUBS during a move, END before SUBACK", list_changed_at_end),
        ("move-list-alone", "6.4", "SUBS during a move, *next* is closed", list_changed_without_next),
        ("move-together", "6.4", "two subscribers of a link", two_together),
        ("move-paused", "6.4", "a paused subscriber moves", paused),
        ("move-counted", "6.5", "counting while it moves", counted),
        ("publishers-counted", "6.5", "counting what comes of publishers that move", publishers_counted),
    )
)
