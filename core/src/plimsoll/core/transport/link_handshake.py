"""How a link is opened and resumed: HELLO, its answer, and what is sent again.

Rules of the place:
- The side that dials says HELLO, with the last frame that it has received; the answer says the same of the other side.
  Then each sends again what the other has not received.
- A link that one side has lost is over: the side that dials begins another one.
"""

from __future__ import annotations

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link

REPEATED_WINDOWS = 2
"""Windows that are sent again for HELLOs, beyond what the peer has acknowledged since. So this is how many times a
connection may break in a row; after that each HELLO that is answered doubles the wait for the next one."""

# -- the side that dials


def say_hello(link: Link, now: float) -> bytes:
    """Who this is and what has arrived, at the start, after a reconnect or when numbers do not fit."""
    link.open = False
    link.hello_at = now
    return wire.hello_frame(link.id, link.safe(), link.was_open, link.local)


def take_answer(link: Link, answer: wire.HelloOk, now: float) -> tuple[bool, list[bytes]]:
    """Returns (lost, frames). `lost`: the other side had lost the link; a new one is being opened."""
    if answer.link != link.id or link.open:
        return False, []
    if answer.lost:
        if not link.was_open:
            return False, []
        begin_anew(link, now)
        return True, [say_hello(link, now)]
    _opened(link, answer.info, answer.received, now)
    return False, [link.ack(), *_again(link)]


def begin_anew(link: Link, now: float) -> None:
    """The link is over; the next HELLO opens a new one."""
    link.start(link.new_id())
    link.last_heard = now


def awaits_answer(link: Link, now: float) -> bool:
    """Whether a HELLO is on its way, which answers every WHO that comes before its HELLO_OK."""
    return now - link.hello_at < link.limits.heartbeat_seconds


# -- the side that accepts


def may_repeat(link: Link, received: int, now: float) -> bool:
    """Whether a HELLO on this link is answered now, which sends again all that is unacknowledged.

    It costs a peer little to ask, and this side a window each time.
    """
    if not link.repeated_bytes:
        link.repeats, link.repeat_at = 0, float("-inf")
    if now < link.repeat_at:
        return False
    link.acknowledged(received, link.credit, now)
    link.repeated_bytes += link.inflight_bytes
    if link.repeated_bytes > REPEATED_WINDOWS * link.limits.window_bytes:
        link.repeat_at = now + link.limits.heartbeat_seconds * 2.0**link.repeats
        # A head with a log on a disk may hold all that it was sent until it may log it, and then has to be heard.
        most = 3 if link.remote is not None and link.remote.role == "head" else 30
        link.repeats = min(link.repeats + 1, most)
    return True


def answer_hello(link: Link, hello: wire.Hello, now: float) -> list[bytes]:
    """The other side is there (again); returns the answer and what it has not received."""
    if not link.was_open:
        # Resumed links keep their numbers and what is unacknowledged; only a new one starts from 1.
        link.start(hello.link)
    _opened(link, hello.info, hello.received, now)
    return [wire.hello_ok_frame(link.id, link.safe(), False, link.local), link.ack(), *_again(link)]


# -- both sides


def ask_resync(link: Link, now: float) -> bytes | None:
    """Numbers do not fit, or nothing has been acknowledged for long: start over from what the other side has."""
    if now - link.resync_asked < link.limits.heartbeat_seconds:
        return None
    link.resync_asked = now
    return say_hello(link, now) if link.initiator else wire.who_frame()


def _opened(link: Link, info: Info, received: int, now: float) -> None:
    link.remote, link.open, link.was_open = info, True, True
    link.round_trip.restart()
    link.last_heard = link.last_progress = now
    link.resync_asked = link.hello_at = float("-inf")
    link.acknowledged(received, link.credit, now)


def _again(link: Link) -> list[bytes]:
    link.stats.frames_again += len(link.unacked)
    return list(link.unacked)
