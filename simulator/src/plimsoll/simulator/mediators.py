"""The lives of mediators: one after another, or one that takes over while the other still believes in itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.fleet import Fleet, Journal
from plimsoll.simulator.host import Host
from plimsoll.simulator.mediator import Mediator, Store
from plimsoll.simulator.moves import Move
from plimsoll.simulator.network import Network
from plimsoll.simulator.schedule import Schedule


class Mediators:
    """Hosts of mediators over one store. `current` is the youngest."""

    def __init__(
        self, schedule: Schedule, network: Network, fleet: Fleet, journal: Journal, draw: random.Random,
        moves: Sequence[Move], strangers: Sequence[str], healed_at: float,
    ) -> None:  # fmt: skip
        self.schedule, self.network, self.fleet, self.journal = schedule, network, fleet, journal
        self.moves, self.strangers, self.healed_at = moves, strangers, healed_at
        self.store = Store()
        self.hosts: list[Host] = []
        self._salt = draw.getrandbits(32)

    @property
    def current(self) -> Host | None:
        return self.hosts[-1] if self.hosts else None

    def start(self) -> None:
        """Start one more, with a higher epoch; those before are left as they are."""
        number = len(self.hosts)
        host = Host(f"m{number}", self.schedule, self.network)
        self.hosts.append(host)
        heads = self.fleet.shape.heads()
        draw = random.Random(self._salt + number)
        host.start(
            lambda: Mediator(
                host.name, self.store, heads, self.moves, self.strangers, self.healed_at, draw, self.journal.see
            )
        )

    def crash(self) -> None:
        """Kill the youngest."""
        if self.current is not None and self.current.node is not None:
            self.network.say(f"! mediator {self.current.name} is killed")
            self.current.crash()

    def restart(self) -> None:
        """Start another if the youngest is gone."""
        if self.current is None or self.current.node is None:
            self.start()

    def plan(self, rate: float, draw: random.Random, start: float, until: float, wanted: Callable[[str], bool]) -> None:
        """Draw deaths and take-overs; those whose label is not wanted do not happen."""
        number, at = 0, start + draw.expovariate(rate) if rate else until
        while at < until:
            away, usurped = draw.uniform(0.0, 0.5), draw.random() < 0.4
            if wanted(f"life{number}"):
                self.schedule.at(at, self.start if usurped else self.crash)
                self.schedule.at(at + away, self.restart)
            number += 1
            at += draw.expovariate(rate)

    # -- the end

    def is_settled(self) -> bool:
        return all(one.is_final for one in self.store.handovers.values()) and len(self.store.begun) == len(self.moves)

    def leftovers(self) -> None:
        """I5: every hand-over that was begun has come to something."""
        for one in self.store.handovers.values():
            if not one.is_final:
                what = f"hand-over without an outcome: {one.session} wants {one.intent}, was told {one.state!r}"
                self.journal.see(seen.Residue("mediator", what, 1, self.schedule.now))

    def counts(self) -> dict[str, int]:
        """Hand-overs by their end, and members by their outcome."""
        count: Counter[str] = Counter()
        for one in self.store.handovers.values():
            count[one.state if one.is_final else "open"] += 1
            if one.state in ("done", "aborted"):
                count.update(outcome for _, outcome in one.members)
        return dict(sorted(count.items()))
