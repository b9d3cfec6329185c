"""Records of heads: answers to publishers, edges for subscribers, slices for members of groups."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.group_member import GroupMember
from plimsoll.core.client.head_ports import HeadPort
from plimsoll.core.client.home import Home
from plimsoll.core.client.publishers_at_heads import PublishersAtHeads
from plimsoll.core.client.records import UNREADABLE, pass_over
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.link import Link


class HeadRecordsHost(Protocol):
    """The interface to the client for its heads' records."""

    counters: Counter[str]
    refusal: str
    last_error: str
    edge_finder: EdgeFinder
    home: Home
    members: dict[str, GroupMember]
    publishers_at_heads: PublishersAtHeads
    stamps: SliceStamps
    handshakes: Handshakes


class HeadRecords:
    """Splits heads' frames into records, and passes each to its part of the client."""

    def __init__(self, client: HeadRecordsHost) -> None:
        self._client = client

    def on_frame(self, link: Link, frame: wire.Data) -> None:
        """The records of one frame, until one of them ends the link."""
        client = self._client
        of_handle = client.publishers_at_heads.of_handle
        for raw in frame.records:
            try:
                record = msg.to_client.decode(raw)
            except UNREADABLE as error:
                pass_over(raw, error, client.counters)
                continue
            match record:
                case (
                    msg.Accepted() | msg.Credit() | msg.Opened() | msg.Refused() | msg.Unconfirmed() |
                    msg.PublisherMove() | msg.PublisherStay() | msg.PublisherLeft() | msg.PublisherStandby() |
                    msg.PublisherElsewhere()
                ):  # fmt: skip
                    # an answer to an older handle is void
                    if (publisher := of_handle(record.handle)) is not None:
                        publisher.on_answer(record)
                case (
                    msg.GroupJoined() | msg.GroupRefused() | msg.GroupBeatAnswer() | msg.GroupLeft() |
                    msg.SliceAssigned() | msg.SliceRevoked() | msg.SliceCache()
                ):  # fmt: skip
                    if (member := client.members.get(record.group)) is not None:
                        member.on_record(record)
                case msg.GroupFunctions():
                    client.stamps.told(link.name, record)
                case msg.Placed():
                    client.edge_finder.on_placed(record)
                case msg.Unplaced():
                    client.edge_finder.on_unplaced(record)
                case msg.SeeHead() if link is client.home.link:
                    client.home.on_see_head(record)
                    return
                case msg.Progress():
                    pass
                case _:
                    client.counters["records_refused_misplaced"] += 1

    def distrust(self, link: Link, text: str) -> None:
        """A frame of this link cannot be read: it is opened again, and at home another head may be tried."""
        client = self._client
        client.last_error = text
        if isinstance(port := link.owner, HeadPort):
            client.publishers_at_heads.on_lost(port)
            client.handshakes.reopen(link, text)
        else:
            client.refusal = text
            client.home.give_up(text)
