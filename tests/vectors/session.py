"""The session of the test vectors, byte by byte; `make.py` writes it."""

from __future__ import annotations

from typing import Any

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

STOCK = "[class,=,'STOCK']"


def data(link: int, seq: int, ack: int, *records: Any) -> bytes:
    return wire.data_frame(link, 0, seq, ack, ack + 1024, [wire.encode(record) for record in records], len(records))


def delivered(short: bytes, attachment: int, position: int, seq: int) -> msg.Deliver:
    pub = msg.Pub(position, "h", 11, position, "p", 7, seq, 0, 0, msgspec.Raw(short))
    return msg.Deliver(attachment, msgspec.msgpack.decode(wire.encode(pub), type=msg.PubOpen))


def session(
    links: tuple[int, int], peers: tuple[wire.Info, wire.Info, wire.Info], short: bytes
) -> list[tuple[str, str, str, bytes]]:
    """Who says what to whom. `links`: to the head and to the edge; `peers`: client, head, edge; `short`: a body."""
    (to_head, to_edge), (client, head, edge) = links, peers
    return [
        ("client", "h", "The client opens a link to the head: 0x01020304 is a random number that it has drawn.",
         wire.hello_frame(to_head, 0, False, client)),
        ("h", "client", "The head has it. Nothing has arrived yet.", wire.hello_ok_frame(to_head, 0, False, head)),
        ("h", "client", "The first credit: 1024 frames.", wire.ack_frame(to_head, 0, 1024)),
        ("client", "h", "The same in the other direction.", wire.ack_frame(to_head, 0, 1024)),
        ("client", "h", "Frame 1: open publisher p, and ask for an edge for subscriber s.",
         data(to_head, 1, 0, msg.Open(1, "p", 7), msg.Join("s"))),
        ("h", "client", "Frame 1 of the head: p is open, s goes to e1.",
         data(to_head, 1, 1, msg.Opened(1, "h", 11, 0, 128), msg.Placed("s", "e1", "mem://e1", ""))),
        ("client", "e1", "A second link, to the edge.", wire.hello_frame(to_edge, 0, False, client)),
        ("e1", "client", "The edge has it.", wire.hello_ok_frame(to_edge, 0, False, edge)),
        ("e1", "client", "Its first credit.", wire.ack_frame(to_edge, 0, 1024)),
        ("client", "e1", "The client's first credit.", wire.ack_frame(to_edge, 0, 1024)),
        ("client", "e1", "Attach s as number 5, with one subscription, from now on: no token.",
         data(to_edge, 1, 0,
              msg.Resume(5, "s", (7, 2), 1, [msg.SubscriptionItem(1, STOCK)], msg.Policy(), None, []))),
        ("e1", "client", "It begins after position 0 of epoch 11 of head h. The whole tree has its list.",
         data(to_edge, 1, 1, msg.Resumed(5, "h", 11, 0, None, False), msg.Suback(5, 1, []))),
        ("client", "h", "Two publications.",
         data(to_head, 2, 1, msg.Publish(1, 1, 0, 0, msgspec.Raw(short)), msg.Publish(1, 2, 0, 0, msgspec.Raw(short)))),
        ("h", "client", "Both are accepted.", data(to_head, 2, 2, msg.Accepted(1, 2))),
        ("e1", "client", "And delivered. The token of s is now (h, 11, 2).",
         data(to_edge, 2, 1, delivered(short, 5, 1, 1), delivered(short, 5, 2, 2))),
        ("client", "e1", "The connection breaks and is made again: the edge has sent two frames that arrived.",
         wire.hello_frame(to_edge, 2, True, client)),
        ("e1", "client", "The edge still knows the link, and has one frame of the client's.",
         wire.hello_ok_frame(to_edge, 1, False, edge)),
        ("client", "e1", "The subscriber leaves for good.", data(to_edge, 2, 2, msg.Detach([5], True))),
        ("client", "e1", "The link is over.", wire.bye_frame(to_edge, "closed")),
    ]  # fmt: skip
