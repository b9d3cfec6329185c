"""When a run is over: whether anything is still under way, and what is left over when nothing is.

Law I5: all has healed, so whoever lives is served by one edge, its head knows it, and nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core import client as c
from plimsoll.core.attachment import State
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head
from plimsoll.core.node import Node
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.apps import Apps
from plimsoll.simulator.fleet import Fleet


def leftovers(fleet: Fleet, apps: Apps, at: float) -> Iterator[seen.Residue]:
    """Everything that a settled fleet does not have."""
    served = _served(apps)
    for name, (edge, settled, phase) in served.items():
        if not edge:
            yield seen.Residue(name, f"subscriber not served, {phase}", 1, at)
        if not settled:
            yield seen.Residue(name, "subscriptions that were never acknowledged", 1, at)
    yield from _sessions_left(fleet, apps, at)
    homes: dict[str, dict[str, str]] = {}
    for name, (edge, _, _) in served.items():
        if edge:
            homes.setdefault(fleet.brokers[edge].config.head_name, {})[name] = edge
    for broker in fleet.brokers.values():
        node = broker.host.node
        if isinstance(node, Head):
            owned = {name: entry.key.partition("#")[0] for name, entry in node.owners.entries.items()}
            wrong = sorted(set(owned.items()) ^ set(homes.get(broker.name, {}).items()))
            if wrong:
                yield seen.Residue(broker.name, f"owner entries too many or too few: {wrong}", len(wrong), at)
            if node.missing:
                yield seen.Residue(broker.name, "unreported edges or neighbours", len(node.missing), at)
            if node.membership.ghosts:
                yield seen.Residue(
                    broker.name, f"covers of edges that are gone: {sorted(node.membership.ghosts)}", 1, at
                )
        elif isinstance(node, Edge):
            states = sorted(f"{a.subscriber} {a.state.value}" for a in node.records.values() if a.state != State.LIVE)
            if states:
                yield seen.Residue(broker.name, f"records that are not live: {states}", len(states), at)


def _sessions_left(fleet: Fleet, apps: Apps, at: float) -> Iterator[seen.Residue]:
    """What sessions leave behind: open ones, guests, slots, second attachments."""
    for broker in fleet.brokers.values():
        node = broker.host.node
        if isinstance(node, Head):
            office = node.office
            if office.coordinator.sessions:
                open_ones = sorted(office.coordinator.sessions)
                yield seen.Residue(broker.name, f"open hand-overs: {open_ones}", len(open_ones), at)
            if len(office.guests):
                yield seen.Residue(broker.name, "guests of other heads' hand-overs", len(office.guests), at)
        elif isinstance(node, Edge) and node.receiving.slots:
            slots = sorted(f"{name} of {slot.session}" for name, slot in node.receiving.slots.items())
            yield seen.Residue(broker.name, f"slots: {slots}", len(slots), at)
    for process in apps.processes.values():
        for name, subscriber in (process.client.subscribers if process.client else {}).items():
            if subscriber.handover is not None:
                yield seen.Residue(name, "a hand-over that neither ends nor is taken back", 1, at)


def _served(apps: Apps) -> dict[str, tuple[str, bool, str]]:
    """Of each subscriber that lives: the edge that serves it, if one does, and whether its subscriptions count."""
    found = {}
    for process in apps.processes.values():
        for name, subscriber in (process.client.subscribers if process.client else {}).items():
            current = subscriber.current
            live = current is not None and current.state is c.attachment.State.LIVE
            found[name] = (current.port.edge if current and live else "", subscriber.is_settled, subscriber.phase.value)
    return found


def under_way(fleet: Fleet, apps: Apps) -> bool:
    """Whether something is being said, waits to be said or waits for its answer."""
    nodes = [broker.host.node for broker in fleet.brokers.values()]
    nodes += [process.host.node for process in apps.processes.values()]
    if any(node is None or _speaks(node) for node in nodes):
        return True
    return any(process.pending for process in apps.processes.values())


def _speaks(node: Node) -> bool:
    links = [*node.accepted_links(), *node.dialled.values()]
    if any(link.buffer or link.unacked for link in links):
        return True
    if isinstance(node, Head):
        return any(outlet.backlog for outlet in node.streams.outlets.values()) or bool(node.server.queue)
    if isinstance(node, Edge):
        return bool(node.cursor.members or node.server.queue) or any(a.queue for a in node.records.values())
    return False


def serving(fleet: Fleet, at: float) -> Iterator[seen.Serving]:
    """Who delivers from its stream, and to whom, at this moment."""
    for broker in fleet.edges():
        if isinstance(node := broker.host.node, Edge):
            for attachment in node.records.values():
                if attachment.state is State.LIVE:
                    yield seen.Serving(broker.name, attachment.subscriber, attachment.epoch, at)
