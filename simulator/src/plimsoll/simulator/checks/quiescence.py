"""The end of a run: whether any work is still under way, and what state is left over when none is.

Law I5: once all faults have healed, every subscriber is served by one edge, its head has that edge as the owner, and no
other state is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core import client as c
from plimsoll.core.edge.attachment import AttachmentState
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.world.applications import SimulatedApplications, served_by_name
from plimsoll.simulator.world.brokers import SimulatedFleet


def leftovers(fleet: SimulatedFleet, apps: SimulatedApplications, at: float) -> Iterator[seen.ResidueObserved]:
    """Everything that a settled fleet must not have."""
    served = _served(apps)
    for name, (edge, settled, phase) in served.items():
        if not edge:
            yield seen.ResidueObserved(name, f"subscriber not served, {phase}", 1, at)
        if not settled:
            yield seen.ResidueObserved(name, "subscriptions that were never acknowledged", 1, at)
    yield from _handover_leftovers(fleet, apps, at)
    served_under: dict[str, dict[str, str]] = {}
    for name, (edge, _, _) in served.items():
        if edge:
            served_under.setdefault(fleet.brokers[edge].config.head_name, {})[name] = edge
    for broker in fleet.brokers.values():
        node = broker.host.node
        if isinstance(node, Head):
            owned = {name: entry.key.partition("#")[0] for name, entry in node.owners.entries.items()}
            wrong = sorted(set(owned.items()) ^ set(served_under.get(broker.name, {}).items()))
            if wrong:
                what = f"owner entries that do not match the serving edges: {wrong}"
                yield seen.ResidueObserved(broker.name, what, len(wrong), at)
            if node.startup.missing:
                what = "edges or neighbours that have not reported"
                yield seen.ResidueObserved(broker.name, what, len(node.startup.missing), at)
            if node.membership.ghosts:
                yield seen.ResidueObserved(
                    broker.name, f"covers of edges that are gone: {sorted(node.membership.ghosts)}", 1, at
                )
        elif isinstance(node, Edge):
            states = sorted(
                f"{a.subscriber} {a.state.value}"
                for a in node.attachments.by_subscriber.values()
                if a.state != AttachmentState.LIVE
            )
            if states:
                yield seen.ResidueObserved(broker.name, f"attachments that are not live: {states}", len(states), at)
            yield from _subscription_leftovers(broker.name, node, at)


def _subscription_leftovers(name: str, edge: Edge, at: float) -> Iterator[seen.ResidueObserved]:
    """Subscriptions that are in the index or the cover of an edge, and in the list of no attachment."""
    table = edge.subscription_table
    numbers = {number for a in edge.attachments.by_subscriber.values() for _, number in a.subscriptions.values()}
    for what, count in {"the index": len(table.index), "the cover": table.cover.member_count}.items():
        if table.is_tidy and count != len(numbers):
            yield seen.ResidueObserved(name, f"{what} has {count} subscriptions, lists have {len(numbers)}", 1, at)


def _handover_leftovers(
    fleet: SimulatedFleet, apps: SimulatedApplications, at: float
) -> Iterator[seen.ResidueObserved]:
    """State of hand-overs that should be gone: open ones, remote members, slots, second attachments."""
    for broker in fleet.brokers.values():
        node = broker.host.node
        if isinstance(node, Head):
            if node.coordinator.sessions:
                open_ones = sorted(node.coordinator.sessions)
                yield seen.ResidueObserved(broker.name, f"open hand-overs: {open_ones}", len(open_ones), at)
            if len(node.remote_members):
                yield seen.ResidueObserved(
                    broker.name, "remote members of other heads' hand-overs", len(node.remote_members), at
                )
        elif isinstance(node, Edge) and node.handover_target.slots:
            slots = sorted(f"{name} of {slot.session}" for name, slot in node.handover_target.slots.items())
            yield seen.ResidueObserved(broker.name, f"slots: {slots}", len(slots), at)
    for process in apps.processes.values():
        for name, subscriber in (served_by_name(process.client) if process.client else {}).items():
            if subscriber.handover is not None:
                yield seen.ResidueObserved(name, "a hand-over that neither ended nor was undone", 1, at)


def _served(apps: SimulatedApplications) -> dict[str, tuple[str, bool, str]]:
    """For each subscriber that runs: the edge that serves it, if any, whether its list is acknowledged, its phase."""
    found = {}
    for process in apps.processes.values():
        for name, subscriber in (served_by_name(process.client) if process.client else {}).items():
            current = subscriber.current
            live = current is not None and current.state is c.attachment.ClientAttachmentState.LIVE
            is_settled = subscriber.subscription_list.is_settled
            found[name] = (current.port.edge if current and live else "", is_settled, subscriber.phase.value)
    return found


def is_busy(fleet: SimulatedFleet, apps: SimulatedApplications) -> bool:
    """Whether a message is under way or queued, or a request waits for its answer."""
    nodes = [broker.host.node for broker in fleet.brokers.values()]
    nodes += [process.host.node for process in apps.processes.values()]
    if any(node is None or _has_traffic(node) for node in nodes):
        return True
    return any(process.pending for process in apps.processes.values())


def _has_traffic(node: OverlayNode) -> bool:
    links = [*node.handshakes.accepted_links(), *node.dialled.values()]
    if any(link.buffer or link.unacked for link in links):
        return True
    if isinstance(node, Head):
        waits = bool(node.server.queue or node.cover_turns.waiting or node.client_intake.waiting)
        return waits or any(outbox.backlog for outbox in node.outboxes.by_key.values())
    if isinstance(node, Edge):
        return bool(node.cursor.members or node.server.queue or node.client_intake.waiting) or any(
            a.queue for a in node.attachments.by_subscriber.values()
        )
    return False


def serving_edges(fleet: SimulatedFleet, at: float) -> Iterator[seen.ServingEdgeObserved]:
    """Each subscriber with the edge that delivers to it from its stream at this moment."""
    for broker in fleet.edges():
        if isinstance(node := broker.host.node, Edge):
            for attachment in node.attachments.by_subscriber.values():
                if attachment.state is AttachmentState.LIVE:
                    yield seen.ServingEdgeObserved(broker.name, attachment.subscriber, attachment.epoch, at)
