"""Law I6 from inside: every queue of a machine against the bound that its configuration states.

A bound is met to within one item, for queues are bounded in bytes and items have sizes; the slack says how large one
item can be.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.edge import Edge
from plimsoll.core.handover.coordinator import SESSIONS_AT_MOST
from plimsoll.core.handover.guests import GUESTS_AT_MOST
from plimsoll.core.handover.outcomes import REMEMBERED_SESSIONS
from plimsoll.core.head import Head
from plimsoll.core.link import FRAME_BYTES
from plimsoll.core.log import ENTRY_OVERHEAD_BYTES
from plimsoll.core.node import Node
from plimsoll.core.verify import observations as seen


def marks(name: str, node: Node, at: float, item_bytes: int) -> Iterator[seen.Mark]:
    """Measure one machine. `item_bytes`: the largest record of this run."""
    for link in [*node.accepted_links(), *node.dialled.values()]:
        bound = node.link_limits.window_bytes + FRAME_BYTES
        yield seen.Mark(name, f"bytes in flight to {link.name or link.peer!r}", link.inflight_bytes, bound, at)
    if isinstance(node, Head):
        office = node.office
        yield seen.Mark(name, "open hand-overs", len(office.coordinator.sessions), SESSIONS_AT_MOST, at)
        yield seen.Mark(name, "remembered hand-overs", len(office.coordinator.archive), REMEMBERED_SESSIONS, at)
        yield seen.Mark(name, "guests", len(office.guests), GUESTS_AT_MOST, at)
        limit = node.config.limits.log_bytes + item_bytes + ENTRY_OVERHEAD_BYTES
        yield seen.Mark(name, "log bytes", node.log.bytes, limit, at)
    if isinstance(node, Edge):
        places = len(node.records) + len(node.receiving.slots)
        yield seen.Mark(name, "records and slots", places, node.config.limits.max_subscribers, at)
        for attachment in node.records.values():
            # A round's worth may come before the policy is applied at its end.
            limit = attachment.queue_limit_bytes + 2 * node.link_limits.window_bytes
            what = f"queue bytes of {attachment.subscriber}"
            yield seen.Mark(name, what, sum(map(len, attachment.queue)), limit, at)
        limit = node.config.limits.link_buffer_bytes + 2 * node.link_limits.window_bytes
        for port in node.ports.values():
            yield seen.Mark(name, f"buffer bytes to {port.link.name}", sum(map(len, port.link.buffer)), limit, at)
