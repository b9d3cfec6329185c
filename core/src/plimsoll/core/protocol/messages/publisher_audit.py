"""Messages by which subscribers count what comes from publishers that move to another head: docs/handover.md, 13.

The question what was due, the answer, and their sums are the records of any audit: EXPECTED_DELIVERIES, AUDIT_QUERY,
AUDIT_REPLY and AUDIT_SUMMARY.
"""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.messages.handover import AuditRequestItem, ExpectedCount, GoItem
from plimsoll.core.protocol.wire import U32, U63, Listed, Name, Scalar

Example = dict[str, Scalar]
"""The attributes of a publication."""
EXAMPLES_AT_MOST = 16
"""Publications by which the subscribers of moving publishers are found."""
AUDITED_PUBLISHERS_AT_MOST = 256
"""Publishers of one move that are audited."""


class AuditedPublisher(Struct, array_like=True, frozen=True):
    """A publisher that is to move: its publications above `last_seq` count."""

    publisher: Name
    incarnation: U63
    last_seq: U63


class PublisherAuditStart(Struct, array_like=True, frozen=True, tag=140):
    """Goes where publications with the attributes of `examples` go: ask some subscribers that match one to count.

    `judge` is the head that the publishers leave, `target` the other one.
    """

    session: Name
    judge: Name
    target: Name
    publishers: list[AuditedPublisher]
    examples: list[Example]


class CountPublishers(Struct, array_like=True, frozen=True, tag=141):
    """Count from here on what these attachments deliver of these publishers. `heads`: whose watermarks are needed."""

    session: Name
    attachments: list[U32]
    heads: list[Name]
    publishers: list[AuditedPublisher]


class CountsFrom(Struct, array_like=True, frozen=True, tag=142):
    """These count, each from its token and its watermarks of the two heads on; the others cannot."""

    session: Name
    members: Listed[GoItem]


class PublisherAuditRequest(Struct, array_like=True, frozen=True, tag=143):
    """From an edge to the judge: `asked` more subscribers were asked, and those in `checks` count.

    From the judge to the target, at the end: `due` has what its own log says of each, and `publishers` who moved.
    """

    session: Name
    judge: Name
    head: Name
    edge: Name
    asked: U32
    checks: list[AuditRequestItem]
    due: list[list[ExpectedCount]] = []
    publishers: list[AuditedPublisher] = []
