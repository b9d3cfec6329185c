"""Links: frames lost and repeated, late acknowledgements, connections and links that are lost (docs/protocol.md, 3)."""

from __future__ import annotations

from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import Scenario
from plimsoll.conformance.stage import Stage
from plimsoll.conformance.subscriber_script import SubscriberScript
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

HELLO_AGAIN = Rule("3.1", "It repeats HELLO every")
RESYNCHRONISE = Rule("3.1", "at a number too high it discards the frame and **resynchronises**")
KNOWN = Rule("3.1", "the side that dialled sends HELLO `(link, received, known true)`")
WHO_HELLO = Rule("3.1", "The side that dialled answers WHO with HELLO; `known` is true if the link has been open.")
SAME_FRAMES = Rule(
    "3.1", "sides then send again, in order and unchanged, every DATA frame above the other's `received`."
)
LINK_GOES_ON = Rule("3.1", "other side still has it, the link goes on as in 2.")
NEW_LINK = Rule("3.1", "a new link with a new number begins at 1.")
ACKS = Rule("3.1", "An ACK is due 20 ms after a frame")
LATER_PROTOCOL = Rule("2", "a reader skips elements")
UNKNOWN_NUMBER = Rule("2", "number that is not listed for its direction is refused, and counted, alone")
DEAD = Rule("3.1", "A link that is silent")
PINGS = Rule("3.1", "Every heartbeat (1 s by default) each side sends **PING** with its clock")
OVER = Rule("3.1", "**BYE** ends a link in good order.")

DEAD_SECONDS = 25.0


def hello_is_repeated(stage: Stage) -> None:
    """The first HELLO to each broker is lost."""
    for broker in stage.brokers.values():
        broker.faults.hellos_lost = 1
    x = SubscriberScript(stage)
    x.subscribe()
    stage.until(lambda: stage.head.hellos, HELLO_AGAIN, "HELLO has not come to the head again")
    x.resume_at("e1")
    x.deliver(1)
    x.finish()


def frame_to_client_lost(stage: Stage) -> None:
    """A DATA frame of the edge is lost; the next one must not be taken before it."""
    x = SubscriberScript(stage).attach()
    edge = stage.brokers["e1"]
    x.deliver(1)
    x.check_items()
    before = len(edge.hellos)
    edge.faults.sent_lost = 1
    x.deliver(2)
    x.deliver(3)
    stage.until(lambda: len(edge.hellos) > before, RESYNCHRONISE, "no HELLO after a frame that was lost has come")
    if not edge.hellos[-1].known:
        raise RuleBrokenError(KNOWN, "HELLO of an open link has `known` false")
    x.finish()


def frame_to_client_repeated(stage: Stage) -> None:
    """Every DATA frame of the edge comes twice."""
    stage.brokers["e1"].faults.sent_twice = True
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.deliver(3)
    _await_ack(stage, "e1")
    x.finish()


def frame_from_client_lost(stage: Stage) -> None:
    """The DATA frame with RESUME is lost on its way; the edge asks WHO."""
    edge = stage.brokers["e1"]
    edge.faults.received_lost = 1
    x = SubscriberScript(stage)
    x.subscribe()
    stage.until(lambda: not edge.faults.received_lost, SAME_FRAMES, "no DATA frame has come to e1")
    before = len(edge.hellos)
    edge.out(edge.open_link().peer, wire.who_frame())
    stage.until(lambda: len(edge.hellos) > before, WHO_HELLO, "the client did not answer WHO with HELLO")
    if not edge.hellos[-1].known:
        raise RuleBrokenError(WHO_HELLO, "HELLO of a link that has been open has `known` false")
    x.expect_resume("e1", rule=SAME_FRAMES)
    x.answer()
    x.deliver(1)
    x.finish()


def connection_broken(stage: Stage) -> None:
    """The connection breaks and is made again; the link outlives it, and nothing is resumed."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.check_items()
    edge = stage.brokers["e1"]
    before = len(edge.hellos)
    stage.break_connections("e1")
    stage.until(lambda: len(edge.hellos) > before, WHO_HELLO, "no HELLO has come on the new connection")
    if not edge.hellos[-1].known:
        raise RuleBrokenError(WHO_HELLO, "HELLO of a link that has been open has `known` false")
    x.deliver(3)
    x.check_items()
    stage.forbid("e1", msg.Resume, LINK_GOES_ON, "the link has gone on, and the subscriber has resumed")
    x.finish()


def frames_lost_with_connection(stage: Stage) -> None:
    """A frame of the edge is lost with the connection: it is sent again after HELLO, and delivered once."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    edge = stage.brokers["e1"]
    before = len(edge.hellos)
    edge.faults.sent_lost = 1
    x.deliver(2)
    stage.break_connections("e1")
    stage.until(lambda: len(edge.hellos) > before, WHO_HELLO, "no HELLO has come on the new connection")
    if edge.hellos[-1].received != 2:
        raise RuleBrokenError(KNOWN, f"HELLO reports {edge.hellos[-1].received} frames; 2 had come")
    x.deliver(3)
    x.finish()


def link_lost(stage: Stage) -> None:
    """The edge has lost the link: it answers `lost`, and the subscriber resumes on a new one from its token."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.check_items()
    edge = stage.brokers["e1"]
    edge.forget_links()
    stage.break_connections("e1")
    stage.until(lambda: edge.link, NEW_LINK, "no new link has been opened to e1", DEAD_SECONDS)
    x.resume_at("e1")
    x.deliver(3)
    x.finish()


def link_ended(stage: Stage) -> None:
    """BYE of the edge: the subscriber asks for an edge again, and goes on from its token."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.check_items()
    stage.placement = ["e2"]
    stage.brokers["e1"].end_links()
    x.expect_resume("e2", rule=OVER)
    x.answer()
    x.deliver(3)
    x.finish()


def edge_silent(stage: Stage) -> None:
    """The edge answers nothing any more: the client gives the link up after its dead time, and goes elsewhere."""
    x = SubscriberScript(stage).attach()
    x.deliver(1)
    x.check_items()
    stage.placement = ["e2"]
    stage.brokers["e1"].faults.is_silent = True
    stage.until(lambda: stage.brokers["e2"].link, DEAD, "the silent edge has not been left", DEAD_SECONDS)
    x.resume_at("e2")
    x.deliver(2)
    x.finish()


def acknowledgements_late(stage: Stage) -> None:
    """The edge acknowledges nothing for five heartbeats: the client may resynchronise, and repeats no request."""
    edge = stage.brokers["e1"]
    x = SubscriberScript(stage)
    edge.faults.acks_held = True
    x.subscribe()
    resume = x.expect_resume("e1")
    stage.quiet("h", seconds=4.5)
    edge.acknowledge()
    x.answer()
    x.deliver(1)
    x.check_items()
    stage.forbid("e1", msg.Resume, SAME_FRAMES, f"RESUME of attachment {resume.attachment} came twice")
    x.finish()


def frames_acknowledged(stage: Stage) -> None:
    """The client acknowledges what it has taken, PINGs, and answers PING."""
    x = SubscriberScript(stage).attach()
    x.deliver(1, 2)
    x.check_items()
    _await_ack(stage, "e1")
    edge = stage.brokers["e1"]
    stage.until(lambda: edge.pings, PINGS, "no PING has come to e1")
    stage.quiet("e1")
    x.finish()


def later_protocol(stage: Stage) -> None:
    """Records of a later protocol: an unknown number, and fields behind those that are known."""
    x = SubscriberScript(stage).attach()
    edge = stage.brokers["e1"]
    longer = wire.encode(msg.Progress(0, [])).replace(b"\x93", b"\x94", 1) + b"\xa3new"
    edge.say_raw(b"\x92\xcd\x03\xe7\x01", longer)
    x.deliver(1)
    x.finish()


def _await_ack(stage: Stage, broker: str) -> None:
    link = stage.brokers[broker].open_link()
    stage.until(lambda: not link.unacked, ACKS, f"frames above {link.acked} of {broker} are not acknowledged")


SCENARIOS = (
    Scenario("hello-repeated", "3.1", "the first HELLO to each broker is lost", hello_is_repeated),
    Scenario("frame-lost", "3.1", "a frame of the edge is lost", frame_to_client_lost),
    Scenario("frame-repeated", "3.1", "every frame of the edge comes twice", frame_to_client_repeated),
    Scenario("request-lost", "3.1", "the frame with RESUME is lost", frame_from_client_lost),
    Scenario("connection-broken", "3.1", "a connection breaks, the link goes on", connection_broken),
    Scenario("delivery-lost", "3.1", "a frame is lost with the connection", frames_lost_with_connection),
    Scenario("link-lost", "3.1", "the edge has lost the link", link_lost),
    Scenario("link-ended", "3.1", "the edge ends the link", link_ended),
    Scenario("edge-silent", "3.1", "the edge is silent", edge_silent),
    Scenario("acknowledgements-late", "3.1", "nothing is acknowledged for long", acknowledgements_late),
    Scenario("acknowledged", "3.1", "frames are acknowledged, PING is answered", frames_acknowledged),
    Scenario("later-protocol", "2", "records of a later protocol", later_protocol),
)
