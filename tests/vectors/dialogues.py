"""The dialogues of docs/protocol.md, 6.4 and 6.5, record by record, for `dialogues.json`; `make.py` writes it.

A dialogue is between one subscriber, its edges e1 and e2, and the head h. Each begins where the subscriber is attached
at e1 as attachment 1 with owner epoch (7, 2), and has been given offset 1. `state` behind a step is what the client
then holds: owner epoch, token and watermarks. Steps to different brokers have no order between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Token

STOCK = "[class,=,'STOCK']"
HIGH = "[high,>,25.0]"
SESSION = "3.17"
LIST = [msg.SubscriptionItem(1, STOCK)]
LONGER = [*LIST, msg.SubscriptionItem(2, HIGH)]
E2 = ("e2", "mem://e2", "")
FIRST_EPOCH, HEAD_EPOCH = (7, 2), 11
VERSION = 2


class State(NamedTuple):
    """What the client holds: `n` of the owner epoch, the token, the watermark of the origin (h, 11)."""

    n: int
    token: Token
    watermark: int


class Step(NamedTuple):
    """One record. `state` is that of the client behind it, where it changes."""

    source: str
    target: str
    says: str
    record: Any
    state: State | None = None


def pub(attachment: int, offset: int, position: int | None = None) -> msg.Deliver:
    body = msg.Body({"class": "STOCK"})
    at = position or offset
    return msg.Deliver(attachment, msg.PubOpen(at, "h", HEAD_EPOCH, offset, "p", 7, offset, 0, 0, body))


def at(position: int) -> Token:
    return ("h", HEAD_EPOCH, position)


def resume(attachment: int, n: int, token: Token, mark: int, session: str | None = None) -> msg.Resume:
    return msg.Resume(
        attachment, "s", (7, n), VERSION, LIST, msg.Policy(), token, [("h", HEAD_EPOCH, mark)], session
    )  # fmt: skip


MOVE_TO = Step(
    "e1",
    "client",
    "s is to attach at e2 as well, if it has owner epoch (7, 2)",
    msg.MoveTo(SESSION, [msg.MoveToItem(1, FIRST_EPOCH)], *E2),
)
ATTACH = Step(
    "client",
    "e2",
    "attachment 2, in the next owner epoch, with the whole list; nothing changes at e1",
    msg.Attach(SESSION, [msg.AttachItem(2, "s", (7, 3), VERSION, LIST, msg.Policy())]),
)
HELD = Step("e2", "client", "e2 has the list", msg.Held([msg.HeldItem(2, VERSION)]))
SECOND = Step("e1", "client", "deliveries still come from e1", pub(1, 2), State(2, at(2), 2))
END = Step(
    "e1",
    "client",
    "all up to position 4 has come; the owner epoch has n + 1, this is the token",
    msg.End(SESSION, at(4), [1]),
    State(3, at(4), 2),
)
GO = Step("client", "e2", "deliver", msg.Go(SESSION, [msg.GoItem(2)]))
LEAVE = Step("client", "e1", "the source is left, and the place not given up", msg.Detach([1], False))
FIFTH = Step("e2", "client", "e2 delivers what it has held", pub(2, 5), State(3, at(5), 5))
STAY = Step("e1", "client", "the hand-over is aborted", msg.Stay(1, SESSION))
DROP = Step("client", "e2", "the second attachment is left", msg.Detach([2], False))
JOIN = Step("client", "h", "s asks for an edge of the head that its token names", msg.Join("s", [], "", "h"))
TO_E1 = Step("h", "client", "to e1", msg.Placed("s", "e1", "mem://e1", ""))
TO_E2 = Step("h", "client", "to e2", msg.Placed("s", "e2", "mem://e2", ""))
BEGUN = [MOVE_TO, ATTACH, HELD, SECOND]
RESTART = msg.Gap("h", HEAD_EPOCH, 3, HEAD_EPOCH + 1, 0, [], "restart")

DIALOGUES: list[tuple[str, str, str, list[Step]]] = [
    ("drain", "6.4", "a move by drain", [*BEGUN, END, GO, LEAVE, FIFTH]),
    ("stay", "6.4", "the hand-over is aborted", [
        *BEGUN, STAY, DROP, Step("e1", "client", "e1 goes on", pub(1, 3), State(2, at(3), 3))]),
    ("held-late", "6.4", "HELD comes behind END", [MOVE_TO, ATTACH, SECOND, END, GO, LEAVE, HELD, FIFTH]),
    ("next-closed", "6.4", "the second attachment is closed, then the hand-over is aborted", [
        *BEGUN, Step("e2", "client", "there was no cut in time", msg.AttachmentClosed(2, "session", "no cut")), STAY,
        Step("e1", "client", "e1 goes on", pub(1, 3), State(2, at(3), 3))]),
    ("next-closed-end", "6.4", "the second attachment is closed, and END comes all the same", [
        *BEGUN, Step("e2", "client", "more was held than the queue may have", msg.AttachmentClosed(2, "hold", "full")),
        END, LEAVE,
        Step("client", "e2", "s resumes at e2 from END's token, n + 2 again, naming the session",
             resume(3, 5, at(4), 2, SESSION), State(5, at(4), 2)),
        Step("e2", "client", "from the log", msg.Resumed(3, "h", HEAD_EPOCH, 4, None, False)),
        Step("e2", "client", "what was held", pub(3, 5), State(5, at(5), 5))]),
    ("current-closed", "6.4", "the first attachment is closed before END", [
        *BEGUN, Step("e1", "client", "e1 has lost its stream", msg.AttachmentClosed(1, "head", "lost")), DROP, JOIN,
        TO_E1,
        Step("client", "e1", "n is raised by 2 from what it was: nothing has been cut for this client",
             resume(3, 4, at(2), 2), State(4, at(2), 2))]),
    ("current-moved", "6.4", "MOVED comes in the middle", [
        *BEGUN, Step("e1", "client", "by replay, in another session",
                     msg.Moved([1], "e3", "mem://e3", "", "3.18")), DROP,
        Step("client", "e3", "s resumes there, naming that session", resume(3, 4, at(2), 2, "3.18"),
             State(4, at(2), 2))]),
    ("epoch", "6.4", "the head restarts in the middle", [
        *BEGUN, Step("e1", "client", "the hand-over is over, e1 goes on in the new epoch", msg.Epoch(1, RESTART),
                     State(2, ("h", HEAD_EPOCH + 1, 0), 2)), DROP]),
    ("end-unknown", "6.4", "END of a session that s does not know", [
        SECOND, END, LEAVE, JOIN, TO_E2,
        Step("client", "e2", "it has been cut, and goes on from END's token", resume(2, 5, at(4), 2, SESSION),
             State(5, at(4), 2))]),
    ("stale-move", "6.4", "MOVE_TO of another owner epoch is ignored", [
        Step("e1", "client", "of the owner epoch (7, 1)", msg.MoveTo(SESSION, [msg.MoveToItem(1, (7, 1))], *E2)),
        SECOND]),
    ("across", "6.4", "e2 belongs to head k: its positions are those of another log", [
        *BEGUN, Step("e1", "client", "the stream goes on behind position 300 of k",
                     msg.End(SESSION, ("k", 5, 300), [1]), State(3, ("k", 5, 300), 2)), GO, LEAVE,
        Step("e2", "client", "offset 2 once more: at its watermark, so it is not given to the application",
             pub(2, 2, 301), State(3, ("k", 5, 301), 2)),
        Step("e2", "client", "offset 3 is new", pub(2, 3, 302), State(3, ("k", 5, 302), 3))]),
    ("subs", "6.4", "the list changes during a move", [
        *BEGUN,
        Step("client", "e1", "the application subscribes once more", msg.Subs(1, VERSION + 1, LONGER[1:], [])),
        Step("client", "e2", "the same version to both", msg.Subs(2, VERSION + 1, LONGER[1:], [])),
        Step("e1", "client", "it does not count yet", msg.Suback(1, VERSION + 1, [])),
        Step("e2", "client", "now it does", msg.Held([msg.HeldItem(2, VERSION + 1)])), END, GO, LEAVE, FIFTH]),
    ("counted", "6.5", "s counts while it moves: one of three that were due is lost", [
        Step("e1", "client", "the first PROGRESS since SUBACK", msg.Progress(1), State(2, at(1), 1)),
        Step("e1", "client", "a second, with a higher position: from here on s can count", msg.Progress(2),
             State(2, at(2), 1)),
        MOVE_TO, ATTACH, HELD, Step("e1", "client", "one is counted", pub(1, 3), State(2, at(3), 3)),
        Step("e1", "client", "the end", msg.End(SESSION, at(4), [1]), State(3, at(4), 3)),
        Step("client", "e2", "deliver; counted from position 2 and offset 1 on",
             msg.Go(SESSION, [msg.GoItem(2, at(2), [("h", HEAD_EPOCH, 1)])])), LEAVE, FIFTH,
        Step("e2", "client", "three were due up to offset 5", msg.AuditQuery(SESSION, [
            msg.AuditQueryItem(2, [("h", HEAD_EPOCH, 5, 3)])])),
        Step("client", "e2", "two of them were given to the application", msg.AuditReply(SESSION, [
            msg.AuditReplyItem(2, 1, 0, 0, 0)]))]),
    ("replay", "6.3", "a move by replay, which needs no second attachment", [
        SECOND, Step("e1", "client", "attachment 1 is closed", msg.Moved([1], *E2, SESSION)),
        Step("client", "e2", "s resumes from its token, naming the session", resume(2, 4, at(2), 2, SESSION),
             State(4, at(2), 2)),
        Step("e2", "client", "from the log", msg.Resumed(2, "h", HEAD_EPOCH, 2, None, False)),
        Step("e2", "client", "what came meanwhile", pub(2, 3), State(4, at(3), 3))]),
]  # fmt: skip


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, list):
        return [_json(one) for one in value]
    return {key: _json(one) for key, one in value.items()} if isinstance(value, dict) else value


def _step(number: int, step: Step) -> dict[str, Any]:
    data = wire.encode(step.record)
    found: dict[str, Any] = {"step": number, "from": step.source, "to": step.target, "says": step.says}
    found |= {"hex": data.hex(), "value": _json(msgspec.msgpack.decode(data))}
    if step.state is not None:
        marks = [["h", HEAD_EPOCH, step.state.watermark]]
        found["state"] = {"owner_epoch": [7, step.state.n], "token": list(step.state.token), "watermarks": marks}
    return found


def dialogue_vectors() -> list[dict[str, Any]]:
    return [
        {"name": name, "section": section, "means": means, "steps": [_step(i, each) for i, each in enumerate(steps, 1)]}
        for name, section, means, steps in DIALOGUES
    ]
