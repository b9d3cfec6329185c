"""Law I6: the size of every queue of a machine, with the bound that its configuration sets.

A queue is bounded in bytes and takes whole items, so it may exceed its limit by one item; the bounds here allow for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.handover.admission import SESSIONS_AT_MOST
from plimsoll.core.head.handover.outcomes import REMEMBERED_SESSIONS
from plimsoll.core.head.handover.remote_members import REMOTE_MEMBERS_AT_MOST
from plimsoll.core.head.log import ENTRY_OVERHEAD_BYTES
from plimsoll.core.head.machine import Head
from plimsoll.core.transport.link import FRAME_BYTES
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen


def queue_sizes(name: str, node: OverlayNode, at: float, item_bytes: int) -> Iterator[seen.SizeObserved]:
    """Measure one machine. `item_bytes`: the largest record of this run."""
    for link in [*node.handshakes.accepted_links(), *node.dialled.values()]:
        bound = node.link_limits.window_bytes + FRAME_BYTES
        yield seen.SizeObserved(name, f"bytes in flight to {link.name or link.peer!r}", link.inflight_bytes, bound, at)
    if isinstance(node, Head):
        yield seen.SizeObserved(name, "open hand-overs", len(node.coordinator.sessions), SESSIONS_AT_MOST, at)
        remembered = len(node.coordinator.table.archive)
        yield seen.SizeObserved(name, "remembered hand-overs", remembered, REMEMBERED_SESSIONS, at)
        yield seen.SizeObserved(name, "remote members", len(node.remote_members), REMOTE_MEMBERS_AT_MOST, at)
        limit = node.config.limits.log_bytes + item_bytes + ENTRY_OVERHEAD_BYTES
        yield seen.SizeObserved(name, "log bytes", node.log.bytes, limit, at)
    if isinstance(node, Edge):
        count = len(node.attachments.by_subscriber) + len(node.handover_target.slots)
        yield seen.SizeObserved(name, "attachments and slots", count, node.config.limits.max_subscribers, at)
        for attachment in node.attachments.by_subscriber.values():
            # Policies apply at the end of a round, so a queue may hold the records of one round more.
            limit = attachment.queue_limit_bytes + 2 * node.link_limits.window_bytes
            what = f"queue bytes of {attachment.subscriber}"
            yield seen.SizeObserved(name, what, sum(map(len, attachment.queue)), limit, at)
        limit = node.config.limits.link_buffer_bytes + 2 * node.link_limits.window_bytes
        for port in node.attachments.by_link.values():
            yield seen.SizeObserved(
                name, f"buffer bytes to {port.link.name}", sum(map(len, port.link.buffer)), limit, at
            )
