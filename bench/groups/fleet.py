"""The processes of a run: a head, an edge, a publisher, and consumers of a group or plain subscribers."""

from __future__ import annotations

from typing import Final

from bench.broker.processes import PLAIN_KEYS, Child, serve
from bench.groups.clients import publish, take

from plimsoll.client import Connection

PROCESSES: Final = 2
"""Over which consumers are spread."""
PATIENCE_SECONDS: Final = 180.0


class BenchFleet:
    """A head, an edge and a publisher. `end` kills them."""

    def __init__(self) -> None:
        self.head = Child(serve, "head", ("", ""), PLAIN_KEYS, {})
        data, control, _ = self.head.ask()
        self.endpoint = data
        self.edge = Child(serve, "edge", (data, control), PLAIN_KEYS, {})
        self.edge.ask()
        self.publisher = Child(publish, data)
        self.publisher.ask()

    def make_group(self, slices: int) -> None:
        """Make the group `group`, which stays when its first member has left."""
        with Connection(self.endpoint, security="plain", name="bench-maker") as connection:
            group = connection.group(
                "group", slices=slices, filter="[class,=,'group']", function="Modulo", by="g", balancing="None"
            )
            group.subscribe(name="maker", timeout=60.0).close()

    def cpu(self) -> dict[str, float]:
        """Processor seconds of the brokers so far."""
        return {name: child.ask("cpu")[0].process for name, child in (("head", self.head), ("edge", self.edge))}

    def end(self) -> None:
        for child in (self.publisher, self.edge, self.head):
            child.end()


def takers(fleet: BenchFleet, group: str, consumers: int, slices: int) -> list[Child]:
    """Consumers of a group, or with an empty name plain subscribers of shares of the same slices, in processes."""
    kind = group or "plain"
    parts = [range(consumers)[i::PROCESSES] for i in range(min(PROCESSES, consumers))]
    children = [
        Child(
            take, fleet.endpoint, group, [f"{kind}-{consumers}-{i}" for i in part],
            [list(range(slices))[i::consumers] for i in part],
        )
        for part in parts
    ]  # fmt: skip
    for child in children:
        child.ask()
    return children
