"""Changes that break a second guard: where one guard covers for another, both are broken together."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change

from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.edge_records import EdgeRecords
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.cut_decision import CutDecision

FORGETFUL = Change(SubscriberStream.take, "if item.offset > seen:", "if True:")
"""The client delivers publications that it has delivered before."""

NO_COMPARE = Change(
    Coordinator.resumed, 'self.table.undo(session, [subscriber], "returned", "has resumed meanwhile")', "pass"
)
"""A RESUME does not void an open session."""

ANY_STATE = Change(EdgeRecords.on_frame, "or attachment.state is not ClientAttachmentState.LIVE", "")
"""The client accepts deliveries on an attachment that does not serve yet."""

NO_DEADLINE = Change(
    Coordinator.tick,
    "if now >= session.decides_at and session.is_open:",
    "if now >= session.decides_at and session.is_open:\n"
    "            session.decides_at = float('inf')\n"
    "        if False:",
)
"""A hand-over is not aborted when its time to prepare is over."""

NO_SWAP_AT_CUT = Change(CutDecision._may_cut, "or not self.table.is_owner(member, item.subscriber)", "")
"""The local cut does not compare the owner."""

NO_FORCE_DETACH = Change(Coordinator.tick, "self._force_detach(session)", "session.drains_until = float('inf')")
"""A session does not end when its time to drain is over."""

NO_LEASE = Change(
    AttachmentTable.expire_leases, "self.host.up(msg.Expire(attachment.subscriber, attachment.epoch))", "pass"
)
"""The lease of a closed attachment never ends."""

NO_LEAVE = Change(ClientHandovers.leave, "self._ports.say_detach(handover.next, withdraw=withdraw)", "pass")
"""A subscriber that stays, or loses its serving edge, does not detach from the target."""

NO_DETACH = Change(
    EdgePorts.say_detach,
    "if asked := [attachment.id for attachment in attachments if attachment.is_asked]:",
    "if False:",
)
"""A client detaches without sending DETACH."""

SILENT_LISTS = Change(
    ClientRequests.on_subs,
    'raise WireError("unknown", f"no attachment {subs.attachment} is open on this link: RESUME with the list")',
    "return",
)
"""An edge answers no list for an attachment that it does not have."""
