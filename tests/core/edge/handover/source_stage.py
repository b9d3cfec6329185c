"""The source of a hand-over on a stage: what it is told, and what its client receives."""

from __future__ import annotations

from typing import Any

from tests.core.fleet import resume
from tests.core.head.handover.script import S, Stage, members

from plimsoll.core.protocol import messages as msg

OTHER = "7.2"
BIG = 1000


def served(window_bytes: int = 2**20, **policy: Any) -> Stage:
    """`x` is live at `a`, as attachment 1, and `w` as attachment 2."""
    stage = Stage(queue_bytes=100_000, window_bytes=window_bytes)
    stage.attach("x", **policy)
    stage.ask("a", resume(2, "w", n=2))
    return stage


def move(stage: Stage, *items: msg.MemberItem, session: str = S) -> None:
    stage.tell("a", msg.StartMove(session, list(items) or members("x"), "b", "mem://b", ""))


def cut(stage: Stage, *subscribers: str, across: bool = False, n: int = 2) -> msg.Cut:
    token = ("k", 5, 900) if across else stage.head.token()
    return msg.Cut(S, members(*(subscribers or ("x",)), n=n), token, across)


def ends(stage: Stage) -> list[msg.End]:
    return stage.said("a", msg.End)


def delivered(stage: Stage, attachment: int = 1) -> list[int | str]:
    """What the client has received on an attachment, in order: positions, gaps, END."""
    found: list[int | str] = []
    for record in stage.client.heard["a"]:
        if isinstance(record, msg.Deliver) and record.attachment == attachment:
            item = record.item
            found.append(f"gap {item.low}-{item.high}" if isinstance(item, msg.Gap) else item.position)
        elif isinstance(record, msg.End) and attachment in record.attachments:
            found.append("end")
    return found
